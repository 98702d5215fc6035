package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

// Bounds of the map: up to ownBoxes machines have a box of their own. Of more, a box stands for several of
// one group, zone and state, so that there are about manyBoxes. Above denseFrom boxes they are small.
const (
	ownBoxes  = 1000
	manyBoxes = 500
	denseFrom = 120
	whyRunes  = 240
)

// fleet draws every machine as a box, by group and zone.
func (w *document) fleet(d Data) {
	w.section("fleet", "The fleet now")
	most := ownBoxes
	if len(d.Machines) > ownBoxes {
		most = manyBoxes
	}
	boxes := fleet.Boxes(d.Machines, most)
	if len(boxes) == 0 {
		w.put(`<p>%s</p></section>`, cmp.Or(d.unread(true, true), "There is no machine."))
		return
	}
	w.legend(boxes, len(d.Machines))
	dense := ""
	if len(boxes) > denseFrom {
		dense = " dense"
	}
	w.put(`<div class="%s">`, "fleet"+dense)
	sums := map[string]*Group{}
	for i := range d.Groups {
		sums[d.Groups[i].Name] = &d.Groups[i]
	}
	for from, shown := 0, 0; from < len(boxes); {
		to := from + 1
		for to < len(boxes) && boxes[to].Group == boxes[from].Group {
			to++
		}
		if shown++; shown > shownGroups {
			w.put(`<p>More groups have machines: autoscaler-agent nodes</p>`)
			break
		}
		w.mapOfGroup(d, sums[boxes[from].Group], boxes[from:to])
		from = to
	}
	w.put("</div></section>\n")
}

// legend says which state looks how, and how many machines are in it.
func (w *document) legend(boxes []fleet.Box, machines int) {
	count := fleet.Count(boxes)
	w.put(`<ul class="legend">`)
	for _, s := range fleet.States {
		if n := count[s.Name]; n > 0 {
			w.put(`<li><span class="%s" aria-hidden="true"><b>%s</b></span>%s %s</li>`, "box "+s.Name, s.Letter, n, s.Name)
		}
	}
	w.put(`</ul><p class="small">Bars: what its pods request of cpu, memory and GPUs. Point at a box, tap it, or use Tab and the arrow keys.`)
	if machines > len(boxes) {
		w.put(` %s are drawn as %s boxes, each for machines of one group, zone and state.`, machines, len(boxes))
	}
	w.put("</p>\n")
}

func (w *document) mapOfGroup(d Data, g *Group, boxes []fleet.Box) {
	name := boxes[0].Group
	w.put(`<div class="group"><h3>%s`, orNoGroup(name))
	if g != nil {
		w.put(` <small>%s of %s wanted, at most %s</small>`, g.Machines, g.Target, g.Max)
	}
	w.put(`</h3>`)
	for from := 0; from < len(boxes); {
		to := from + 1
		for to < len(boxes) && boxes[to].Zone == boxes[from].Zone {
			to++
		}
		w.put(`<div class="zone">`)
		if boxes[from].Zone != "" {
			w.put(`<span>%s</span>`, boxes[from].Zone)
		}
		w.put(`<ul class="boxes">`)
		for i := from; i < to; i++ {
			w.box(d.At, &boxes[i])
		}
		w.put("</ul></div>\n")
		from = to
	}
	w.put("</div>\n")
}

func orNoGroup(name string) string {
	if name == "" {
		return "of no node group"
	}
	return name
}

// box is one machine, or several. Its words are hidden to the eye until it has the pointer or the focus.
func (w *document) box(at time.Time, b *fleet.Box) {
	class, letter := "", "?"
	for _, s := range fleet.States { // of this package's own few words
		if s.Name == b.State {
			class, letter = s.Name, s.Letter
		}
	}
	w.boxes++
	w.put(`<li><a class="%s" id="m%s" href="#m%s"><b>%s</b>`, "box "+class, w.boxes, w.boxes, letter)
	for _, share := range []int{b.CPU, b.Memory, b.GPU} {
		if share != fleet.Unknown {
			w.put(`<i class="f%s"></i>`, min((max(share, 0)+9)/10, 10))
		}
	}
	w.put(`<span class="tip"><strong>%s</strong> %s`, b.Name, b.State)
	if b.Count > 1 {
		w.put(` and %s like it; the figures are of all`, cluster.Plural(b.Count-1, "more machine"))
	}
	w.put("\n%s\n%s\n%s</span></a></li>", where(at, &b.Machine), load(b), fate(&b.Machine))
}

// where says what a machine is, where, for how much and since when.
func where(at time.Time, m *fleet.Machine) string {
	cost := ""
	if m.Price > 0 {
		cost = fmt.Sprintf("%.4g an hour", m.Price)
		if m.Estimated {
			cost += " (computed from its size)"
		}
	}
	old := ""
	if !m.Created.IsZero() {
		old = age(at.Sub(m.Created)) + " old"
	}
	exactly := ""
	if m.Exactly != m.State {
		exactly = m.Exactly
	}
	drift := ""
	if len(m.Drift) > 0 {
		drift = "differs from its group in " + strings.Join(m.Drift, ", ")
	}
	return join(", ", exactly, orNoGroup(m.Group), m.Zone, m.Type, cost, old, drift)
}

// load says what its pods are and request.
func load(b *fleet.Box) string {
	share := func(name string, percent int) string {
		if percent == fleet.Unknown {
			return ""
		}
		return fmt.Sprintf("%s %d%%", name, percent)
	}
	requests := join(", ", share("cpu", b.CPU), share("memory", b.Memory), share("GPU", b.GPU))
	if requests == "" {
		return "no pods yet"
	}
	pods := cluster.Plural(b.Pods, "pod")
	if b.Count == 1 && len(b.FirstPods) > 0 {
		pods += " (" + strings.Join(b.FirstPods, ", ")
		if b.Pods > len(b.FirstPods) {
			pods += ", ..."
		}
		pods += ")"
	}
	return requests + " requested by " + pods + " and " + fmt.Sprint(b.Daemons) + " of DaemonSets"
}

// fate says why it stays or goes.
func fate(m *fleet.Machine) string {
	word := "stays: "
	if m.State == fleet.Draining {
		word = "goes: "
	}
	switch why := []rune(m.Why); {
	case m.Why == "" && m.State == fleet.Draining:
		return "goes: nothing holds it"
	case m.Why == "" && m.Group == "":
		return "stays: the agent ends machines of node groups only"
	case m.Why == "":
		return "stays: no rule names a reason for it to go"
	case len(why) > whyRunes:
		return word + m.Rule + ": " + string(why[:whyRunes-1]) + "…"
	}
	return word + m.Rule + ": " + m.Why
}

package plan

import (
	"cmp"
	"math"
	"strings"
)

// option is what one group could do for the pods that are left.
type option struct {
	group int
	k     packing
	which []int
	fresh int // machines to buy
	pods  int // pods on its coming and new machines
	waste float64
}

// choose returns the best option of all groups that are not done, nil when there is
// none.
func (v *solver) choose() *option {
	var best *option
	for g := range v.w.groups {
		if v.done[g] {
			continue
		}
		if o := v.optionOf(g, v.limit(g)); o != nil && (best == nil || v.before(o, best)) {
			best = o
		}
	}
	return best
}

// limit is how many machines of a group this answer may still fill: those that are
// coming, and those that may be bought.
func (v *solver) limit(g int) int {
	if v.w.groups[g].rule != "" {
		return v.coming[g]
	}
	return v.coming[g] + v.room(g)
}

func (v *solver) optionOf(g, limit int) *option {
	gr := &v.w.groups[g]
	if limit <= 0 || gr.Template.Unknown != "" {
		return nil
	}
	pick := func(i int) int {
		if !v.w.want[i].buys || v.a.left[i] == 0 || !v.fits(i, g) {
			return 0
		}
		return v.a.left[i]
	}
	empty, _ := v.w.template(gr)
	p, which := v.problemOf(pick, empty, limit)
	if len(p.loads) == 0 {
		return nil
	}
	o := &option{group: g, k: pack(p), which: which}
	if k, ok := p.leveled(v.w.bonds.levels(g), o.k.bins); ok {
		o.k = k
	}
	o.fresh = max(o.k.bins-v.coming[g], 0)
	o.measure(p)
	return o
}

// room is how many machines a group may still buy in this answer.
func (v *solver) room(g int) int {
	before := make([]int, len(v.w.groups))
	for i := range v.w.groups {
		before[i] = v.w.groups[i].grow
		v.w.groups[i].grow += v.a.grow[i]
	}
	n, _ := v.w.allowed(&v.w.groups[g], math.MaxInt32)
	for i := range v.w.groups {
		v.w.groups[i].grow = before[i]
	}
	return n
}

// measure counts pods and what share of the machines' cpu and memory stays unused.
func (o *option) measure(p *problem) {
	var used [2]float64
	for _, f := range o.k.fresh {
		for _, t := range f.parts {
			o.pods += f.times * t.n
			for j := range used {
				used[j] += float64(p.loads[t.load].size[j]) * float64(f.times*t.n)
			}
		}
	}
	for j := range used {
		if have := float64(p.empty[j]) * float64(o.k.bins); have > 0 {
			o.waste += 1 - used[j]/have
		}
	}
}

// before orders options: what costs nothing first, and of that what leaves nothing
// open; then the expander; then fewer machines; then the group's ID (the order in
// which they come).
func (v *solver) before(a, b *option) bool {
	if free := cmp.Compare(min(a.fresh, 1), min(b.fresh, 1)); free != 0 {
		return free < 0
	}
	if a.fresh == 0 {
		return a.k.unplaced() == 0 && b.k.unplaced() > 0
	}
	for _, name := range expanders(v.w.p.Expander) {
		if c := expanderBy[name](a, b); c != 0 {
			return c < 0
		}
	}
	return a.fresh < b.fresh
}

// expanderBy compares two options; negative: the first is better.
var expanderBy = map[string]func(a, b *option) int{
	"least-waste": func(a, b *option) int { return cmp.Compare(math.Round(a.waste*1e9), math.Round(b.waste*1e9)) },
	"most-pods":   func(a, b *option) int { return cmp.Compare(b.pods, a.pods) },
	"least-nodes": func(a, b *option) int { return cmp.Compare(a.fresh, b.fresh) },
}

// expanders are the known names of a chain such as "most-pods,least-waste".
func expanders(chain string) []string {
	var out []string
	for name := range strings.SplitSeq(chain, ",") {
		if name = strings.TrimSpace(name); expanderBy[name] != nil {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		out = []string{"least-waste"}
	}
	return out
}

// unknownExpanders are the names of the chain that this build does not know.
func unknownExpanders(chain string) []string {
	var out []string
	for name := range strings.SplitSeq(chain, ",") {
		if name = strings.TrimSpace(name); name != "" && expanderBy[name] == nil {
			out = append(out, name)
		}
	}
	return out
}

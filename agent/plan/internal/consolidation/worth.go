package consolidation

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// spotChoices is how many types a group must be able to start on the spot market where its machine replaces another spot
// machine. With fewer, ever cheaper machines are ever more often interrupted (Karpenter asks for as many, spot to spot consolidation).
const spotChoices = 15

// worth is what a replacement saves in an hour, less what moving its pods counts for; 0: it is not to be done, because it saves
// too little, is not allowed, or a pod would have no room; and where it is not worth more than the best so far.
func (w *Search) worth(s *decision.Consolidation, most float64) float64 {
	var from []int
	moved := 0
	for _, name := range s.Nodes {
		i, ok := w.ByName[name]
		if !ok || !slices.Contains(w.list, i) {
			return 0
		}
		from, moved = append(from, i), moved+w.mover.Moved(i)
	}
	var to *round.Group
	if s.Machines > 0 {
		g, ok := w.ByID[s.Group]
		if !ok {
			return 0
		}
		to = &w.Groups[g]
	}
	value := func(stay []int) float64 {
		before, after, pod := w.prices(s, from, stay, to)
		worth := before - after - w.Policy.ConsolidatePodCost*pod*float64(moved)
		if after > before*(1-w.Policy.ConsolidateSaving) || worth <= most*(1+1e-9) { // sums of prices are not exact
			return 0
		}
		return worth
	}
	if value(nil) == 0 || w.belowMinimum(s, from) || to != nil && (w.spotForSpot(from, to) || growth.Count(w.State, to, s.Machines) < s.Machines) {
		return 0
	}
	stay, ok := w.mover.Fit(from, to, s.Machines) // for these pods, which costs as much as new machines
	if !ok {
		return 0
	}
	var more []int // nodes that may make it certain in place of a machine
	for _, i := range w.idle {
		if s.Machines == 0 && len(more) < mostMachines && !slices.Contains(stay, i) && value(append(slices.Clip(stay), i)) > 0 {
			more = append(more, i)
		}
	}
	for {
		worth := value(stay)
		switch {
		case worth == 0:
			return 0
		case w.mover.Certain(from, stay, to, s.Machines):
			return worth
		case len(more) == 0:
			return 0
		}
		stay, more = append(stay, more[0]), more[1:]
	}
}

// unneeded are the nodes that go otherwise, those of the least price first. One may be a machine that came for a saving which the agent
// forgot in a restart. It costs N log N.
func (w *Search) unneeded() (out []int) {
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Removing && n.State == round.StateReady && n.Group >= 0 {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(w.Groups[w.Nodes[a].Group].Price, w.Groups[w.Nodes[b].Group].Price), cmp.Compare(a, b))
	})
	return out
}

// belowMinimum tells whether a group would have fewer machines than its minimum.
func (w *Search) belowMinimum(s *decision.Consolidation, from []int) bool {
	less := make(map[int]int)
	for _, i := range from {
		less[w.Nodes[i].Group]++
	}
	for g, n := range less {
		gr := &w.Groups[g]
		if gr.ID == s.Group {
			n -= s.Machines
		}
		if gr.CorrectedTarget-gr.Removing-n < gr.Min {
			return true
		}
	}
	return false
}

// spotForSpot tells whether a spot machine would be replaced by another one of a group with few types to choose from.
func (w *Search) spotForSpot(from []int, to *round.Group) bool {
	return to.SpotTypes > 0 && to.SpotTypes < spotChoices && slices.ContainsFunc(from, func(i int) bool { return w.Groups[w.Nodes[i].Group].SpotTypes > 0 })
}

// prices is the price of what goes, of what comes or stays for it, and of a pod; where a group has no price all are counted in
// machines, which needs ConsolidateAlways (see movable), and what comes or stays must be of the group of all that goes. No costs: they
// cannot be compared.
func (w *Search) prices(s *decision.Consolidation, from, stay []int, to *round.Group) (before, after, pod float64) {
	priced := true
	price := func(g *round.Group) float64 {
		priced = priced && g.Price > 0
		return g.Price
	}
	var instead []*round.Group
	if to != nil {
		after, instead = float64(s.Machines)*price(to), append(instead, to)
	}
	for _, i := range stay {
		g := &w.Groups[w.Nodes[i].Group]
		after, instead = after+price(g), append(instead, g)
	}
	for _, i := range from {
		before += price(&w.Groups[w.Nodes[i].Group])
	}
	if priced {
		return before, after, w.perPod
	}
	for _, i := range from {
		if slices.ContainsFunc(instead, func(g *round.Group) bool { return g != &w.Groups[w.Nodes[i].Group] }) {
			return 0, 0, 0
		}
	}
	return float64(len(from)), float64(s.Machines + len(stay)), w.perRun
}

// meanPod is what the nodes that are needed cost in an hour by the pods that could be moved, in money and in machines. It costs N.
func (w *Search) meanPod() (price, machines float64) {
	pods := 0
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Group >= 0 && !n.ControlPlane && !n.Removing {
			price += w.Groups[n.Group].Price
			machines++
			pods += w.mover.Moved(i)
		}
	}
	return price / float64(max(pods, 1)), machines / float64(max(pods, 1))
}

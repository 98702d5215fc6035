package consolidation

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// spotChoices is how many types a group must be able to start on the spot market where its machine replaces another spot
// machine. With fewer, ever cheaper machines are ever more often interrupted (Karpenter asks for as many, spot to spot consolidation).
const spotChoices = 15

// replacement is a set of nodes, and so many machines of a group in their place; without machines their pods have room on other nodes.
type replacement struct {
	from     []int
	to       *round.Group
	machines int
}

// saving is what a replacement saves in an hour, and what moving its pods counts for. stay are nodes that would go otherwise, and stay for
// these pods. It is 0 where it is too small a share of the price.
func (w *Search) saving(r *replacement, stay []int) (saves, moves float64) {
	moved := 0
	for _, i := range r.from {
		moved += w.mover.Moved(i)
	}
	before, after, pod := w.prices(r, stay)
	if after > before*(1-w.Policy.ConsolidateSaving) {
		return 0, 0
	}
	return before - after, w.Policy.ConsolidatePodCost * pod * float64(moved)
}

// never is the rank of a replacement that is not to be done.
var never = math.Inf(-1)

// rank is what a replacement saves within an hour beside what moving its pods counts for. One that saves less, and is worth its moves within
// farAhead, has a rank below 0: the sooner it is worth them the better.
func (w *Search) rank(r *replacement, stay []int) float64 {
	switch saves, moves := w.saving(r, stay); {
	case saves > moves:
		return saves - moves
	case saves*farAhead > moves:
		return -moves / saves
	}
	return never
}

// above tells whether a rank is more than another one: sums of prices are not exact.
func above(rank, most float64) bool {
	return rank > most+1e-9*math.Abs(most) || rank > most && math.IsInf(most, -1)
}

// worth is the rank of a replacement whose pods have room, and that is allowed. One that is not above most is not asked about. Nodes that would
// go otherwise, and stay for these pods, cost as much as new machines.
func (w *Search) worth(r *replacement, most float64) float64 {
	if above(w.rank(r, nil), most) && w.allowed(r) {
		if stay, ok := w.mover.Fit(r.from, r.to, r.machines); ok && above(w.rank(r, stay), most) && w.mover.Drawn(r.from, r.to, r.machines) {
			return w.rank(r, stay)
		}
	}
	return never
}

// allowed tells whether limits and the spot market let a replacement be done.
func (w *Search) allowed(r *replacement) bool {
	return !w.belowMinimum(r) && (r.to == nil || !w.spotForSpot(r.from, r.to) && growth.Count(w.State, r.to, r.machines) >= r.machines)
}

// known is a saving that was thought of before, as it is now; false: it cannot be.
func (w *Search) known(s *decision.Consolidation) (r replacement, ok bool) {
	for _, name := range s.Nodes {
		i, is := w.ByName[name]
		if !is || !slices.Contains(w.list, i) {
			return r, false
		}
		r.from = append(r.from, i)
	}
	if r.machines = s.Machines; s.Machines > 0 {
		g, is := w.ByID[s.Group]
		if !is {
			return r, false
		}
		r.to = &w.Groups[g]
	}
	return r, len(r.from) > 0
}

// belowMinimum tells whether a group would have fewer machines than its minimum.
func (w *Search) belowMinimum(r *replacement) bool {
	less := make(map[int]int)
	for _, i := range r.from {
		less[w.Nodes[i].Group]++
	}
	for g, n := range less {
		gr := &w.Groups[g]
		if gr == r.to {
			n -= r.machines
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
func (w *Search) prices(r *replacement, stay []int) (before, after, pod float64) {
	priced := true
	price := func(g *round.Group) float64 {
		priced = priced && g.Price > 0
		return g.Price
	}
	var instead []*round.Group
	if r.to != nil {
		after, instead = float64(r.machines)*price(r.to), append(instead, r.to)
	}
	for _, i := range stay {
		g := &w.Groups[w.Nodes[i].Group]
		after, instead = after+price(g), append(instead, g)
	}
	for _, i := range r.from {
		before += price(&w.Groups[w.Nodes[i].Group])
	}
	if priced {
		return before, after, w.perPod
	}
	for _, i := range r.from {
		if slices.ContainsFunc(instead, func(g *round.Group) bool { return g != &w.Groups[w.Nodes[i].Group] }) {
			return 0, 0, 0
		}
	}
	return float64(len(r.from)), float64(r.machines + len(stay)), w.perRun
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

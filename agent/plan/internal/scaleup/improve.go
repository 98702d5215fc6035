package scaleup

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack/mixed"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Where pods are constrained the last step is to take a few machines out of the best answer
// and to find room for what is on them on the others, or on cheaper ones, by the
// scheduler's own rules; what got cheaper is kept, again and again.
const (
	improveWork     = 250_000 // judgements of a pod and a machine
	improveTries    = 2_000
	improveMachines = 400 // machines beyond which nothing is mended
)

// improvedSolution returns the answer with some of its machines bought for less, where that
// stands the replay.
func (w *Planner) improvedSolution(a *solution, cost []float64, round int) *solution {
	work := improveWork
	g := &baseline{v: w.newSolver(false), st: w.topology.State, cost: cost, work: &work}
	g.v.a = a.clone()
	mark := g.st.Mark()
	g.removeMachines()
	done := len(g.machines) > 1 && len(g.machines) <= improveMachines && g.improve(round)
	if done {
		g.buyForUnplaced(slices.Clone(a.left))
	}
	g.st.Rollback(mark)
	if !done {
		return a
	}
	g.commit()
	g.v.verify()
	if w.betterThan(&g.v.a, a, cost) {
		return &g.v.a
	}
	return a
}

// buyForUnplaced buys for pods that the answer left because of a limit: with fewer machines for
// the others there may be some for them now. The next round would, otherwise.
func (g *baseline) buyForUnplaced(left []int) {
	if !slices.ContainsFunc(left, func(n int) bool { return n > 0 }) {
		return
	}
	base := slices.Clone(g.v.a.grow)
	for _, x := range g.machines {
		if !x.upcoming {
			g.v.a.grow[x.group]++
		}
	}
	g.buyFor(left, leastCost)
	g.v.a.grow = base
}

// clone is an answer that can be changed without the other.
func (a *solution) clone() solution {
	out := *a
	out.grow, out.on, out.left = slices.Clone(a.grow), slices.Clone(a.on), slices.Clone(a.left)
	out.bins, out.allocations = slices.Clone(a.bins), slices.Clone(a.allocations)
	for p := range out.bins {
		pl := &out.bins[p]
		pl.room, pl.portions, pl.headroom = slices.Clone(pl.room), slices.Clone(pl.portions), slices.Clone(pl.headroom)
	}
	for i := range out.allocations {
		out.allocations[i] = slices.Clone(a.allocations[i])
	}
	return out
}

// removeMachines takes the machines that are bought out of the answer; all places and what is on
// them are in the State then.
func (g *baseline) removeMachines() {
	v, w := g.v, g.v.w
	promised := w.HasReservations()
	var kept []bin
	for _, pl := range v.a.bins {
		x := plannedMachine{group: pl.group, node: pl.node, room: pl.room}
		if pl.node < 0 {
			x = g.open(pl.group)
		}
		for _, t := range pl.portions {
			if class := w.Demands[t.Item].Class; w.topology.Constrained[class] {
				g.st.Put(class, x.node, t.N)
			}
		}
		x.upcoming = !pl.fresh
		if x.upcoming && pl.node < 0 {
			v.upcoming[pl.group]--
		}
		if pl.node >= 0 || x.upcoming && (promised || !g.movable(&pl)) {
			kept = append(kept, pl)
			continue
		}
		for _, t := range pl.portions {
			if t.N > 0 {
				x.portions = append(x.portions, t)
				binpack.Sub(x.room, w.size(w.Demands[t.Item].Class), t.N)
				v.add(t.Item, pl.group, -t.N, pl.fresh)
				v.a.left[t.Item] += t.N
			}
		}
		if pl.fresh {
			v.a.grow[pl.group]--
		}
		g.machines = append(g.machines, x)
	}
	v.a.bins, v.on = kept, nil
	for x, n := range v.upcoming { // coming, and not used by the answer
		for range n {
			if promised || w.Groups[x].Template.Unknown != "" {
				continue
			}
			g.machines = append(g.machines, g.open(x))
			g.machines[len(g.machines)-1].upcoming = true
		}
	}
	clear(v.upcoming)
}

// movable tells whether what a machine that is upcoming carries may as well go elsewhere.
func (g *baseline) movable(pl *bin) bool {
	return len(pl.headroom) == 0 && !slices.ContainsFunc(pl.portions, func(t binpack.Portion) bool { return !g.v.w.Demands[t.Item].Buys })
}

// improve tells whether anything got cheaper. Another round tries other machines.
func (g *baseline) improve(round int) (any bool) {
	g.judgeGroups(nil)
	base := slices.Clone(g.v.a.grow)
	odd := g.spreadViolations()
	s := mixed.Sequence(len(g.machines) + round<<20)
	sizes := []int{1, 2, 3, 2, 4, 1, 3, 6}
	for try := 0; try < improveTries && *g.work > 0; try++ {
		was, mark := g.machines, g.st.Mark()
		picked := g.pickWorst(min(sizes[try%len(sizes)], len(g.machines)), &s)
		if len(picked) == 0 {
			break
		}
		if g.replace(picked, base, s.Below(len(was))) {
			if n := g.spreadViolations(); n <= odd {
				any, odd = true, n
				continue
			}
		}
		g.machines = was
		g.st.Rollback(mark)
	}
	g.v.a.grow = base
	return any
}

// spreadViolations counts what stands in a domain that has more of what is spread than the skew
// allows: who leaves a domain makes the least less, and others too many.
func (g *baseline) spreadViolations() (odd int) {
	w := g.v.w
	terms := make([][]fit.Term, len(w.Demands))
	for i := range w.Demands {
		if class := w.Demands[i].Class; len(w.Snapshot.Classes[class].Spread) > 0 {
			terms[i] = slices.DeleteFunc(g.st.Terms(class), func(t fit.Term) bool { return t.Kind != fit.Spread || !t.Self })
		}
	}
	for _, x := range g.machines {
		for _, p := range x.portions {
			for _, t := range terms[p.Item] {
				if least, _ := g.st.Least(t); g.st.Count(t, g.st.DomainOf(t, x.node))-least > t.MaxSkew {
					odd++
				}
			}
		}
	}
	return odd
}

// pickWorst picks n machines, the first of them one of those that carry least for their cost.
func (g *baseline) pickWorst(n int, s *mixed.Sequence) []int {
	var bought []int
	for x := range g.machines {
		if !g.machines[x].upcoming {
			bought = append(bought, x)
		}
	}
	worst := -1
	for range min(3, len(bought)) {
		x := bought[s.Below(len(bought))]
		if worst < 0 || leastCost(g, g.machines[x:x+1]) > leastCost(g, g.machines[worst:worst+1]) {
			worst = x
		}
	}
	if worst < 0 {
		return nil
	}
	out := []int{worst}
	for len(out) < n {
		if x := s.Below(len(g.machines)); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// replace finds other machines for what is on some; false: none that cost less, and the
// State is to be rolled back. from is the machine that is looked at first.
func (g *baseline) replace(picked []int, base []int, from int) bool {
	w := g.v.w
	left := make([]int, len(w.Demands))
	spend := 0.0
	var bins []plannedMachine
	for n := range g.machines {
		at := (from + n) % len(g.machines)
		x := g.machines[at]
		if !slices.Contains(picked, at) {
			x.room, x.portions = slices.Clone(x.room), slices.Clone(x.portions)
			bins = append(bins, x)
			continue
		}
		for _, t := range x.portions {
			left[t.Item] += t.N
			if class := w.Demands[t.Item].Class; w.topology.Constrained[class] {
				g.st.Put(class, x.node, -t.N)
			}
		}
		if x.upcoming {
			empty, _ := w.Template(&w.Groups[x.group])
			bins = append(bins, plannedMachine{group: x.group, node: x.node, room: slices.Clone(empty), upcoming: true})
			continue
		}
		spend += g.cost[x.group]
		g.st.RemoveNode(x.node)
	}
	g.machines, g.v.a.grow = bins, slices.Clone(base)
	for x := range bins {
		if !bins[x].upcoming {
			g.v.a.grow[bins[x].group]++
		}
	}
	for _, i := range g.largest(left) {
		for x := 0; x < len(g.machines) && left[i] > 0; x++ {
			g.pour(&g.machines[x], i, left)
		}
	}
	for slices.ContainsFunc(left, func(n int) bool { return n > 0 }) {
		more, ok := g.cheapestFor(left, spend)
		if !ok {
			return false
		}
		for x := range more {
			spend -= g.cost[more[x].group]
		}
		g.machines = append(g.machines, more...)
		g.refill(left)
	}
	return spend > 1e-9
}

// cheapestFor buys machines of the group that helps most for its cost, if that is below
// what may be spent.
func (g *baseline) cheapestFor(left []int, spend float64) ([]plannedMachine, bool) {
	best, least := -1, 0.0
	for x := range g.v.w.Groups {
		if g.cost[x] >= spend-1e-9 || *g.work <= 0 {
			continue
		}
		mark := g.st.Mark()
		bins := g.estimate(x, slices.Clone(left))
		g.st.Rollback(mark)
		if len(bins) > 0 {
			if b := leastCost(g, bins); best < 0 || b < least-1e-12 {
				best, least = x, b
			}
		}
	}
	if best < 0 {
		return nil, false
	}
	bins := g.estimate(best, left)
	g.v.a.grow[best] += len(bins)
	return bins, float64(len(bins))*g.cost[best] < spend-1e-9
}

// largest are the demands with something left, by falling size.
func (g *baseline) largest(left []int) []int {
	w := g.v.w
	var order []int
	for i, n := range left {
		if n > 0 {
			order = append(order, i)
		}
	}
	value := func(i int) float64 {
		size := w.Dimensions.Class(w.Demands[i].Class)
		return binpack.CoreEquivalents(float64(size[0]), float64(size[1]))
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(value(y), value(x)) })
	return order
}

package plan

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Where pods are constrained the last step is to take a few machines out of the best answer
// and to find room for what is on them on the others, or on cheaper ones, by the
// scheduler's own rules; what got cheaper is kept, again and again.
const (
	tiedMendWork  = 250_000 // judgements of a pod and a machine
	tiedMendTries = 2_000
	tiedMendBins  = 400 // machines beyond which nothing is mended
)

// relieved returns the answer with some of its machines bought for less, where that
// stands the replay.
func (w *roundState) relieved(a *answer, cost []float64, round int) *answer {
	work := tiedMendWork
	g := &greedy{v: w.newSolver(false), st: w.topology.state, cost: cost, work: &work}
	g.v.a = a.copied()
	mark := g.st.Mark()
	g.lift()
	done := len(g.bins) > 1 && len(g.bins) <= tiedMendBins && g.relieve(round)
	if done {
		g.spend(slices.Clone(a.left))
	}
	g.st.Rollback(mark)
	if !done {
		return a
	}
	g.commit()
	g.v.verify()
	if w.outdoes(&g.v.a, a, cost) {
		return &g.v.a
	}
	return a
}

// spend buys for pods that the answer left because of a limit: with fewer machines for
// the others there may be some for them now. The next round would, otherwise.
func (g *greedy) spend(left []int) {
	if !slices.ContainsFunc(left, func(n int) bool { return n > 0 }) {
		return
	}
	base := slices.Clone(g.v.a.grow)
	for _, x := range g.bins {
		if !x.free {
			g.v.a.grow[x.group]++
		}
	}
	g.buyFor(left, leastCost)
	g.v.a.grow = base
}

// copied is an answer that can be changed without the other.
func (a *answer) copied() answer {
	out := *a
	out.grow, out.on, out.left = slices.Clone(a.grow), slices.Clone(a.on), slices.Clone(a.left)
	out.places, out.shares = slices.Clone(a.places), slices.Clone(a.shares)
	for p := range out.places {
		pl := &out.places[p]
		pl.room, pl.parts, pl.spare = slices.Clone(pl.room), slices.Clone(pl.parts), slices.Clone(pl.spare)
	}
	for i := range out.shares {
		out.shares[i] = slices.Clone(a.shares[i])
	}
	return out
}

// lift takes the machines that are bought out of the answer; all places and what is on
// them are in the State then.
func (g *greedy) lift() {
	v, w := g.v, g.v.w
	promised := w.promised()
	var kept []place
	for _, pl := range v.a.places {
		x := bin{group: pl.group, node: pl.node, room: pl.room}
		if pl.node < 0 {
			x = g.open(pl.group)
		}
		for _, t := range pl.parts {
			if class := w.want[t.item].class; w.topology.constrained[class] {
				g.st.Put(class, x.node, t.n)
			}
		}
		x.free = !pl.fresh
		if x.free && pl.node < 0 {
			v.coming[pl.group]--
		}
		if pl.node >= 0 || x.free && (promised || !g.plain(&pl)) {
			kept = append(kept, pl)
			continue
		}
		for _, t := range pl.parts {
			if t.n > 0 {
				x.parts = append(x.parts, t)
				fit.Take(x.room, w.size(w.want[t.item].class), t.n)
				v.add(t.item, pl.group, -t.n, pl.fresh)
				v.a.left[t.item] += t.n
			}
		}
		if pl.fresh {
			v.a.grow[pl.group]--
		}
		g.bins = append(g.bins, x)
	}
	v.a.places, v.on = kept, nil
	for x, n := range v.coming { // coming, and not used by the answer
		for range n {
			if promised || w.groups[x].Template.Unknown != "" {
				continue
			}
			g.bins = append(g.bins, g.open(x))
			g.bins[len(g.bins)-1].free = true
		}
	}
	clear(v.coming)
}

// plain tells whether what a machine that is coming carries may as well go elsewhere.
func (g *greedy) plain(pl *place) bool {
	return len(pl.spare) == 0 && !slices.ContainsFunc(pl.parts, func(t portion) bool { return !g.v.w.want[t.item].buys })
}

// relieve tells whether anything got cheaper. Another round tries other machines.
func (g *greedy) relieve(round int) (any bool) {
	g.judge(nil)
	base := slices.Clone(g.v.a.grow)
	odd := g.uneven()
	s := lcg(len(g.bins) + round<<20)
	sizes := []int{1, 2, 3, 2, 4, 1, 3, 6}
	for try := 0; try < tiedMendTries && *g.work > 0; try++ {
		was, mark := g.bins, g.st.Mark()
		picked := g.weak(min(sizes[try%len(sizes)], len(g.bins)), &s)
		if len(picked) == 0 {
			break
		}
		if g.replace(picked, base, s.below(len(was))) {
			if n := g.uneven(); n <= odd {
				any, odd = true, n
				continue
			}
		}
		g.bins = was
		g.st.Rollback(mark)
	}
	g.v.a.grow = base
	return any
}

// uneven counts what stands in a domain that has more of what is spread than the skew
// allows: who leaves a domain makes the least less, and others too many.
func (g *greedy) uneven() (odd int) {
	w := g.v.w
	terms := make([][]fit.Term, len(w.want))
	for i := range w.want {
		if class := w.want[i].class; len(w.s.Classes[class].Spread) > 0 {
			terms[i] = slices.DeleteFunc(g.st.Terms(class), func(t fit.Term) bool { return t.Kind != fit.Even || !t.Self })
		}
	}
	for _, x := range g.bins {
		for _, p := range x.parts {
			for _, t := range terms[p.item] {
				if least, _ := g.st.Least(t); g.st.Count(t, g.st.DomainOf(t, x.node))-least > t.MaxSkew {
					odd++
				}
			}
		}
	}
	return odd
}

// weak picks n machines, the first of them one of those that carry least for their cost.
func (g *greedy) weak(n int, s *lcg) []int {
	var bought []int
	for x := range g.bins {
		if !g.bins[x].free {
			bought = append(bought, x)
		}
	}
	worst := -1
	for range min(3, len(bought)) {
		x := bought[s.below(len(bought))]
		if worst < 0 || leastCost(g, g.bins[x:x+1]) > leastCost(g, g.bins[worst:worst+1]) {
			worst = x
		}
	}
	if worst < 0 {
		return nil
	}
	out := []int{worst}
	for len(out) < n {
		if x := s.below(len(g.bins)); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// replace finds other machines for what is on some; false: none that cost less, and the
// State is to be rolled back. from is the machine that is looked at first.
func (g *greedy) replace(picked []int, base []int, from int) bool {
	w := g.v.w
	left := make([]int, len(w.want))
	spend := 0.0
	var bins []bin
	for n := range g.bins {
		at := (from + n) % len(g.bins)
		x := g.bins[at]
		if !slices.Contains(picked, at) {
			x.room, x.parts = slices.Clone(x.room), slices.Clone(x.parts)
			bins = append(bins, x)
			continue
		}
		for _, t := range x.parts {
			left[t.item] += t.n
			if class := w.want[t.item].class; w.topology.constrained[class] {
				g.st.Put(class, x.node, -t.n)
			}
		}
		if x.free {
			empty, _ := w.template(&w.groups[x.group])
			bins = append(bins, bin{group: x.group, node: x.node, room: slices.Clone(empty), free: true})
			continue
		}
		spend += g.cost[x.group]
		g.st.RemoveNode(x.node)
	}
	g.bins, g.v.a.grow = bins, slices.Clone(base)
	for x := range bins {
		if !bins[x].free {
			g.v.a.grow[bins[x].group]++
		}
	}
	for _, i := range g.largest(left) {
		for x := 0; x < len(g.bins) && left[i] > 0; x++ {
			g.pour(&g.bins[x], i, left)
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
		g.bins = append(g.bins, more...)
		g.refill(left)
	}
	return spend > 1e-9
}

// cheapestFor buys machines of the group that helps most for its cost, if that is below
// what may be spent.
func (g *greedy) cheapestFor(left []int, spend float64) ([]bin, bool) {
	best, least := -1, 0.0
	for x := range g.v.w.groups {
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

// largest are the wants with something left, by falling size.
func (g *greedy) largest(left []int) []int {
	w := g.v.w
	var order []int
	for i, n := range left {
		if n > 0 {
			order = append(order, i)
		}
	}
	value := func(i int) float64 {
		size := w.space.Class(w.want[i].class)
		return coreEquivalents(float64(size[0]), float64(size[1]))
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(value(y), value(x)) })
	return order
}

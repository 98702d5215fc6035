package plan

import (
	"slices"
)

// The warm start of a mixed packing is what simple rules would buy. With many classes and large
// machines the master problem may use up all its work before it has one whole answer, and
// what the expander found, group by group, can be far from good: of 200 mixes that were
// drawn at random two had been bought for less by Cluster Autoscaler's rule or
// Karpenter's. Every kind of machine is tried as the one that is filled first, and what
// it does not take goes to the kinds that help most for their cost.

// warmStartSteps bounds the steps of one warm start; a step is a class and a machine.
const warmStartSteps = 3_000_000

// warmStartOrders are the orders in which classes are placed.
var warmStartOrders = [...]int{byPair, byShare, byCPU, byMemory, bySum}

// warmStarts completes an answer that costs cost and has used up used of the kinds in every
// such way. It leaves all that it is given as it is.
func (b *mixed) warmStarts(left, used []int, out []mixedBins, cost float64) {
	looks, lent := warmStartSteps, new(arena)
	for _, order := range warmStartOrders {
		for lead := -1; lead < len(b.machineTypes) && looks > 0; lead++ {
			o := warmStart{b: b, left: slices.Clone(left), used: slices.Clone(used), order: order, steps: &looks, arena: lent, out: slices.Clip(out), cost: cost}
			if lead >= 0 {
				o.buy(lead, o.estimate(lead))
			}
			for o.cost < b.cost && o.buyBest() {
			}
			if !slices.ContainsFunc(o.left, func(n int) bool { return n > 0 }) {
				b.take(o.out, o.cost)
			}
		}
	}
}

// warmStart is one rule at work.
type warmStart struct {
	b          *mixed
	left, used []int
	order      int
	steps      *int
	arena      *arena
	out        []mixedBins
	cost       float64
}

// estimate fills machines of a kind with what is left.
func (o *warmStart) estimate(k int) packing {
	kd := &o.b.machineTypes[k]
	p := problem{empty: kd.empty, limit: kd.limit - o.used[k], arena: o.arena, items: o.arena.items.alloc(0, len(o.left))}
	for r, n := range o.left {
		p.items = append(p.items, item{size: o.b.sizes[r], count: n, fresh: n > 0 && kd.may[r]})
	}
	f := p.firstFit(p.order(o.order))
	*o.steps -= len(p.items) * (1 + len(f.fresh))
	return f
}

// buy takes the machines of an estimation over.
func (o *warmStart) buy(k int, f packing) {
	for _, m := range f.fresh {
		x := mixedBins{machineType: k, times: m.times, content: make([]int32, len(o.left))}
		for _, t := range m.portions {
			x.content[t.item] += int32(t.n)
			o.left[t.item] -= t.n * m.times
		}
		o.out = append(o.out, x)
	}
	o.used[k] += f.bins
	o.cost += float64(float64(f.bins) * o.b.machineTypes[k].cost)
}

// buyBest buys the machines of the kind that helps most for its cost; false: there is
// none.
func (o *warmStart) buyBest() bool {
	best, least := -1, 0.0
	var bought packing
	o.arena.reset()
	for k := range o.b.machineTypes {
		if *o.steps <= 0 {
			return false
		}
		f := o.estimate(k)
		if f.bins == 0 {
			continue
		}
		if c := o.b.machineTypes[k].cost * float64(f.bins) / o.value(&f); best < 0 || c < least*(1-1e-12) {
			best, least, bought = k, c, f
		}
	}
	if best >= 0 {
		o.buy(best, bought)
	}
	return best >= 0
}

// value is what the content of machines asks for, in cores.
func (o *warmStart) value(f *packing) float64 {
	sum := 0.0
	for _, m := range f.fresh {
		for _, t := range m.portions {
			size, n := o.b.sizes[t.item], float64(t.n*m.times)
			sum += float64(n*coreEquivalents(float64(size[0]), float64(size[1]))) + float64(n*0.01)
		}
	}
	return sum
}

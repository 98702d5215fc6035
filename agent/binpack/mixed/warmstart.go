package mixed

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
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
var warmStartOrders = [...]int{binpack.ByPair, binpack.ByShare, binpack.ByCPU, binpack.ByMemory, binpack.BySum}

// WarmStarts completes an answer that costs cost and has used up used of the kinds in every
// such way. It leaves all that it is given as it is.
func (b *Problem) WarmStarts(left, used []int, out []Bins, cost float64) {
	looks := warmStartSteps
	for _, order := range warmStartOrders {
		for lead := -1; lead < len(b.MachineTypes) && looks > 0; lead++ {
			o := warmStart{b: b, left: slices.Clone(left), used: slices.Clone(used), order: order, steps: &looks, out: slices.Clip(out), cost: cost}
			if lead >= 0 {
				o.buy(lead, o.estimate(lead))
			}
			for o.cost < b.Cost && o.buyBest() {
			}
			if !slices.ContainsFunc(o.left, func(n int) bool { return n > 0 }) {
				b.take(o.out, o.cost)
			}
		}
	}
}

// warmStart is one rule at work.
type warmStart struct {
	b          *Problem
	left, used []int
	order      int
	steps      *int
	out        []Bins
	cost       float64
}

// estimate fills machines of a kind with what is left.
func (o *warmStart) estimate(k int) binpack.Packing {
	kd := &o.b.MachineTypes[k]
	p := binpack.Problem{Empty: kd.Empty, Limit: kd.Limit - o.used[k], Items: make([]binpack.Item, 0, len(o.left))}
	for r, n := range o.left {
		p.Items = append(p.Items, binpack.Item{Size: o.b.Sizes[r], Count: n, Fresh: n > 0 && kd.May[r]})
	}
	f := p.FirstFit(p.Order(o.order))
	*o.steps -= len(p.Items) * (1 + len(f.Fresh))
	return f
}

// buy takes the machines of an estimation over.
func (o *warmStart) buy(k int, f binpack.Packing) {
	for _, m := range f.Fresh {
		x := Bins{MachineType: k, Times: m.Times, Content: make([]int32, len(o.left))}
		for _, t := range m.Portions {
			x.Content[t.Item] += int32(t.N)
			o.left[t.Item] -= t.N * m.Times
		}
		o.out = append(o.out, x)
	}
	o.used[k] += f.Bins
	o.cost += float64(float64(f.Bins) * o.b.MachineTypes[k].Cost)
}

// buyBest buys the machines of the kind that helps most for its cost; false: there is
// none.
func (o *warmStart) buyBest() bool {
	best, least := -1, 0.0
	var bought binpack.Packing
	for k := range o.b.MachineTypes {
		if *o.steps <= 0 {
			return false
		}
		f := o.estimate(k)
		if f.Bins == 0 {
			continue
		}
		if c := o.b.MachineTypes[k].Cost * float64(f.Bins) / o.value(&f); best < 0 || c < least*(1-1e-12) {
			best, least, bought = k, c, f
		}
	}
	if best >= 0 {
		o.buy(best, bought)
	}
	return best >= 0
}

// value is what the content of machines asks for, in cores.
func (o *warmStart) value(f *binpack.Packing) float64 {
	sum := 0.0
	for _, m := range f.Fresh {
		for _, t := range m.Portions {
			size, n := o.b.Sizes[t.Item], float64(t.N*m.Times)
			sum += float64(n*binpack.CoreEquivalents(float64(size[0]), float64(size[1]))) + float64(n*0.01)
		}
	}
	return sum
}

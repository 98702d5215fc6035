package plan

import "slices"

// The opening of a blend is what simple rules would buy. With many classes and large
// machines the programme may use up all its work before it has one whole answer, and
// what the expander found, group by group, can be far from good: of 200 mixes that were
// drawn at random two had been bought for less by Cluster Autoscaler's rule or
// Karpenter's. Every kind of machine is tried as the one that is filled first, and what
// it does not take goes to the kinds that help most for their cost.

// openingLooks bounds the looks at a class and a machine of one opening.
const openingLooks = 3_000_000

// openings are the orders in which classes are placed.
var openings = [...]int{byPair, byShare, byCPU, byMemory, bySum}

// open completes an answer that costs cost and has used up used of the kinds in every
// such way. It leaves all that it is given as it is.
func (b *blender) open(left, used []int, out []filled, cost float64) {
	looks, lent := openingLooks, new(arena)
	for _, order := range openings {
		for lead := -1; lead < len(b.kinds) && looks > 0; lead++ {
			o := opening{b: b, left: slices.Clone(left), used: slices.Clone(used), order: order, looks: &looks, arena: lent, out: slices.Clip(out), cost: cost}
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

// opening is one rule at work.
type opening struct {
	b          *blender
	left, used []int
	order      int
	looks      *int
	arena      *arena
	out        []filled
	cost       float64
}

// estimate fills machines of a kind with what is left.
func (o *opening) estimate(k int) packing {
	kd := &o.b.kinds[k]
	p := problem{empty: kd.empty, limit: kd.limit - o.used[k], arena: o.arena, loads: o.arena.loads.alloc(0, len(o.left))}
	for r, n := range o.left {
		p.loads = append(p.loads, load{size: o.b.sizes[r], count: n, fresh: n > 0 && kd.may[r]})
	}
	f := p.firstFit(p.order(o.order))
	*o.looks -= len(p.loads) * (1 + len(f.fresh))
	return f
}

// buy takes the machines of an estimation over.
func (o *opening) buy(k int, f packing) {
	for _, m := range f.fresh {
		x := filled{kind: k, times: m.times, content: make([]int32, len(o.left))}
		for _, t := range m.parts {
			x.content[t.load] += int32(t.n)
			o.left[t.load] -= t.n * m.times
		}
		o.out = append(o.out, x)
	}
	o.used[k] += f.bins
	o.cost += float64(float64(f.bins) * o.b.kinds[k].cost)
}

// buyBest buys the machines of the kind that helps most for its cost; false: there is
// none.
func (o *opening) buyBest() bool {
	best, least := -1, 0.0
	var bought packing
	o.arena.reset()
	for k := range o.b.kinds {
		if *o.looks <= 0 {
			return false
		}
		f := o.estimate(k)
		if f.bins == 0 {
			continue
		}
		if c := o.b.kinds[k].cost * float64(f.bins) / o.value(&f); best < 0 || c < least*(1-1e-12) {
			best, least, bought = k, c, f
		}
	}
	if best >= 0 {
		o.buy(best, bought)
	}
	return best >= 0
}

// value is what the content of machines asks for, in cores.
func (o *opening) value(f *packing) float64 {
	sum := 0.0
	for _, m := range f.fresh {
		for _, t := range m.parts {
			size, n := o.b.sizes[t.load], float64(t.n*m.times)
			sum += float64(n*cores(float64(size[0]), float64(size[1]))) + float64(n*0.01)
		}
	}
	return sum
}

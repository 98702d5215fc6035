package plan

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

const (
	// fewerMachinesFactor is how much more an answer with fewer machines may cost: every machine
	// has costs of its own (DaemonSets, an address, a start) that no price tells.
	fewerMachinesFactor = 1.05
	maxSmallerGroups    = 3 // smaller groups that are tried beneath one
)

// twoSizePacking answers with machines of two sizes. Where pods keep away from each other, so
// many machines must come that most of them may be small; what these cannot hold makes
// a few of them large.
func (v *solver) twoSizePacking(o *option, p *problem) *option {
	n, axis := p.lowerBoundFrom(v.w.space.Len())
	if n < 2 || n > p.limit || o.k.unplaced() > 0 || len(o.set) > 1 || v.upcoming[o.group] > 0 {
		return nil
	}
	bases := v.smallerGroups(o.group, p, n)
	if len(bases) == 0 {
		return nil
	}
	order := p.order(byShare)
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(p.items[y].size[axis], p.items[x].size[axis]) })
	var best *option
	for _, g := range bases {
		two := v.packOnSmaller(o, p, order, n, axis, g)
		if two == nil {
			continue
		}
		v.rightsize(two, p)
		if best == nil || v.total(two) < v.total(best) {
			best = two
		}
	}
	if best == nil {
		return nil
	}
	if few, much := best.k.bins < o.k.bins, v.total(best)/v.total(o); much < 1 || few && much <= fewerMachinesFactor {
		return best
	}
	return nil
}

// smallerGroups are the largest groups of which n machines would not be enough.
func (v *solver) smallerGroups(than int, p *problem, n int) []int {
	per := make([]int64, v.w.space.Len())
	for i := range p.items {
		for j := range per {
			per[j] += p.items[i].size[j] * int64(p.items[i].count)
		}
	}
	ladder := v.groupsByCost()
	var out []int
	for x := len(ladder) - 1; x >= 0 && len(out) < maxSmallerGroups; x-- {
		g := ladder[x]
		if v.cost(g) >= v.cost(than) || v.w.topology != nil && v.w.topology.groupDomain[g] != v.w.topology.groupDomain[than] || v.room(g) < n {
			continue
		}
		empty, _ := v.w.template(&v.w.groups[g])
		for j, sum := range per {
			if empty[j]*int64(n) < sum {
				out = append(out, g)
				break
			}
		}
	}
	return out
}

// packOnSmaller packs in an order into n machines of group g and makes as many of them machines of the
// option's group as the rest needs.
func (v *solver) packOnSmaller(o *option, p *problem, order []int, n, axis, g int) *option {
	empty, _ := v.w.template(&v.w.groups[g])
	narrow := *p
	narrow.limit, narrow.empty = n, empty
	more := make([]int64, len(p.empty))
	for j := range more {
		more[j] = p.empty[j] - empty[j]
	}
	for i := range p.items { // those that need a large machine each leave so many small ones fewer
		if l := &p.items[i]; l.size[axis] > 0 && l.size[axis] == p.empty[axis] && fit.MaxFit(empty, l.size) == 0 {
			narrow.limit -= l.count
		}
	}
	k := narrow.firstFit(order)
	narrow.limit = n
	got, large := narrow.packTwoSizes(&k, order, more, v.room(o.group))
	if got == nil {
		return nil
	}
	two := &option{group: o.group, set: o.set, which: o.which, k: *got, fresh: got.bins, groups: make([]int, 0, len(got.fresh))}
	for x := range got.fresh {
		if x < large {
			two.groups = append(two.groups, o.group)
			continue
		}
		if !v.allFit(got.fresh[x].portions, o.which, g) {
			return nil
		}
		two.groups = append(two.groups, g)
		got.fresh[x].room = slices.Clone(got.fresh[x].room)
		for j, m := range more {
			got.fresh[x].room[j] += m
		}
	}
	return two
}

// total is what the machines of an option cost.
func (v *solver) total(o *option) float64 {
	sum := 0.0
	for x, f := range o.k.fresh {
		g := o.group
		if o.groups != nil {
			g = o.groups[x]
		}
		sum += v.cost(g) * float64(f.times)
	}
	return sum
}

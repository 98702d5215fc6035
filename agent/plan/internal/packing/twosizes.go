package packing

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// fewerMachinesFactor is how much more a solution with fewer machines may cost: every machine
// has costs of its own (DaemonSets, an address, a start) that no price tells.
const fewerMachinesFactor = 1.05

// twoSizePacking packs into machines of two sizes. Where pods keep away from each other, so
// many machines must come that most of them may be small; what these cannot hold makes
// a few of them large.
func (v *Solver) twoSizePacking(o *option, p *binpack.Problem) *option {
	n, dimension := p.LowerBoundFrom(v.w.Dimensions.Len())
	if n < 2 || n > p.Limit || o.k.Unplaced() > 0 || len(o.set) > 1 || v.upcoming[o.group] > 0 {
		return nil
	}
	bases := v.smallerGroups(o.group, p, n)
	if len(bases) == 0 {
		return nil
	}
	order := p.Order(binpack.ByShare)
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(p.Items[y].Size[dimension], p.Items[x].Size[dimension]) })
	var best *option
	for _, g := range bases {
		two := v.packOnSmaller(o, p, order, n, dimension, g)
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
	if few, much := best.k.Bins < o.k.Bins, v.total(best)/v.total(o); much < 1 || few && much <= fewerMachinesFactor {
		return best
	}
	return nil
}

// withLargerOnes is the option that makes some machines of the best one larger, where the share of machines that this saves
// is more than the share that it costs more. Where an operator has given an order of groups, it is the best one. It costs the
// options.
func (v *Solver) withLargerOnes(best *option, all []*option) *option {
	if !v.w.costsAdd() {
		return best
	}
	for _, o := range all {
		if slices.Contains(o.groups, best.group) && o.group != best.group && o.fresh < best.fresh && slices.Equal(o.which, best.which) && o.left <= best.left &&
			v.total(o)*float64(o.fresh) < v.total(best)*float64(best.fresh) {
			best = o
		}
	}
	return best
}

// smallerGroups are the smallest group of which n machines would be enough if packing left no gaps, and the next one, of which
// they would not be.
func (v *Solver) smallerGroups(than int, p *binpack.Problem, n int) []int {
	share := make([]int64, v.w.Dimensions.Len()) // what each of n machines has to hold
	for i := range p.Items {
		for j := range share {
			share[j] += p.Items[i].Size[j] * int64(p.Items[i].Count)
		}
	}
	for j := range share {
		share[j] = (share[j] + int64(n) - 1) / int64(n)
	}
	ranks := v.w.MachineRanks()
	var out []int
	for _, g := range slices.Backward(v.groupsByRank()) {
		if ranks[g] >= ranks[than] || v.cost(g) >= v.cost(than) || v.w.Topology != nil && v.w.Topology.GroupDomain[g] != v.w.Topology.GroupDomain[than] || v.room(g) < n {
			continue
		}
		out = append(out, g)
		if empty, _ := v.w.Template(&v.w.Groups[g]); !binpack.Fits(empty, share) {
			break
		}
	}
	return out[max(0, len(out)-2):]
}

// packOnSmaller packs in an order into n machines of group g and makes as many of them machines of the
// option's group as the rest needs.
func (v *Solver) packOnSmaller(o *option, p *binpack.Problem, order []int, n, dimension, g int) *option {
	empty, _ := v.w.Template(&v.w.Groups[g])
	narrow := *p
	narrow.Limit, narrow.Empty = n, empty
	more := make([]int64, len(p.Empty))
	for j := range more {
		more[j] = p.Empty[j] - empty[j]
	}
	for i := range p.Items { // those that need a large machine each leave so many small ones fewer
		if l := &p.Items[i]; l.Size[dimension] > 0 && l.Size[dimension] == p.Empty[dimension] && binpack.MaxFit(empty, l.Size) == 0 {
			narrow.Limit -= l.Count
		}
	}
	k := narrow.FirstFit(order)
	narrow.Limit = n
	got, large := narrow.PackTwoSizes(&k, order, more, v.room(o.group))
	if got == nil {
		return nil
	}
	two := &option{Purchase: Purchase{group: o.group, fresh: got.Bins}, set: o.set, which: o.which, k: *got, groups: make([]int, 0, len(got.Fresh))}
	for x := range got.Fresh {
		if x < large {
			two.groups = append(two.groups, o.group)
			continue
		}
		if !v.allFit(got.Fresh[x].Portions, o.which, g) {
			return nil
		}
		two.groups = append(two.groups, g)
		got.Fresh[x].Room = slices.Clone(got.Fresh[x].Room)
		for j, m := range more {
			got.Fresh[x].Room[j] += m
		}
	}
	return two
}

// total is the cost of all machines of an option.
func (v *Solver) total(o *option) float64 {
	sum := 0.0
	for x, f := range o.k.Fresh {
		g := o.group
		if o.groups != nil {
			g = o.groups[x]
		}
		sum += v.cost(g) * float64(f.Times)
	}
	return sum
}

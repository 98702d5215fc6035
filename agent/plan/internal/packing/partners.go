package packing

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
)

// Partners are the peers of g that this solution can use beside it: they can still be
// grown or have machines coming, and take the same pods as g.
func (v *Solver) Partners(g int) []int {
	set := v.w.Peers(g)
	if len(set) == 1 {
		return set
	}
	var out []int
	for _, o := range set {
		if o == g || v.own(o) > 0 && !v.done[o] && v.takesSame(g, o) {
			out = append(out, o)
		}
	}
	return out
}

// takesSame tells whether two groups take the same of the pods that are left. Of pods that are divided among zones only groups
// of one zone do.
func (v *Solver) takesSame(g, o int) bool {
	for i := range v.w.Demands {
		if v.Solution.Left[i] > 0 && v.w.Demands[i].Buys && v.w.fits(i, g) != v.w.fits(i, o) {
			return false
		}
	}
	return true
}

// own is how many machines of one group this solution may still fill.
func (v *Solver) own(g int) int { return v.upcoming[g] + v.room(g) }

// together is how many machines several groups may fill between them.
func (v *Solver) together(set []int) int {
	n := 0
	for _, g := range set {
		n += v.upcoming[g]
	}
	return n + growth.Together(v.w.State, v.Solution.Grow, set)
}

// Smallest is the room that a machine of every group of a set has.
func (v *Solver) Smallest(set []int) []int64 {
	empty, _ := v.w.Template(&v.w.Groups[set[0]])
	for _, g := range set[1:] {
		other, _ := v.w.Template(&v.w.Groups[g])
		empty = slices.Clone(empty)
		for j := range empty {
			empty[j] = min(empty[j], other[j])
		}
	}
	return empty
}

// next is the group of a set that gets the next machine: one whose machine is upcoming
// already; else the smallest by what it then has, and of those the first by its ID.
func (v *Solver) next(set []int, chosen int) int {
	if len(set) == 1 {
		return chosen
	}
	for _, g := range set {
		if v.upcoming[g] > 0 {
			return g
		}
	}
	open := slices.DeleteFunc(slices.Clone(set), func(g int) bool { return v.own(g) <= 0 })
	if len(open) == 0 {
		return chosen
	}
	return slices.MinFunc(open, func(a, b int) int {
		ga, gb := &v.w.Groups[a], &v.w.Groups[b]
		return cmp.Or(cmp.Compare(ga.Size+ga.Grow+v.Solution.Grow[a], gb.Size+gb.Grow+v.Solution.Grow[b]), cmp.Compare(a, b))
	})
}

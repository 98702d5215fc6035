package judge

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// The simple rules count pods by size alone: what depends on other pods is for the trial to
// show.

// wasteOf is the expander least-waste: the shares of cpu and memory of n machines that stay
// unused.
func (j *model) wasteOf(g int, took []int64, n int) float64 {
	c := &j.w.Groups[g].Template.Capacity
	return 2 - float64(took[0])/float64(max(c.MilliCPU, 1))/float64(n) - float64(took[1])/float64(max(c.Memory, 1))/float64(n)
}

// autoscalerPurchase buys as Cluster Autoscaler does: machines of the group that wastes least with what
// they take, and then of the next for what is left. It costs, for each group that is bought, the groups times the
// classes times the machines.
func (j *model) autoscalerPurchase() []int {
	left, x := j.waiting(), make([]int, len(j.cost))
	for range j.groups {
		best, least, machines := -1, 0.0, 0
		var rest map[int]int
		for _, g := range j.groups {
			n, took, after := j.estimate(g, left)
			if n == 0 {
				continue
			}
			if b := j.wasteOf(g, took, n); best < 0 || b < least-1e-12 {
				best, least, machines, rest = g, b, n, after
			}
		}
		if best < 0 {
			break
		}
		x[best] += machines
		left = rest
	}
	return x
}

// estimate packs pods of all classes that one group takes into its machines, first fit, by
// falling size.
func (j *model) estimate(g int, left map[int]int) (n int, took []int64, rest map[int]int) {
	took, rest = make([]int64, j.w.Dimensions.Len()), make(map[int]int)
	order := slices.Clone(j.order)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(j.scoreOn(b, g), j.scoreOn(a, g)) })
	var bins [][]int64
	for _, c := range order {
		k := left[c]
		if k == 0 {
			continue
		}
		if !j.takes(c, g) {
			rest[c] = k
			continue
		}
		size := j.w.Dimensions.Class(c)
		binpack.Sub(took, size, -k)
		for b := 0; k > 0; b++ {
			if b == len(bins) {
				bins = append(bins, slices.Clone(j.rooms[g]))
			}
			m := min(k, binpack.MaxFit(bins[b], size))
			binpack.Sub(bins[b], size, m)
			k -= m
		}
	}
	return len(bins), took, rest
}

// scoreOn is the sum of the shares of cpu and memory of a group's machine that a pod asks for.
func (j *model) scoreOn(class, g int) float64 {
	size, room := j.w.Dimensions.Class(class), j.rooms[g]
	return float64(size[0])/float64(max(room[0], 1)) + float64(size[1])/float64(max(room[1], 1))
}

// openMachine is a machine of which the group is still open.
type openMachine struct {
	options []int // groups that it may become
	used    []int64
	pods    int
}

// karpenterPurchase buys as Karpenter does: pods by falling cpu and then memory, each onto the planned
// machine with the fewest pods that some group could still provide; in the end each becomes
// the cheapest that it may. It costs the pods times the machines.
func (j *model) karpenterPurchase() []int {
	left := j.waiting()
	order := slices.Clone(j.order)
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := j.w.Dimensions.Class(a), j.w.Dimensions.Class(b)
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	var all []*openMachine
	for _, c := range order {
		for range left[c] {
			best := -1
			for i, x := range all {
				if (best < 0 || x.pods < all[best].pods) && slices.ContainsFunc(x.options, func(g int) bool { return j.stillFits(c, g, x.used) }) {
					best = i
				}
			}
			if best < 0 {
				best = len(all)
				all = append(all, &openMachine{options: slices.Clone(j.groups), used: make([]int64, j.w.Dimensions.Len())})
			}
			x := all[best]
			x.options = slices.DeleteFunc(x.options, func(g int) bool { return !j.stillFits(c, g, x.used) })
			if len(x.options) == 0 { // no group takes the class
				all = all[:best]
				break
			}
			x.pods++
			binpack.Sub(x.used, j.w.Dimensions.Class(c), -1)
		}
	}
	out := make([]int, len(j.cost))
	for _, x := range all {
		out[slices.MinFunc(x.options, func(a, b int) int { return cmp.Compare(j.cost[a], j.cost[b]) })]++
	}
	return out
}

// stillFits tells whether a group's machine that so much is on takes one pod more.
func (j *model) stillFits(class, g int, used []int64) bool {
	for k, v := range j.w.Dimensions.Class(class) {
		if v > 0 && used[k]+v > j.rooms[g][k] {
			return false
		}
	}
	return j.takes(class, g)
}

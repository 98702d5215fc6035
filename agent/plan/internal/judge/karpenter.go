package judge

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// openMachine is a machine of which the group is still open.
type openMachine struct {
	options []int // groups that it may become
	used    []int64
	pods    int
}

// karpenterPurchase buys as Karpenter does, by size alone (what depends on other pods is for the trial to show): pods by falling cpu and then memory, each onto the planned
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

package scaleup

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// Pods that the model leaves may still count on machines that the scheduler has not used yet:
// where these have room for all pods in another arrangement, the scheduler may find it. Pods
// that depend on nobody are packed anew to see that. Where some depend on others, how these
// could stand is not known, and the room of all these machines together has to do for what
// is bought once and not twice (loosely).

// keepReserved takes pods off what is left that an earlier round counted on machines which
// the scheduler has not used yet. It returns them by class and group.
func (j *judge) keepReserved(left map[int]int) map[int][]int {
	if j.reserved == nil {
		return nil
	}
	return j.keepByRoom(left, 0, j.w.topology != nil, func(class, g, n int) int {
		if by := j.reserved[class]; by != nil {
			return min(n, by[g])
		}
		return 0
	})
}

// keepOnNew takes pods off what is left that the new machines have room for.
func (j *judge) keepOnNew(left map[int]int, loosely bool) map[int][]int {
	return j.keepByRoom(left, j.nodes, loosely, func(_, _, n int) int { return n })
}

// unused is the group of a node that pods may count on beyond what the scheduler would bind
// there; -1: it is used already.
func (j *judge) unused(node int) int {
	switch {
	case node >= j.nodes:
		return j.bought[node-j.nodes]
	case j.expected != nil:
		return j.expected[node]
	}
	return -1
}

// keepByRoom takes pods off what is left, large ones first, as far as the unused nodes from
// one on have room for them and most allows. It costs the classes times the nodes.
func (j *judge) keepByRoom(left map[int]int, from int, loosely bool, most func(class, g, n int) int) map[int][]int {
	kept := make(map[int][]int)
	extra := j.repack(left, from)
	sums := make([][]int64, len(j.cost)) // by group, what its unused nodes have room for together
	for i := from; i < j.sim.Nodes(); i++ {
		if g := j.unused(i); g >= 0 {
			if sums[g] == nil {
				sums[g] = make([]int64, j.w.Dimensions.Len())
			}
			binpack.Sub(sums[g], j.sim.Room(i)[:len(sums[g])], -1)
		}
	}
	for _, c := range j.order {
		size := j.w.Dimensions.Class(c)
		for g := 0; g < len(sums) && left[c] > 0; g++ {
			if sums[g] == nil || !j.takes(c, g) {
				continue
			}
			n := most(c, g, left[c])
			if j.constrained(c) || loosely {
				n = min(n, max(binpack.MaxFit(sums[g], size), extra[c]))
			} else {
				n = min(n, extra[c])
			}
			if n <= 0 {
				continue
			}
			extra[c] -= min(n, extra[c])
			binpack.Sub(sums[g], size, n)
			if kept[c] == nil {
				kept[c] = make([]int, len(sums))
			}
			kept[c][g] += n
			left[c] -= n
		}
	}
	return kept
}

// repack tells by class how many of the pods that are left have room when the pods that
// depend on nobody are put anew on the unused nodes from one on, large ones first.
func (j *judge) repack(left map[int]int, from int) map[int]int {
	rooms, count := make([][]int64, j.sim.Nodes()), make(map[int]int)
	for i := from; i < len(rooms); i++ {
		if j.unused(i) >= 0 {
			rooms[i] = slices.Clone(j.sim.Room(i)[:j.w.Dimensions.Len()])
		}
	}
	for _, p := range j.sim.Placed(j.begin) {
		if rooms[p.Node] != nil && !j.constrained(p.Class) {
			binpack.Sub(rooms[p.Node], j.w.Dimensions.Class(p.Class), -p.Count)
			count[p.Class] += p.Count
		}
	}
	extra := make(map[int]int)
	for _, c := range j.order {
		if j.constrained(c) || count[c]+left[c] == 0 {
			continue
		}
		size, n := j.w.Dimensions.Class(c), count[c]+left[c]
		for i := from; i < len(rooms) && n > 0; i++ {
			if rooms[i] == nil || !j.takes(c, j.unused(i)) {
				continue
			}
			k := min(n, binpack.MaxFit(rooms[i], size))
			binpack.Sub(rooms[i], size, k)
			n -= k
		}
		extra[c] = max(left[c]-n, 0)
		if n > left[c] { // packed worse than the scheduler would: nothing is proven
			return map[int]int{}
		}
	}
	return extra
}

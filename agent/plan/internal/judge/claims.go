package judge

import (
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// Pods that the model leaves may still count on machines that the scheduler has not used yet:
// where these have room for all pods in another arrangement, the scheduler may find it. Pods
// that depend on no other pod are packed anew to see that. Another arrangement of pods that depend
// on others is not looked for: it is enough that all these machines of a group together have the room: no pod is
// bought for twice then. No new machine is claimed for a pod that depends on others and that the model refuses.

// keepReserved takes pods off what is left that an earlier round counted on machines which
// the scheduler has not used yet. It returns them by class and group.
func (j *model) keepReserved(left map[int]int) map[int][]int {
	if j.reserved == nil {
		return nil
	}
	return j.keepByRoom(left, 0, func(class, g, n int) int {
		if by := j.reserved[class]; by != nil {
			return min(n, by[g])
		}
		return 0
	})
}

// keepOnNew takes pods off what is left that the new machines have room for.
func (j *model) keepOnNew(left map[int]int) map[int][]int {
	return j.keepByRoom(left, j.nodes, func(_, _, n int) int { return n })
}

// unused is the group of a node that pods may count on beyond what the scheduler would bind
// there; -1: it is used already.
func (j *model) unused(node int) int {
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
func (j *model) keepByRoom(left map[int]int, from int, most func(class, g, n int) int) map[int][]int {
	kept := make(map[int][]int)
	_, extra := j.repack(left, from)
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
			room := extra[c]
			if j.constrained(c) {
				room = binpack.MaxFit(sums[g], size)
			}
			n := min(most(c, g, left[c]), room)
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

// repack puts the pods that depend on no other pod anew on the unused nodes from one on, large ones first, together
// with those that are left. It returns where they are then, and by class how many of those that are left have room; none,
// where fewer have room than the scheduler has bound. It costs the classes times the nodes.
func (j *model) repack(left map[int]int, from int) (packed []schedsim.Placement, extra map[int]int) {
	rooms, count := make([][]int64, j.sim.Nodes()), make(map[int]int)
	for i := from; i < len(rooms); i++ {
		if j.unused(i) >= 0 {
			rooms[i] = slices.Clone(j.sim.Room(i)[:j.w.Dimensions.Len()])
		}
	}
	for _, p := range j.placed(j.begin) {
		if rooms[p.Node] != nil && !j.constrained(p.Class) {
			binpack.Sub(rooms[p.Node], j.w.Dimensions.Class(p.Class), -p.Count)
			count[p.Class] += p.Count
		}
	}
	extra = make(map[int]int)
	for _, c := range j.order {
		if j.constrained(c) {
			continue
		}
		size, n := j.w.Dimensions.Class(c), count[c]+left[c]
		for i := from; i < len(rooms) && n > 0; i++ {
			if rooms[i] == nil || !j.takes(c, j.unused(i)) {
				continue
			}
			if k := min(n, binpack.MaxFit(rooms[i], size)); k > 0 {
				binpack.Sub(rooms[i], size, k)
				packed = append(packed, schedsim.Placement{Class: c, Node: i, Count: k})
				n -= k
			}
		}
		if n > left[c] {
			return nil, map[int]int{}
		}
		extra[c] = left[c] - n
	}
	return packed, extra
}

// keepHeadroom takes pieces of headroom off what is left that new machines have room for in another arrangement, and
// returns how many. kube-scheduler spreads pods over all machines and leaves none of them free. Where a limit allows no
// more machines for the pieces, they count on the room that is there: the next round would see it, and buy for them.
// It costs repack where headroom is left.
func (j *model) keepHeadroom(left map[int]int) (kept int) {
	pieces := make(map[int]int)
	for c, n := range left {
		if j.w.HeadroomName(c) != "" {
			pieces[c] = n
		}
	}
	if len(pieces) == 0 {
		return 0
	}
	_, extra := j.repack(pieces, j.nodes)
	for c, n := range pieces {
		n = min(n, extra[c])
		left[c] -= n
		kept += n
	}
	return kept
}

// arrangement is where all pods are: where the model has put them, or, where it leaves some that unused machines
// have room for, where repack puts them. bound are the pods of the queue that it has put somewhere, stuck those that it left
// and that no purchase helps.
func (j *model) arrangement(bound []schedsim.Placement, stuck map[int]int) []schedsim.Placement {
	left := make(map[int]int)
	for _, c := range j.order {
		left[c] = j.lacking[c] - stuck[c]
	}
	for _, p := range bound {
		left[p.Class] -= p.Count
	}
	maps.DeleteFunc(left, func(_, n int) bool { return n <= 0 })
	placed, most := j.placed(j.begin), 0
	out := placed
	for _, from := range []int{j.nodes, 0} {
		packed, extra := j.repack(left, from)
		if sum := sumOf(extra); sum > most {
			most = sum
			out = slices.DeleteFunc(slices.Clone(placed), func(p schedsim.Placement) bool {
				return p.Node >= from && j.unused(p.Node) >= 0 && !j.constrained(p.Class)
			})
			out = append(out, packed...)
		}
	}
	return out
}

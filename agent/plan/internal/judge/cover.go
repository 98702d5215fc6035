package judge

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
)

// coverLeft covers pods that are left on the cluster as it is, with machines of some groups:
// each time those of the group whose machine takes most for its cost, filled as the
// scheduler would. It returns how many remain. It costs the machines times the groups times
// the classes, and the pods.
func (j *model) coverLeft(x []int, left map[int]int, groups []int) (total int) {
	if !slices.ContainsFunc(j.order, func(c int) bool { return left[c] > 0 && j.constrained(c) }) {
		return j.coverByCount(x, left, groups)
	}
	for total = sumOf(left); total > 0; {
		best, ratio := -1, 0.0
		for _, g := range groups {
			if r := j.worth(x, left, g, len(groups) == 1); r > ratio*(1+1e-9) {
				best, ratio = g, r
			}
		}
		if best < 0 {
			return total
		}
		for first, again := true, true; again && total > 0; first = false {
			m := j.mark()
			j.add(best)
			took, fully := j.fill(left)
			total -= took
			if took == 0 {
				j.rollback(m)
				if first { // with one group alone nothing was tried before
					return total
				}
				break // a spread may ask for a machine of another zone first
			}
			x[best]++
			// The same machine again, as long as it would be filled by the same pods.
			again = fully && total > 4*took && j.may(x, best)
		}
	}
	return total
}

// worth divides the pods that one more machine of a group would take by its price; 0: the machine may not be bought.
// Pods that depend on others are bound to see; the others are counted by size.
func (j *model) worth(x []int, left map[int]int, g int, alone bool) float64 {
	if !j.may(x, g) {
		return 0
	}
	if alone {
		return 1
	}
	m := j.mark()
	added, value := false, 0.0
	room := slices.Clone(j.rooms[g])
	for _, c := range j.order {
		n := left[c]
		if n == 0 {
			continue
		}
		size := j.w.Dimensions.Class(c)
		if j.constrained(c) {
			if !added {
				j.add(g)
				added = true
			}
			n = j.sim.Bind(c, n)
		} else if n = min(n, binpack.MaxFit(room, size)); !j.takes(c, g) {
			n = 0
		}
		binpack.Sub(room, size, n)
		value += float64(n) * (binpack.CoreEquivalents(float64(size[0]), float64(size[1])) + 0.01)
	}
	j.rollback(m)
	return value / j.cost[g]
}

// fill binds what is left, large pods first. It returns how many pods were bound, and whether
// some of each class that was asked are still left.
func (j *model) fill(left map[int]int) (took int, fully bool) {
	fully = true
	for _, c := range j.order {
		if left[c] > 0 {
			n := j.sim.Bind(c, left[c])
			left[c] -= n
			took += n
			fully = fully && left[c] > 0
		}
	}
	return took, fully
}

// constrained tells whether where a class may go depends on where other pods are.
func (j *model) constrained(class int) bool {
	return j.w.packer.Topology != nil && j.w.packer.Topology.Constrained[class]
}

// coverByCount is coverLeft for pods that depend on no other pod: no node has room for any of
// them, so that each machine is filled by itself, and the model is not asked. It costs the
// machines of different content times the groups times the classes.
func (j *model) coverByCount(x []int, left map[int]int, groups []int) (total int) {
	total = sumOf(left)
	for total > 0 && !j.sim.Spent() {
		best, ratio, content := -1, 0.0, []int(nil)
		for _, g := range groups {
			if !j.may(x, g) {
				continue
			}
			value, took := j.fillEmpty(left, g)
			if r := value / j.cost[g]; r > ratio*(1+1e-9) {
				best, ratio, content = g, r, took
			}
		}
		if best < 0 {
			return total
		}
		for again := true; again && j.may(x, best); {
			x[best]++
			for i, n := range content {
				left[j.order[i]] -= n
				total -= n
			}
			for i, n := range content {
				again = again && left[j.order[i]] >= n
			}
		}
	}
	return total
}

// fillEmpty fills an empty machine of a group, large pods first. It returns the pods by their position in
// model.order, and their worth.
func (j *model) fillEmpty(left map[int]int, g int) (value float64, took []int) {
	j.sim.Steps += 1 + len(j.order)/8
	room := slices.Clone(j.rooms[g])
	took = make([]int, len(j.order))
	for i, c := range j.order {
		if left[c] == 0 || !j.takes(c, g) {
			continue
		}
		size := j.w.Dimensions.Class(c)
		took[i] = min(left[c], binpack.MaxFit(room, size))
		binpack.Sub(room, size, took[i])
		value += float64(took[i]) * (binpack.CoreEquivalents(float64(size[0]), float64(size[1])) + 0.01)
	}
	return value, took
}

// within tells whether the limits allow a purchase.
func (j *model) within(x []int) bool {
	x, ok := j.spread(x)
	return ok && growth.Allows(j.w.State, x)
}

// may tells whether the limits allow one machine of a group more.
func (j *model) may(x []int, g int) bool {
	x[g]++
	ok := j.within(x)
	x[g]--
	return ok
}

package purchase

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// firstGroups is how many groups are tried as the first one.
const firstGroups = 12

// proposals are purchases for what is left: machine after machine by worth for price, of all groups, shared out over zones, and of one
// group as far as it goes.
func (b *board) proposals() (out [][]int) {
	add := func(x []int) {
		if !slices.ContainsFunc(out, func(o []int) bool { return slices.Equal(o, x) }) && b.within(x) {
			out = append(out, x)
		}
	}
	x, left := b.none(), slices.Clone(b.left)
	b.cover(x, left, b.groups)
	copy(b.stuck, left)
	add(x)
	if sum(b.pieces) > 0 {
		x = slices.Clone(x)
		b.cover(x, slices.Clone(b.pieces), b.groups)
		add(x)
	}
	add(b.overZones(x))
	rank := b.rank()
	for k, g := range rank[:min(len(rank), firstGroups)] {
		if k > 2 && b.sim.Steps > b.limit {
			break
		}
		x := b.none()
		b.cover(x, slices.Clone(b.left), []int{g}, b.groups)
		add(x)
	}
	return out
}

// overZones is a purchase with the machines of equal groups shared out evenly, where pods are spread over zones.
func (b *board) overZones(x []int) []int {
	if b.zones == nil {
		return x
	}
	x = slices.Clone(x)
	for _, g := range b.groups {
		same, n := slices.DeleteFunc(slices.Clone(b.groups), func(o int) bool { return !near(b.cost[o], b.cost[g]) || !slices.Equal(b.rooms[o], b.rooms[g]) }), 0
		for _, o := range same {
			n += x[o]
		}
		for k, o := range same {
			x[o] = (n + len(same) - 1 - k) / len(same)
		}
	}
	return x
}

// near tells whether two costs differ in nothing but what breaks ties between equal machines.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-4*b }

// rank is the groups that may be bought, the cheapest first if all pods could be split.
func (b *board) rank() []int {
	need := b.needs()
	cost := func(g int) float64 { return share(need, b.rooms[g]) * b.cost[g] }
	out := slices.Clone(b.groups)
	slices.SortStableFunc(out, func(x, y int) int { return cmp.Compare(cost(x), cost(y)) })
	return out
}

// needs sums up the requests of what is left and can be helped.
func (b *board) needs() []int64 {
	need := make([]int64, b.Dimensions.Len())
	for _, c := range b.order {
		if b.units[c] > 0 {
			binpack.Sub(need, b.Dimensions.Class(c), -max(b.left[c]-b.stuck[c], 0))
		}
	}
	return need
}

// cover adds machines to x for pods that are left, and takes those off left: of one list of groups after the other, each time a machine that
// takes most for its price. The board stays as it is.
func (b *board) cover(x, left []int, lists ...[]int) {
	m := b.mark()
	defer b.rollback(m)
	for _, groups := range lists {
		b.coverOn(x, left, groups)
	}
}

// coverOn is cover that leaves its machines and pods on the board. It costs the groups and the classes for each machine of another
// content.
func (b *board) coverOn(x, left []int, groups []int) {
	depend := slices.ContainsFunc(b.order, func(c int) bool { return left[c] > 0 && b.Constrained(c) })
	for sum(left) > 0 && !b.sim.Spent() {
		best, ratio := -1, 0.0
		var content []int
		for _, g := range groups {
			if !b.may(x, g) {
				continue
			}
			m := b.mark()
			took, value := b.fillNew(b.add(g), left)
			b.rollback(m)
			if value/b.cost[g] > ratio*(1+1e-9) {
				best, ratio, content = g, value/b.cost[g], took
			}
		}
		if best < 0 {
			return
		}
		for again := true; again && b.may(x, best); { // the same machine again, as long as it is filled by the same pods
			m := b.mark()
			took, _ := b.fillNew(b.add(best), left)
			if again = slices.Equal(took, content); !again {
				b.rollback(m)
				break
			}
			x[best]++
			for i, n := range content {
				left[b.order[i]] -= n
			}
			for i, n := range content {
				again = again && left[b.order[i]] >= n
			}
		}
		if depend {
			b.fillOpened(left)
		}
	}
}

// fillNew fills a new machine, large pods first. It returns the pods by their place in order, and what they are worth.
func (b *board) fillNew(at int, left []int) (took []int, value float64) {
	b.sim.Steps += 1 + len(b.order)/8
	took = make([]int, len(b.order))
	for i, c := range b.order {
		if left[c] == 0 {
			continue
		}
		n := b.fill(c, at, left[c])
		if n == 0 && !b.large && b.Constrained(c) { // it may open another place
			n = b.sim.Bind(c, left[c])
		}
		took[i] = n
		size := b.Dimensions.Class(c)
		value += float64(n) * (binpack.CoreEquivalents(float64(size[0]), float64(size[1])) + 0.01)
	}
	return took, value
}

// fillOpened puts pods that depend on others on places that have opened since.
func (b *board) fillOpened(left []int) {
	for _, c := range b.order {
		if left[c] > 0 && b.Constrained(c) {
			left[c] -= b.place(c, left[c])
		}
	}
}

package scaledown

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// load are N pods of a size. Takes tells whether they may go to a place, room aside.
type load struct {
	N     int
	Size  []int64
	Takes func(place int) bool
}

// fitsWherever tells whether pods that are evicted have room wherever kube-scheduler puts each of them, and in whichever order they come: its
// scores depend on its profile, and its queue on when each pod is evicted. A pod that found no room would buy a machine in place of the
// one that went. It says yes only where that is proven, and no in some worlds where it is so. Rooms are the places. It costs the square of the loads times the places up to
// enough room; where room is scarce, 30 times that. It pays that with looks, and says no when these are used up.
func fitsWherever(loads []load, rooms [][]int64, look func(n int) bool) bool {
	for i := range loads {
		if !last(i, loads, rooms, look) {
			return false
		}
	}
	return look(0)
}

// place is a place that has room for the last pod before the others come. They close it when they take so much of one dimension
// that the last pod fits no more. A closed place has lost its slots, which are as many as pods of that size had room there; slots
// count as one more dimension.
type place struct {
	need []int64 // by dimension, how much of it they have to take
	most []int   // by load, how many of them go there at most
}

// closing are the other pods, by load: those that come before the last one and may close its places.
type closing struct {
	n     []int
	takes [][]int64 // by dimension, at most
	price []float64
	order [][]int // by dimension, the loads that take most of it for their price first
}

// last tells whether the last pod of a load finds room after all others.
func last(l int, loads []load, rooms [][]int64, look func(n int) bool) bool {
	c, size, slots := &closing{}, loads[l].Size, 1
	all := len(size)
	c.order = make([][]int, all+1)
	for i := range loads {
		n, harm := loads[i].N, harm(size, loads[i].Size)
		if i == l {
			n--
		}
		slots += n * harm
		c.n, c.price, c.takes = append(c.n, n), append(c.price, float64(harm)), append(c.takes, append(slices.Clone(loads[i].Size), int64(harm)))
	}
	c.sort()
	var places []place
	for k, room := range rooms {
		if !look(len(loads)) {
			return false
		}
		n := binpack.MaxFit(room, size)
		if n == 0 || !loads[l].Takes(k) {
			continue
		}
		p := place{make([]int64, all+1), make([]int, len(loads))}
		for i := range loads {
			if p.most[i] = min(c.n[i], binpack.MaxFit(room, loads[i].Size)); p.most[i] > 0 && !loads[i].Takes(k) {
				p.most[i] = 0
			}
		}
		for d, s := range size {
			if p.need[d] = room[d] - s + 1; s == 0 {
				p.need[d] = math.MaxInt64
			}
		}
		p.need[all] = int64(n)
		places = append(places, p)
		if slots -= n; slots <= 0 || c.cheapest(&p, nil) >= never {
			return true
		}
	}
	return slots > 0 && !c.closes(places, look)
}

// harm is how many pods of a size lose their room at most where one of another size comes.
func harm(size, other []int64) int {
	n := int64(0)
	for d, s := range size {
		if s > 0 {
			n = max(n, (other[d]+s-1)/s)
		}
	}
	return int(n)
}

const never = 1e30 // what it costs to close a place that cannot be closed

// closes tells whether the others may close all places. Each of them has a price. Where closing each place in the cheapest way costs
// more than all of them together, they cannot, whatever the prices: the dual of a linear program. The prices of those that
// are wanted more often than they are there rise.
func (c *closing) closes(places []place, look func(n int) bool) bool {
	for step := 1.0; step > 0.03; step *= 0.89 {
		used, sum := make([]float64, len(c.n)), 0.0
		for k := range places {
			sum += c.cheapest(&places[k], used)
		}
		paid := 0.0
		for i, n := range c.n {
			paid += c.price[i] * float64(n)
		}
		if sum > paid*(1+1e-9) {
			return false
		}
		if !look(len(places) * len(c.n)) {
			return true
		}
		for i, n := range c.n {
			if n > 0 {
				c.price[i] *= math.Exp(step * (min(used[i]/float64(n), 3) - 1))
			}
		}
		c.sort()
	}
	return true
}

func (c *closing) sort() {
	for d := range c.order {
		c.order[d] = c.order[d][:0]
		for i := range c.n {
			if c.n[i] > 0 && c.takes[i][d] > 0 {
				c.order[d] = append(c.order[d], i)
			}
		}
		slices.SortFunc(c.order[d], func(a, b int) int {
			return cmp.Compare(c.price[a]*float64(c.takes[b][d]), c.price[b]*float64(c.takes[a][d]))
		})
	}
}

// cheapest is what it costs at least to close a place: by the cheapest dimension, and by its slots. It adds to used which pods do, in parts of pods.
func (c *closing) cheapest(p *place, used []float64) float64 {
	slots := len(p.need) - 1
	by, cost := 0, c.cost(p, 0)
	for d := 1; d < slots; d++ {
		if x := c.cost(p, d); x < cost {
			by, cost = d, x
		}
	}
	if x := c.cost(p, slots); x > cost {
		by, cost = slots, x
	}
	if used != nil {
		c.cover(p, by, float64(p.need[by]), -1, 0, used)
	}
	return cost
}

// cost is what it costs at least to close a place by a dimension. Of the load of which a part of a pod would do, one more
// whole pod goes there, or none.
func (c *closing) cost(p *place, d int) float64 {
	need := float64(p.need[d])
	sum, part, n := c.cover(p, d, need, -1, 0, nil)
	if whole := math.Floor(n); part >= 0 && n > whole {
		less, _, _ := c.cover(p, d, need, part, whole, nil)
		more, _, _ := c.cover(p, d, need-(whole+1)*float64(c.takes[part][d]), part, 0, nil)
		return max(sum, min(less, more+(whole+1)*c.price[part]))
	}
	return sum
}

// cover closes a place by one dimension with the cheapest pods first, and takes at most so many pods of the load one. It returns the
// price, and the last load with how many of its pods it took, of which the last may be a part.
func (c *closing) cover(p *place, d int, left float64, one int, most float64, used []float64) (sum float64, last int, n float64) {
	last = -1
	for _, i := range c.order[d] {
		if left <= 0 {
			return sum, last, n
		}
		takes := float64(c.takes[i][d])
		last, n = i, float64(p.most[i])
		if i == one {
			n = most
		}
		enough := left / takes
		if left -= n * takes; left <= 0 {
			n = enough
		}
		if sum += n * c.price[i]; used != nil {
			used[i] += n
		}
	}
	if left > 0 {
		return never, -1, 0
	}
	return sum, last, n
}

package yardstick

import (
	"cmp"
	"math"
	"slices"
)

// Bound is a price that no purchase for all pods of the mix can go below.
//
// It is the linear programme of Gilmore and Gomory over the contents of one machine of
// every group, solved by adding columns. Where it has not converged, or a best column
// was not proven, Farley's scaling of the prices still gives a valid bound. Ties are
// left out (anti-affinity on the host stays as "at most one of the class in a column"),
// which can only lower it.
func (m *Mix) Bound() float64 {
	c := newMaster(m)
	c.solve()
	return c.lower
}

const (
	eps        = 1e-9
	masterMost = 4000   // columns entered
	columnMost = 40_000 // steps of one search for a column
)

// column is the content of one machine.
type column struct {
	group   int
	content []int32 // by class
}

// master is the programme: cover every class, at the least price.
type master struct {
	m     *Mix
	n     int
	inv   [][]float64
	x     []float64
	basis []column // group -1: surplus
	lower float64
}

func newMaster(m *Mix) *master {
	n := len(m.Count)
	c := &master{m: m, n: n, inv: make([][]float64, n), x: make([]float64, n), basis: make([]column, n)}
	for i := range n { // begin with machines that hold one class each, the cheapest way
		best, per := -1, 0
		for g := range m.empty {
			k := c.cap(i, g, m.empty[g])
			if k > 0 && (best < 0 || m.price(g)/float64(k) < m.price(best)/float64(per)) {
				best, per = g, k
			}
		}
		c.inv[i] = make([]float64, n)
		c.inv[i][i] = 1 / float64(per)
		c.x[i] = float64(m.Count[i]) / float64(per)
		c.basis[i] = column{best, make([]int32, n)}
		c.basis[i].content[i] = int32(per)
	}
	return c
}

func (m *Mix) price(g int) float64 { return m.Snapshot.Groups[g].Price }

// cap is how many pods of a class a room of a group takes.
func (c *master) cap(class, g int, room []int64) int {
	if !c.m.fits[class][g] {
		return 0
	}
	most := int64(c.m.Count[class])
	if c.m.Tie[class] == AntiHost {
		most = 1
	}
	for j, v := range c.m.space.Class(class) {
		if v > 0 {
			most = min(most, room[j]/v)
		}
	}
	return int(max(most, 0))
}

func (c *master) solve() {
	y := make([]float64, c.n)
	steps := 0 // of the search for a column, beyond greed
	for range masterMost {
		for i := range y {
			y[i] = 0
		}
		for r, b := range c.basis {
			if b.group >= 0 {
				p := c.m.price(b.group)
				for k, v := range c.inv[r] {
					y[k] += p * v
				}
			}
		}
		surplus := -1
		for i, v := range y {
			if v < -eps && (surplus < 0 || v < y[surplus]) {
				surplus = i
			}
		}
		if surplus >= 0 {
			col := make([]float64, c.n)
			col[surplus] = -1
			if !c.enter(col, column{group: -1}) {
				return
			}
			continue
		}
		value := 0.0
		for i, v := range y {
			value += v * float64(c.m.Count[i])
		}
		scale, better := 1.0, false
		var entering []column
		for g := range c.m.empty {
			content, worth, most := c.price(g, y, steps)
			scale = min(scale, c.m.price(g)/max(most, c.m.price(g)))
			if worth > c.m.price(g)*(1+1e-7) {
				entering, better = append(entering, column{g, content}), true
			}
		}
		c.lower = max(c.lower, value*scale)
		switch {
		case c.lower > value*(1-1e-4), !better && steps == columnMost:
			return
		case !better: // greed finds nothing more: search
			steps = min(steps*8+500, columnMost)
			continue
		}
		// The best of this round first; the others may have lost their worth by then, and
		// cost a pivot each, which is less than the search for them.
		slices.SortStableFunc(entering, func(a, b column) int {
			return cmp.Compare(c.worth(b, y)/c.m.price(b.group), c.worth(a, y)/c.m.price(a.group))
		})
		for k, e := range entering[:min(len(entering), 6)] {
			col := make([]float64, c.n)
			for i, v := range e.content {
				col[i] = float64(v)
			}
			if k > 0 && !c.attractive(e) {
				continue
			}
			if !c.enter(col, e) {
				return
			}
		}
	}
}

func (c *master) worth(e column, y []float64) float64 {
	sum := 0.0
	for i, v := range e.content {
		sum += y[i] * float64(v)
	}
	return sum
}

// attractive tells whether a column still has a negative reduced cost.
func (c *master) attractive(e column) bool {
	y := make([]float64, c.n)
	for r, b := range c.basis {
		if b.group >= 0 {
			p := c.m.price(b.group)
			for k, v := range c.inv[r] {
				y[k] += p * v
			}
		}
	}
	return c.worth(e, y) > c.m.price(e.group)*(1+1e-7)
}

// enter is one pivot.
func (c *master) enter(col []float64, what column) bool {
	u := make([]float64, c.n)
	out, ratio := -1, math.Inf(1)
	for r := range c.n {
		for k, v := range col {
			if v != 0 {
				u[r] += c.inv[r][k] * v
			}
		}
		if u[r] > 1e-7 {
			if q := c.x[r] / u[r]; q < ratio-1e-12 || q < ratio+1e-12 && out >= 0 && u[r] > u[out] {
				out, ratio = r, q
			}
		}
	}
	if out < 0 {
		return false
	}
	pivot := c.inv[out]
	for k := range pivot {
		pivot[k] /= u[out]
	}
	for r := range c.n {
		if r == out || u[r] == 0 {
			continue
		}
		row := c.inv[r]
		for k, v := range pivot {
			row[k] -= u[r] * v
		}
		c.x[r] = max(c.x[r]-ratio*u[r], 0)
	}
	c.x[out], c.basis[out] = ratio, what
	return true
}

// knapsack searches for the most valuable content of a machine: depth first over the
// classes by value per share, cut off by the fractional answer to the one constraint
// that the axes add up to under the best of a few weights.
type knapsack struct {
	c     *master
	g     int
	y     []float64
	order []int
	share []float64 // by position: what one pod takes of the combined constraint
	room  []int64
	have  []int32
	best  []int32
	value float64
	steps int
}

// price returns the best content found, its worth, and what no content is worth more than.
func (c *master) price(g int, y []float64, steps int) (content []int32, worth, most float64) {
	s := &knapsack{c: c, g: g, y: y, room: slices.Clone(c.m.empty[g]), have: make([]int32, c.n), best: make([]int32, c.n), steps: steps}
	most = math.Inf(1)
	look := func(w float64) bool { // tells whether memory ran out before cpu did
		order, share := s.weigh(w)
		if bound := s.fractional(order, share, 0, 1); bound < most {
			most, s.order, s.share = bound, order, share
		}
		return s.fill(order)
	}
	low, high := 0.0, 1.0
	for range 9 { // where both run out together the bound is best, and so is the content
		if w := (low + high) / 2; look(w) {
			low = w
		} else {
			high = w
		}
	}
	s.try(0, 0, 1)
	if s.steps > 0 {
		most = s.value
	}
	return s.best, s.value, most
}

// fill takes the classes in one order, each as often as it fits.
func (s *knapsack) fill(order []int) (memoryFirst bool) {
	full := s.c.m.empty[s.g]
	room := slices.Clone(full)
	have := make([]int32, s.c.n)
	value := 0.0
	for _, i := range order {
		n := s.c.cap(i, s.g, room)
		have[i] = int32(n)
		value += s.y[i] * float64(n)
		for j, v := range s.c.m.space.Class(i) {
			room[j] -= v * int64(n)
		}
	}
	if value > s.value {
		s.value, s.best = value, have
	}
	return float64(room[1])/float64(full[1]) < float64(room[0])/float64(full[0])
}

// weigh orders the classes by worth for w of memory's share and 1-w of cpu's.
func (s *knapsack) weigh(w float64) ([]int, []float64) {
	full := s.c.m.empty[s.g]
	var order []int
	share := make([]float64, s.c.n)
	for i := range s.c.n {
		if s.y[i] <= eps || s.c.cap(i, s.g, full) == 0 {
			continue
		}
		size := s.c.m.space.Class(i)
		share[i] = max((1-w)*float64(size[0])/float64(full[0])+w*float64(size[1])/float64(full[1]), 1e-12)
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(s.y[b]/share[b], s.y[a]/share[a]), cmp.Compare(a, b)) })
	by := make([]float64, len(order))
	for k, i := range order {
		by[k] = share[i]
	}
	return order, by
}

// fractional is the most that positions from k on are worth in what is left of the
// combined constraint.
func (s *knapsack) fractional(order []int, share []float64, k int, left float64) float64 {
	sum := 0.0
	for ; k < len(order); k++ {
		n := float64(s.c.m.Count[order[k]])
		if s.c.m.Tie[order[k]] == AntiHost {
			n = 1
		}
		if n*share[k] >= left {
			return sum + s.y[order[k]]*left/share[k]
		}
		sum += n * s.y[order[k]]
		left -= n * share[k]
	}
	return sum
}

func (s *knapsack) try(k int, value, left float64) {
	if value > s.value+1e-12 {
		s.value = value
		copy(s.best, s.have)
	}
	if k == len(s.order) || s.steps <= 0 {
		return
	}
	s.steps--
	if value+s.fractional(s.order, s.share, k, left) <= s.value*(1+1e-9)+1e-12 {
		return
	}
	i := s.order[k]
	size := s.c.m.space.Class(i)
	for n := s.c.cap(i, s.g, s.room); n >= 0; n-- {
		for j, v := range size {
			s.room[j] -= v * int64(n)
		}
		s.have[i] = int32(n)
		s.try(k+1, value+s.y[i]*float64(n), left-s.share[k]*float64(n))
		s.have[i] = 0
		for j, v := range size {
			s.room[j] += v * int64(n)
		}
		if s.steps <= 0 {
			return
		}
	}
}

package mixed

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// mixedKnapsack is the search for the most valuable content of one machine: depth first over
// the classes by worth per share, cut off by the fractional answer to one constraint
// that combines the axes.
type mixedKnapsack struct {
	b     *Problem
	k     int
	left  []int
	y     []float64
	order []int
	share []float64 // by position
	room  []int64
	have  []int32
	best  []int32
	value float64
	steps int
	stop  float64 // a value that is good enough once some steps are done
	soon  int
	ranks []ranked
	rest  [2]float64 // shares of cpu and memory that the last baseline content left
}

// knapsackRows is what beginning a search costs, in rows: an answer of thousands of machines is
// improved by as many tiny searches, and their beginnings are most of what they cost.
const knapsackRows = 10

func (b *Problem) knapsack(k int, left []int, y []float64, steps int, stop float64) *mixedKnapsack {
	s := &mixedKnapsack{b: b, k: k, left: left, y: y, room: slices.Clone(b.MachineTypes[k].Empty), have: make([]int32, len(left)), best: make([]int32, len(left)), steps: steps, stop: stop, soon: steps / 8}
	least := math.Inf(1)
	var rows []int
	for r := range left {
		if left[r] > 0 && y[r] > mixedEps && b.MachineTypes[k].May[r] {
			rows = append(rows, r)
		}
	}
	try := func(w [3]float64) {
		order, share := s.weigh(rows, w)
		s.fillByOrder(order)
		if bound := s.fractional(order, share, 0, 1); bound < least*(1-1e-12) {
			least, s.order, s.share = bound, order, share
		}
	}
	try([3]float64{0.3, 0.3, 0.4})
	low, high := 0.0, 1.0 // of memory; where cpu and memory run out together is most to be had
	for range mixedWeights {
		w := (low + high) / 2
		try([3]float64{1 - w, w, 0})
		if s.rest[1] < s.rest[0] {
			low = w
		} else {
			high = w
		}
	}
	b.work -= mixedStep * (knapsackRows + len(rows))
	for steps > 0 && s.value < stop && s.swap(rows, steps > 1) {
	}
	if steps > 1 && s.value < stop {
		s.try(0, 0, 1)
	}
	b.work -= mixedStep * (steps - s.steps)
	return s
}

func (s *mixedKnapsack) weigh(rows []int, w [3]float64) ([]int, []float64) {
	full := s.b.MachineTypes[s.k].Empty
	share := make([]float64, len(s.left))
	for _, r := range rows {
		size := s.b.Sizes[r]
		for i, axis := range [3]int{0, 1, 3} {
			if full[axis] > 0 {
				share[r] += float64(w[i] * float64(size[axis]) / float64(full[axis]))
			}
		}
		share[r] = max(share[r], 1e-9)
	}
	s.ranks = s.ranks[:0]
	for _, r := range rows {
		s.ranks = append(s.ranks, ranked{s.y[r] / share[r], r})
	}
	slices.SortFunc(s.ranks, func(a, b ranked) int {
		switch {
		case a.worth > b.worth:
			return -1
		case a.worth < b.worth:
			return 1
		}
		return a.row - b.row
	})
	order, by := make([]int, len(rows)), make([]float64, len(rows))
	for i, x := range s.ranks {
		order[i], by[i] = x.row, share[x.row]
	}
	return order, by
}

// ranked is a class and what it is worth for its share of a machine.
type ranked struct {
	worth float64
	row   int
}

// baseline fills a machine by one order.
func (s *mixedKnapsack) fillByOrder(order []int) {
	room := s.room
	value := 0.0
	for _, r := range order {
		n := min(binpack.MaxFit(room, s.b.Sizes[r]), s.left[r])
		s.have[r] = int32(n)
		if n > 0 {
			binpack.Sub(room, s.b.Sizes[r], n)
			value += float64(s.y[r] * float64(n))
		}
	}
	if value > s.value+1e-12 {
		s.value = value
		copy(s.best, s.have)
	}
	for j := range s.rest {
		s.rest[j] = float64(room[j]) / float64(max(s.b.MachineTypes[s.k].Empty[j], 1))
	}
	for _, r := range order {
		if n := int(s.have[r]); n > 0 {
			binpack.Sub(room, s.b.Sizes[r], -n)
		}
		s.have[r] = 0
	}
}

// swap looks for a better content near the best one: with one or two pods less of a
// class, or with one more that has to be made room for, and then filled up again. It
// tells whether it found one.
func (s *mixedKnapsack) swap(rows []int, wide bool) bool {
	b := s.b
	room := slices.Clone(b.MachineTypes[s.k].Empty)
	for _, r := range rows {
		binpack.Sub(room, b.Sizes[r], int(s.best[r]))
	}
	tries := 0
	better := func(without, with, n int) bool {
		tries++
		return s.exchange(room, without, with, n)
	}
	found := false
search:
	for _, r := range s.order {
		for n := 1; n <= min(2, int(s.best[r])); n++ {
			if found = better(r, -1, n); found {
				break search
			}
			for _, q := range s.order {
				if !wide || q == r || int(s.best[q]) >= s.left[q] {
					continue
				}
				if found = better(r, q, n); found {
					break search
				}
			}
		}
	}
	b.work -= 5 * tries * len(s.order)
	clear(s.have)
	copy(s.room, b.MachineTypes[s.k].Empty)
	return found
}

// exchange takes n pods of one class out of the best content, puts one pod of another class
// in (with below zero: of none), and fills the rest up. It keeps the result if that is worth
// more. room is what the best content leaves.
func (s *mixedKnapsack) exchange(room []int64, without, with, n int) bool {
	copy(s.have, s.best)
	copy(s.room, room)
	value := s.value
	change := func(r, n int) {
		binpack.Sub(s.room, s.b.Sizes[r], n)
		s.have[r] += int32(n)
		value += float64(s.y[r] * float64(n))
	}
	change(without, -n)
	if with >= 0 {
		if binpack.MaxFit(s.room, s.b.Sizes[with]) == 0 {
			return false
		}
		change(with, 1)
	}
	for _, r := range s.order {
		if r == without && with < 0 {
			continue
		}
		if n := min(binpack.MaxFit(s.room, s.b.Sizes[r]), s.left[r]-int(s.have[r])); n > 0 {
			change(r, n)
		}
	}
	if value <= s.value*(1+1e-9) {
		return false
	}
	s.value = value
	copy(s.best, s.have)
	return true
}

// fractional is the most that positions from k on are worth in what is left of the
// combined constraint.
func (s *mixedKnapsack) fractional(order []int, share []float64, k int, left float64) float64 {
	sum := 0.0
	for ; k < len(order) && left > 0; k++ {
		r := order[k]
		n := float64(s.left[r])
		if take := float64(n * share[k]); take < left {
			sum += float64(n * s.y[r])
			left -= take
			continue
		}
		return sum + float64(s.y[r]*left/share[k])
	}
	return sum
}

func (s *mixedKnapsack) try(k int, value, left float64) {
	if value > s.value+1e-12 {
		s.value = value
		copy(s.best, s.have)
	}
	if k == len(s.order) || s.steps <= 0 {
		return
	}
	s.steps--
	if s.soon--; s.soon < 0 && s.value > s.stop {
		return
	}
	if value+s.fractional(s.order, s.share, k, left) <= s.value*(1+1e-9) {
		return
	}
	r := s.order[k]
	size := s.b.Sizes[r]
	for n := min(binpack.MaxFit(s.room, size), s.left[r]); n >= 0; n-- {
		binpack.Sub(s.room, size, n)
		s.have[r] = int32(n)
		s.try(k+1, value+float64(s.y[r]*float64(n)), left-float64(s.share[k]*float64(n)))
		s.have[r] = 0
		binpack.Sub(s.room, size, -n)
		if s.steps <= 0 {
			return
		}
	}
}

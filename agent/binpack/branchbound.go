package binpack

import (
	"slices"
)

// branchSteps bounds one search. A step is one class looked at in one bin: about
// 50 ns, so that the longest search takes some milliseconds.
// A first, short search finds what is easy before columns are tried. A round with many groups
// and orders of them makes hundreds of searches: their steps are paid from the round's pool.
const (
	branchSteps      = 150_000
	firstBranchSteps = 5_000
	branchLooks      = 32  // so many looks of the lower bound at a size or a room are a step
	branchDivisor    = 2   // so many steps are one of Problem.Pool
	branchBins       = 150 // more bins than this are too deep a tree for so few steps
)

// branchBound looks for an answer with fewer fresh bins than best by bin completion: the
// next bin always takes the largest pod that is left (every answer can be written
// so), and is then completed in every maximal way, fullest first. It gives up when
// its steps are used up, and answers only when it found something better.
type branchBound struct {
	p     *Problem
	order []int
	left  []int
	best  int
	bound int
	steps int
	stack [][]Portion // the contents of the bins so far, open bins first
	found [][]Portion
}

func (p *Problem) branchAndBound(best int, placed bool, bound, steps int) (Packing, bool) {
	if p.Empty == nil && p.Infeasible() {
		return Packing{}, false
	}
	if p.Pool != nil {
		steps = max(min(steps, *p.Pool*branchDivisor), 0)
	}
	s := &branchBound{p: p, best: best, bound: bound, steps: steps}
	if !placed {
		s.best = p.Limit + 1
	}
	if len(p.Items)*(len(p.Open)+bound) > branchSteps || bound > branchBins {
		return Packing{}, false
	}
	s.order = p.Order(ByShare)
	s.left = make([]int, len(p.Items))
	for i := range p.Items {
		if !p.Items[i].Fresh && p.Empty != nil {
			return Packing{}, false
		}
		s.left[i] = p.Items[i].Count
	}
	s.descend(0, 0)
	if p.Pool != nil {
		*p.Pool -= (steps - max(s.steps, 0)) / branchDivisor
	}
	if s.found == nil {
		return Packing{}, false
	}
	k, _ := p.start()
	for b, parts := range s.found {
		for _, t := range parts {
			k.Left[t.Item] -= t.N
		}
		if b < len(p.Open) {
			k.Open[b] = parts
			continue
		}
		room := slices.Clone(p.Empty)
		for _, t := range parts {
			Sub(room, p.Items[t.Item].Size, t.N)
		}
		k.Fresh = append(k.Fresh, FreshBins{1, room, parts})
		k.Bins++
	}
	return k, true
}

// descend fills bin b, of which used are fresh; it returns true when there is no
// point in looking further.
func (s *branchBound) descend(b, used int) bool {
	first := -1
	for _, i := range s.order {
		if s.left[i] > 0 {
			first = i
			break
		}
	}
	if first < 0 {
		s.best, s.found = used, slices.Clone(s.stack)
		return s.best <= s.bound
	}
	if b >= len(s.p.Open) && s.p.Empty == nil {
		return false
	}
	s.steps -= (len(s.p.Items) + max(len(s.p.Open)-b, 0)) * len(s.p.Empty) / branchLooks
	if s.p.Empty != nil && used+s.p.bound(s.left, b) >= s.best {
		return false
	}
	if b < len(s.p.Open) {
		return s.complete(b, used, slices.Clone(s.p.Open[b]), 0, make([]int, len(s.left)), true, -1)
	}
	if used+1 > s.p.Limit || used+1 >= s.best {
		return false
	}
	return s.complete(b, used, slices.Clone(s.p.Empty), 0, make([]int, len(s.left)), false, first)
}

// complete enumerates the contents of one bin from position at of the order on.
func (s *branchBound) complete(b, used int, room []int64, at int, taken []int, open bool, forced int) bool {
	if s.steps--; s.steps < 0 {
		return true
	}
	if at == len(s.order) {
		return s.close(b, used, room, taken, open)
	}
	i := s.order[at]
	l := &s.p.Items[i]
	most := 0
	if !open && l.Fresh || open && l.mayGo(b) {
		most = min(s.left[i], MaxFit(room, l.Size))
	}
	least := 0
	if i == forced {
		least = 1
	}
	for n := most; n >= least; n-- {
		Sub(room, l.Size, n)
		taken[i] = n
		stop := s.complete(b, used, room, at+1, taken, open, forced)
		Sub(room, l.Size, -n)
		taken[i] = 0
		if stop {
			return true
		}
	}
	return false
}

// close goes on to the next bin when nothing more would go into this one: a bin that
// could take another pod is never part of a best answer that a fuller bin is not.
func (s *branchBound) close(b, used int, room []int64, taken []int, open bool) bool {
	var parts []Portion
	for i, n := range taken {
		l := &s.p.Items[i]
		may := !open && l.Fresh || open && l.mayGo(b)
		if may && s.left[i] > n && MaxFit(room, l.Size) > 0 {
			return false
		}
		if n > 0 {
			parts = append(parts, Portion{i, n})
		}
	}
	for _, t := range parts {
		s.left[t.Item] -= t.N
	}
	s.stack = append(s.stack, parts)
	next := used
	if !open {
		next++
	}
	stop := s.descend(b+1, next)
	s.stack = s.stack[:len(s.stack)-1]
	for _, t := range parts {
		s.left[t.Item] += t.N
	}
	return stop
}

// Infeasible tells that the open bins alone cannot hold everything: an axis or a class
// lacks room even when nothing else is in the way.
func (p *Problem) Infeasible() bool {
	lacks := make([]int64, len(p.Items[0].Size)) // by dimension: the demand beyond the room
	for i := range p.Items {
		for j, n := range p.Items[i].Size {
			lacks[j] += n * int64(p.Items[i].Count)
		}
	}
	for _, b := range p.Open {
		for j, n := range b {
			lacks[j] -= max(n, 0)
		}
	}
	if slices.ContainsFunc(lacks, func(n int64) bool { return n > 0 }) {
		return true
	}
	for i := range p.Items {
		if p.Items[i].roomInOpen(p.Open) < p.Items[i].Count {
			return true
		}
	}
	return false
}

// roomInOpen is how many pods of the item the open bins would take if nothing else went there;
// its count stands for more.
func (l *Item) roomInOpen(open [][]int64) (n int) {
	for b := range open {
		if n >= l.Count {
			break
		}
		if l.mayGo(b) {
			n += MaxFit(open[b], l.Size)
		}
	}
	return min(n, l.Count)
}

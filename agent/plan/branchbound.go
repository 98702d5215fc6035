package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// branchSteps bounds one search. A step is one class looked at in one bin: about
// 50 ns, so that the longest search takes some milliseconds.
// A first, short search finds what is easy before columns are tried.
const (
	branchSteps      = 150_000
	firstBranchSteps = 5_000
	branchBins       = 150 // more bins than this are too deep a tree for so few steps
)

// branchBound looks for an answer with fewer fresh bins than best by bin completion: the
// next bin always takes the largest pod that is left (every answer can be written
// so), and is then completed in every maximal way, fullest first. It gives up when
// its steps are used up, and answers only when it found something better.
type branchBound struct {
	p     *problem
	order []int
	left  []int
	best  int
	bound int
	steps int
	stack [][]portion // the contents of the bins so far, open bins first
	found [][]portion
}

func (p *problem) branchAndBound(best int, placed bool, bound, steps int) (packing, bool) {
	if p.empty == nil && p.infeasible() {
		return packing{}, false
	}
	s := &branchBound{p: p, best: best, bound: bound, steps: steps}
	if !placed {
		s.best = p.limit + 1
	}
	if len(p.items)*(len(p.open)+bound) > branchSteps || bound > branchBins {
		return packing{}, false
	}
	s.order = p.order(byShare)
	s.left = make([]int, len(p.items))
	for i := range p.items {
		if !p.items[i].fresh && p.empty != nil {
			return packing{}, false
		}
		s.left[i] = p.items[i].count
	}
	s.descend(0, 0)
	if s.found == nil {
		return packing{}, false
	}
	k, _ := p.start()
	for b, parts := range s.found {
		for _, t := range parts {
			k.left[t.item] -= t.n
		}
		if b < len(p.open) {
			k.open[b] = parts
			continue
		}
		room := slices.Clone(p.empty)
		for _, t := range parts {
			fit.Sub(room, p.items[t.item].size, t.n)
		}
		k.fresh = append(k.fresh, freshBins{1, room, parts})
		k.bins++
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
	if b >= len(s.p.open) && s.p.empty == nil {
		return false
	}
	if s.p.empty != nil && used+s.p.bound(s.left, b) >= s.best {
		return false
	}
	if b < len(s.p.open) {
		return s.complete(b, used, slices.Clone(s.p.open[b]), 0, make([]int, len(s.left)), true, -1)
	}
	if used+1 > s.p.limit || used+1 >= s.best {
		return false
	}
	return s.complete(b, used, slices.Clone(s.p.empty), 0, make([]int, len(s.left)), false, first)
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
	l := &s.p.items[i]
	most := 0
	if !open && l.fresh || open && l.goes(b) {
		most = min(s.left[i], fit.MaxFit(room, l.size))
	}
	least := 0
	if i == forced {
		least = 1
	}
	for n := most; n >= least; n-- {
		fit.Sub(room, l.size, n)
		taken[i] = n
		stop := s.complete(b, used, room, at+1, taken, open, forced)
		fit.Sub(room, l.size, -n)
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
	var parts []portion
	for i, n := range taken {
		l := &s.p.items[i]
		may := !open && l.fresh || open && l.goes(b)
		if may && s.left[i] > n && fit.MaxFit(room, l.size) > 0 {
			return false
		}
		if n > 0 {
			parts = append(parts, portion{i, n})
		}
	}
	for _, t := range parts {
		s.left[t.item] -= t.n
	}
	s.stack = append(s.stack, parts)
	next := used
	if !open {
		next++
	}
	stop := s.descend(b+1, next)
	s.stack = s.stack[:len(s.stack)-1]
	for _, t := range parts {
		s.left[t.item] += t.n
	}
	return stop
}

// infeasible tells that the open bins alone cannot hold everything: an axis or a class
// lacks room even when nothing else is in the way.
func (p *problem) infeasible() bool {
	for j := range p.items[0].size {
		var want, have int64
		for i := range p.items {
			want += p.items[i].size[j] * int64(p.items[i].count)
		}
		for _, b := range p.open {
			have += max(b[j], 0)
		}
		if want > have {
			return true
		}
	}
	for i := range p.items {
		n := 0
		for b := range p.open {
			if p.items[i].goes(b) {
				n += min(fit.MaxFit(p.open[b], p.items[i].size), p.items[i].count)
			}
		}
		if n < p.items[i].count {
			return true
		}
	}
	return false
}

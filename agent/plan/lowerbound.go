package plan

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// lowerBound is a number of fresh bins that no answer can go below: by axis, what is
// asked for beyond the open bins' room, and the pods of which no two share a bin.
func (p *problem) lowerBound() int {
	if p.empty == nil {
		return 0
	}
	left := p.ownArena().ints.alloc(len(p.items), 0)
	for i := range left {
		left[i] = p.items[i].count
	}
	return p.bound(left, 0)
}

// bound is the lower bound for what is left when the open bins from first on are
// still to be filled.
func (p *problem) bound(left []int, first int) int {
	need := 0
	for j := range p.empty {
		var want int64
		for i := range p.items {
			if p.items[i].fresh {
				want += p.items[i].size[j] * int64(left[i])
			}
		}
		for b := first; b < len(p.open); b++ {
			want -= max(p.open[b][j], 0)
		}
		if want > 0 && p.empty[j] > 0 {
			need = max(need, int((want+p.empty[j]-1)/p.empty[j]))
		}
		if first < len(p.open) {
			continue
		}
		big := 0
		for i := range p.items {
			if p.items[i].fresh && p.items[i].size[j]*2 > p.empty[j] {
				big += left[i]
			}
		}
		need = max(need, big)
	}
	if first >= len(p.open) {
		for i := range p.items {
			if per := fit.MaxFit(p.empty, p.items[i].size); p.items[i].fresh && per > 0 {
				need = max(need, (left[i]+per-1)/per)
			}
		}
	}
	return need
}

// eachFits tells whether every class for itself would fit into the open bins and n fresh
// ones.
func (p *problem) eachFits(n int) bool {
	for i := range p.items {
		l := &p.items[i]
		room := n * fit.MaxFit(p.empty, l.size)
		for b := range p.open {
			if l.goes(b) {
				room += min(fit.MaxFit(p.open[b], l.size), l.count)
			}
		}
		if room < l.count {
			return false
		}
	}
	return true
}

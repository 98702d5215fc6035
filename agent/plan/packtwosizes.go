package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// lowerBoundFrom is how many bins the axes from one on make necessary by themselves, and which
// of them does.
func (p *problem) lowerBoundFrom(from int) (need, axis int) {
	for j := from; j < len(p.empty); j++ {
		var sum int64
		for i := range p.items {
			if l := &p.items[i]; l.fresh {
				sum += l.size[j] * int64(l.count)
			}
		}
		if p.empty[j] > 0 && int((sum+p.empty[j]-1)/p.empty[j]) > need {
			need, axis = int((sum+p.empty[j]-1)/p.empty[j]), j
		}
	}
	return need, axis
}

// packTwoSizes puts what is left of an answer into bins with more room: into those that are
// enlarged already, else into one more, the emptiest first, else into a new one. p is
// the problem with the small machine. It returns nil when more
// than limit would be needed, and else how many entries are large; these come first.
func (p *problem) packTwoSizes(k *packing, order []int, more []int64, limit int) (*packing, int) {
	s := p.ownArena()
	big := packing{left: s.ints.clone(k.left, 0)}
	small := s.bins.clone(k.fresh, 0)
	room, whole := s.rooms.alloc(len(more), 0), s.rooms.alloc(len(more), 0)
	for j := range whole {
		whole[j] = p.empty[j] + more[j]
	}
	bins := k.bins
	for _, i := range order {
		size := p.items[i].size
		big.pourAll(s, i, size)
		for x := len(small) - 1; x >= 0 && big.left[i] > 0; x-- {
			for j := range room {
				room[j] = small[x].room[j] + more[j]
			}
			per := fit.MaxFit(room, size)
			for per > 0 && big.left[i] > 0 && small[x].times > 0 {
				if big.bins++; big.bins > limit {
					return nil, 0
				}
				small[x].times--
				big.fresh = s.bins.push(big.fresh, freshBins{times: 1, room: s.rooms.clone(room, 0), portions: s.portions.clone(small[x].portions, 2)})
				big.pour(s, len(big.fresh)-1, i, size)
			}
			if small[x].times == 0 {
				small = slices.Delete(small, x, x+1)
			}
		}
		for per := fit.MaxFit(whole, size); per > 0 && big.left[i] > 0 && bins < p.limit; bins++ {
			if big.bins++; big.bins > limit {
				return nil, 0
			}
			m := min(per, big.left[i])
			e := freshBins{times: 1, room: s.rooms.clone(whole, 0), portions: s.portions.push(nil, portion{i, m})}
			fit.Sub(e.room, size, m)
			big.fresh = s.bins.push(big.fresh, e)
			big.left[i] -= m
		}
		if big.left[i] > 0 {
			return nil, 0
		}
	}
	return &packing{bins: bins, open: k.open, left: big.left, fresh: s.bins.pushAll(big.fresh, small)}, len(big.fresh)
}

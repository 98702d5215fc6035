package binpack

import (
	"slices"
)

// LowerBoundFrom is how many bins the dimensions from one on make necessary by themselves, and which
// of them does.
func (p *Problem) LowerBoundFrom(from int) (need, dimension int) {
	sums := make([]int64, len(p.Empty))
	for i := range p.Items {
		if l := &p.Items[i]; l.Fresh {
			l.Take(sums, -l.Count)
		}
	}
	for j := from; j < len(p.Empty); j++ {
		if p.Empty[j] > 0 && int((sums[j]+p.Empty[j]-1)/p.Empty[j]) > need {
			need, dimension = int((sums[j]+p.Empty[j]-1)/p.Empty[j]), j
		}
	}
	return need, dimension
}

// PackTwoSizes puts what is left of an answer into bins with more room: into those that are
// enlarged already, else into one more, the emptiest first, else into a new one. p is
// the problem with the small machine. It returns nil when more
// than limit would be needed, and else how many entries are large; these come first.
func (p *Problem) PackTwoSizes(k *Packing, order []int, more []int64, limit int) (*Packing, int) {
	big := Packing{Left: slices.Clone(k.Left)}
	small := slices.Clone(k.Fresh)
	room, whole := make([]int64, len(more)), make([]int64, len(more))
	for j := range whole {
		whole[j] = p.Empty[j] + more[j]
	}
	bins := k.Bins
	for _, i := range order {
		l := &p.Items[i]
		big.pourAll(i, l)
		for x := len(small) - 1; x >= 0 && big.Left[i] > 0; x-- {
			for j := range room {
				room[j] = small[x].Room[j] + more[j]
			}
			per := l.MaxFit(room)
			for per > 0 && big.Left[i] > 0 && small[x].Times > 0 {
				if big.Bins++; big.Bins > limit {
					return nil, 0
				}
				small[x].Times--
				big.Fresh = append(big.Fresh, FreshBins{Times: 1, Room: slices.Clone(room), Portions: append(make([]Portion, 0, len(small[x].Portions)+2), small[x].Portions...)})
				big.pour(len(big.Fresh)-1, i, l)
			}
			if small[x].Times == 0 {
				small = slices.Delete(small, x, x+1)
			}
		}
		for per := l.MaxFit(whole); per > 0 && big.Left[i] > 0 && bins < p.Limit; bins++ {
			if big.Bins++; big.Bins > limit {
				return nil, 0
			}
			m := min(per, big.Left[i])
			e := FreshBins{Times: 1, Room: slices.Clone(whole), Portions: []Portion{{i, m}}}
			l.Take(e.Room, m)
			big.Fresh = append(big.Fresh, e)
			big.Left[i] -= m
		}
		if big.Left[i] > 0 {
			return nil, 0
		}
	}
	return &Packing{Bins: bins, Open: k.Open, Left: big.Left, Fresh: append(big.Fresh, small...)}, len(big.Fresh)
}

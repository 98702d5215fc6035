package binpack

import (
	"math"
	"slices"
)

// fairShareSlacks are by how much a bin may take more of a dimension than its fair share.
var fairShareSlacks = []float64{1.03, 1.3}

// packFairShare is first fit into bins that give every dimension only its fair share: where cpu
// is scarce and memory is not, the largest pods by cpu would fill the first bins and
// leave bins full of memory and idle cores behind. The remaining items then go wherever
// the bins really have room.
func (p *Problem) packFairShare(slack float64) (Packing, bool) {
	if p.Empty == nil {
		return Packing{}, false
	}
	share, n := p.fairShare(slack)
	if n < 2 || slices.Equal(share, p.Empty) {
		return Packing{}, false
	}
	narrow := *p
	narrow.Empty, narrow.Limit = share, min(p.Limit, n)
	order := narrow.Order(ByShare)
	k := narrow.FirstFit(order)
	for i := range k.Fresh {
		for j := range share {
			k.Fresh[i].Room[j] += p.Empty[j] - share[j]
		}
	}
	for _, i := range order {
		l := &p.Items[i]
		if !l.Fresh {
			continue
		}
		k.pourAll(i, l)
		p.openFresh(&k, i)
	}
	return k, true
}

// fairShare is the content of a bin in every dimension when everything is spread evenly over as
// few bins as the scarcest dimension allows, and how many these are.
func (p *Problem) fairShare(slack float64) (share []int64, n int) {
	want := make([]float64, len(p.Empty))
	most := make([]int64, len(p.Empty))
	for i := range p.Items {
		if l := &p.Items[i]; l.Fresh && l.MaxFit(p.Empty) > 0 {
			for j, v := range l.Size {
				want[j] += float64(v) * float64(l.Count)
				most[j] = max(most[j], v)
			}
		}
	}
	bins := 0.0
	for j, v := range p.Empty {
		if v > 0 {
			bins = max(bins, want[j]/float64(v))
		}
	}
	n = int(math.Ceil(bins))
	share = slices.Clone(p.Empty)
	for j := range share {
		if bins > 0 {
			share[j] = min(share[j], max(int64(math.Ceil(want[j]/bins*slack)), most[j]))
		}
	}
	return share, n
}

package plan

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// fairShareSlacks are by how much a bin may take more of an axis than its fair share.
var fairShareSlacks = []float64{1.03, 1.3}

// packFairShare is first fit into bins that give every axis only its fair share: where cpu
// is scarce and memory is not, the largest pods by cpu would fill the first bins and
// leave bins full of memory and idle cores behind. What is left over then goes wherever
// the bins really have room.
func (p *problem) packFairShare(slack float64) (packing, bool) {
	if p.empty == nil {
		return packing{}, false
	}
	share, n := p.fairShare(slack)
	if n < 2 || slices.Equal(share, p.empty) {
		return packing{}, false
	}
	narrow := *p
	narrow.empty, narrow.limit = share, min(p.limit, n)
	order := narrow.order(byShare)
	k := narrow.firstFit(order)
	for i := range k.fresh {
		for j := range share {
			k.fresh[i].room[j] += p.empty[j] - share[j]
		}
	}
	for _, i := range order {
		l := &p.items[i]
		if !l.fresh {
			continue
		}
		k.pourAll(p.ownArena(), i, l.size)
		p.openFresh(&k, i)
	}
	return k, true
}

// fairShare is what a bin holds of every axis when everything is spread evenly over as
// few bins as the scarcest axis allows, and how many these are.
func (p *problem) fairShare(slack float64) (share []int64, n int) {
	want := make([]float64, len(p.empty))
	most := make([]int64, len(p.empty))
	for i := range p.items {
		if l := &p.items[i]; l.fresh && fit.MaxFit(p.empty, l.size) > 0 {
			for j, v := range l.size {
				want[j] += float64(v) * float64(l.count)
				most[j] = max(most[j], v)
			}
		}
	}
	bins := 0.0
	for j, v := range p.empty {
		if v > 0 {
			bins = max(bins, want[j]/float64(v))
		}
	}
	n = int(math.Ceil(bins))
	share = slices.Clone(p.empty)
	for j := range share {
		if bins > 0 {
			share[j] = min(share[j], max(int64(math.Ceil(want[j]/bins*slack)), most[j]))
		}
	}
	return share, n
}

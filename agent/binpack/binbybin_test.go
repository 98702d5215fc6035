package binpack

import (
	"math/rand/v2"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// TestBinByBin: bin by bin, the same is packed as by first fit, but for the looks for nothing after
// which a bin is left; with open bins, with items that fit nowhere, and within a limit.
func TestBinByBin(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	r := rand.New(rand.NewPCG(seed, 9))
	for range 60 * times {
		p := someProblem(r)
		p.Items = p.Items[:0]
		for range 1 + r.IntN(600) {
			var on Bins
			for b := range p.Open {
				if r.IntN(2) == 0 {
					on.Add(b)
				}
			}
			p.Items = append(p.Items, Item{Size: []int64{10 + r.Int64N(600), 16 + r.Int64N(2400), 0, 1}, Count: 1 + r.IntN(3), Fresh: r.IntN(20) > 0, On: on})
		}
		if r.IntN(3) == 0 {
			p.Items[0].Size[1] = 5000
		}
		if r.IntN(4) == 0 {
			p.Limit = r.IntN(40)
		}
		byFit, byBin := ready(p).FirstFit(p.Order(ByShare)), p.packBinByBin()
		verify(t, p, &byBin)
		if p.Limit == 1000 && byBin.Unplaced() != byFit.Unplaced() || byBin.Bins > byFit.Bins+byFit.Bins/50 {
			t.Errorf("bin by bin %d bins and %d left, by first fit %d and %d: limit %d, %s", byBin.Bins, byBin.Unplaced(), byFit.Bins, byFit.Unplaced(), p.Limit, describe(p))
		}
	}
}

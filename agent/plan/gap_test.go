package plan

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestGap(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	gap, slow := 0, time.Duration(0)
	for i := range 200 {
		p := &problem{empty: []int64{2000, 4096, 1 << 40, 110}, limit: 1000}
		for range 2 + r.IntN(5) {
			p.loads = append(p.loads, load{size: []int64{50 + r.Int64N(30)*50, 64 + r.Int64N(40)*64, 0, 1}, count: 5 + r.IntN(80), fresh: true, on: []bool{}})
		}
		at := time.Now()
		k := pack(p)
		slow = max(slow, time.Since(at))
		verify(t, p, &k)
		b := p.lowerBound()
		if _, least, _ := p.cut(&k); least > b {
			b = least
		}
		if k.bins > b {
			gap++
			t.Logf("%d: %d over bound %d: %s", i, k.bins, b, describe(p))
		}
	}
	t.Logf("%d of 200 above the bound; slowest %s", gap, slow)
}

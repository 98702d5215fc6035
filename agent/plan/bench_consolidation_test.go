package plan

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkConsolidationLook is one look for savings, which a cluster at rest costs once a minute.
func BenchmarkConsolidationLook(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		for _, use := range []int{40, 60, 90} {
			b.Run(fmt.Sprintf("N=%d/U=%d", n, use), func(b *testing.B) {
				s := rounds{nodes: n, use: use}.snapshot()
				for g := range s.Groups {
					s.Groups[g].Price = 0.5 + 0.05*float64(g)
				}
				p := policy()
				p.Consolidate, p.ConsolidateSaving, p.ConsolidateAfter, p.ConsolidatePodCost = "priced", 0.1, 5*time.Minute, 1
				p.UnneededFor = time.Hour
				e := new(Engine)
				_, m := e.Decide(s, settled(e, &s), p)
				measure(b, func(int) {
					s.Now = s.Now.Add(time.Minute)
					for g := range s.Groups {
						s.Groups[g].ReadAt = s.Now
					}
					_, m = e.Decide(s, m, p)
				})
			})
		}
	}
}

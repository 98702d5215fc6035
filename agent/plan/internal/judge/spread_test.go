package judge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestBalancedPurchasesAreSpreadEvenly compares with giving machine by machine to the smallest
// group, the first of equal ones.
func TestBalancedPurchasesAreSpreadEvenly(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0x6e))
		groups := make([]round.Group, 2+r.IntN(5))
		for g := range groups {
			groups[g].NodeGroup = new(cluster.NodeGroup)
		}
		w := New(packing.New(&round.State{Groups: groups}))
		var set []int
		room := 0
		for g := range w.Groups {
			gr := &w.Groups[g]
			gr.Size, gr.Grow, gr.Max = r.IntN(6), r.IntN(2), r.IntN(12)
			if r.IntN(5) > 0 {
				set = append(set, g)
				room += max(gr.Max-gr.Size-gr.Grow, 0)
			}
		}
		if len(set) == 0 {
			continue
		}
		n := 1 + r.IntN(30)
		j := &model{w: w, balanced: make([][]int, len(w.Groups))}
		j.balanced[set[0]] = set
		x, want := make([]int, len(w.Groups)), make([]int, len(w.Groups))
		x[set[0]] = n
		got, ok := j.spread(x)
		if ok != (room >= n) {
			t.Fatalf("seed %d: %d machines, room for %d: %t", seed, n, room, ok)
		}
		if !ok {
			continue
		}
		for range n {
			best, least := -1, 0
			for _, g := range set {
				gr := &w.Groups[g]
				if size := gr.Size + gr.Grow + want[g]; size < gr.Max && (best < 0 || size < least) {
					best, least = g, size
				}
			}
			want[best]++
		}
		if !slices.Equal(got, want) || x[set[0]] != n {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		if back := j.gathered(got); !slices.Equal(back, x) {
			t.Fatalf("seed %d: gathered %v, want %v", seed, back, x)
		}
	}
}

package binpack

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// TestBins holds a set against a list.
func TestBins(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0xb1))
	for range 200 {
		var sets [2]Bins
		var list, got []int
		for range r.IntN(40) {
			b := r.IntN(300)
			sets[r.IntN(2)].Add(b)
			list = append(list, b)
		}
		set := sets[0]
		set.AddAll(sets[1])
		slices.Sort(list)
		list = slices.Compact(list)
		for b := set.Next(0); b >= 0; b = set.Next(b + 1) {
			got = append(got, b)
		}
		if !slices.Equal(got, list) {
			t.Fatalf("the set yields %v of %v", got, list)
		}
	}
}

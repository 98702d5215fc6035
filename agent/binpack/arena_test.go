package binpack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestArena packs the same problems in an arena that is reset again and again and on one of
// their own: what was lent before must not show.
func TestArena(t *testing.T) {
	seed, times := packSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	used := new(Arena)
	for range 300 * times {
		p := someProblem(r)
		for len(p.Items) < coalesceFrom && r.IntN(3) == 0 { // classes that are merged
			p.Items = append(p.Items, p.Items...)
		}
		p.Limit = r.IntN(40)
		own, again := *p, *p
		used.Reset()
		again.Arena = used
		a, b := Pack(&own), Pack(&again)
		if got, want := fmt.Sprint(b), fmt.Sprint(a); got != want {
			t.Fatalf("on a used arena %s, want %s\n%s", got, want, describe(p))
		}
	}
}

// TestSlots lends in random lengths: nothing is lent twice, and everything comes as zero.
func TestSlots(t *testing.T) {
	seed, times := packSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	var s slots[int]
	for range 20 * times {
		s.resetTo(&slots[int]{})
		var out, want [][]int
		for range 200 {
			x := s.Alloc(r.IntN(5), r.IntN(5))
			if slices.ContainsFunc(x, func(v int) bool { return v != 0 }) {
				t.Fatalf("lent %v", x)
			}
			for range r.IntN(8) {
				if r.IntN(2) == 0 {
					x = s.push(x, 1+r.IntN(9))
				} else {
					x = s.pushAll(x, []int{1 + r.IntN(9), 1 + r.IntN(9)})
				}
			}
			out, want = append(out, x), append(want, slices.Clone(x))
		}
		for i := range out {
			if !slices.Equal(out[i], want[i]) {
				t.Fatalf("lent twice: %v was %v", out[i], want[i])
			}
		}
	}
}

// TestArenaBlocks allocates as much as the largest rounds do: blocks stay long however many
// there are.
func TestArenaBlocks(t *testing.T) {
	var s slots[int]
	for range 100_000 {
		s.Alloc(1, 0)
	}
	if len(s.blocks) > 110 {
		t.Errorf("%d blocks for 100,000 numbers", len(s.blocks))
	}
}

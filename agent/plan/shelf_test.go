package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestShelf packs the same problems on a shelf that is used again and again and on one of
// their own: what was lent before must not show.
func TestShelf(t *testing.T) {
	seed, times := drawn(t)
	r := rand.New(rand.NewPCG(seed, 0))
	used := new(shelf)
	for range 300 * times {
		p := someProblem(r)
		for len(p.loads) < mergeFrom && r.IntN(3) == 0 { // classes that are merged
			p.loads = append(p.loads, p.loads...)
		}
		p.limit = r.IntN(40)
		own, again := *p, *p
		used.takeBack()
		again.shelf = used
		a, b := pack(&own), pack(&again)
		if got, want := fmt.Sprint(b), fmt.Sprint(a); got != want {
			t.Fatalf("on a used shelf %s, want %s\n%s", got, want, describe(p))
		}
	}
}

// TestSlab lends in random lengths: nothing is lent twice, and everything comes as zero.
func TestSlab(t *testing.T) {
	seed, times := drawn(t)
	r := rand.New(rand.NewPCG(seed, 0))
	var s slab[int]
	for range 20 * times {
		s.takeBackTo(&slab[int]{})
		var out, want [][]int
		for range 200 {
			x := s.lend(r.IntN(5), r.IntN(5))
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

// TestSlabBoards lends as much as the largest rounds do: boards stay long however many
// there are.
func TestSlabBoards(t *testing.T) {
	var s slab[int]
	for range 100_000 {
		s.lend(1, 0)
	}
	if len(s.boards) > 110 {
		t.Errorf("%d boards for 100,000 numbers", len(s.boards))
	}
}

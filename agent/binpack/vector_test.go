package binpack

import (
	"math"
	"slices"
	"testing"
)

// TestVectors: how often a size fits into a room, and what is left then. A room that is overcommitted where nothing is asked of it refuses nothing.
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		room, size []int64
		want       int
	}{
		{[]int64{10, 10}, []int64{3, 4}, 2}, {[]int64{9, 10}, []int64{3, 0}, 3}, {[]int64{2, 10}, []int64{3, 0}, 0}, {[]int64{3, 0}, []int64{3, 0}, 1},
		{[]int64{-7, 10}, []int64{3, 4}, 0}, {[]int64{-7, 10}, []int64{0, 4}, 2}, {[]int64{0, 0}, []int64{0, 0}, math.MaxInt32},
	} {
		if MaxFit(c.room, c.size) != c.want || Fits(c.room, c.size) != (c.want > 0) {
			t.Errorf("%v into %v: %d, fits %v, want %d", c.size, c.room, MaxFit(c.room, c.size), Fits(c.room, c.size), c.want)
		}
	}
	room := []int64{10, 10}
	if Sub(room, []int64{3, 0}, 2); !slices.Equal(room, []int64{4, 10}) {
		t.Errorf("left is %v", room)
	}
	if Sub(room, []int64{3, 1}, -1); !slices.Equal(room, []int64{7, 11}) {
		t.Errorf("given back is %v", room)
	}
}

// TestCoreEquivalents: a core and 7.5 GiB count the same.
func TestCoreEquivalents(t *testing.T) {
	if got := CoreEquivalents(500, 3.75*(1<<30)); got != 1 {
		t.Errorf("half of each is %g", got)
	}
}

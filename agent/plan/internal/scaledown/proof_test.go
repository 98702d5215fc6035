package scaledown

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// TestFits holds Fits against random orders and places: where it says that all pods fit, none is ever left. It says so in
// most of the worlds where that is true.
func TestFits(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	always, yes, wrong, possible := func(int) bool { return true }, 0, 0, 0
	for range 5000 {
		var rooms [][]int64
		for range 1 + r.IntN(5) {
			rooms = append(rooms, []int64{r.Int64N(4000), r.Int64N(16) << 30, 1 + r.Int64N(20)})
		}
		var loads []load
		for range 1 + r.IntN(4) {
			loads = append(loads, load{N: 1 + r.IntN(3), Size: []int64{100 + 50*r.Int64N(20), (1 + r.Int64N(8)) << 29, 1}, Takes: always})
		}
		says, is := fitsWherever(loads, rooms, func(int) bool { return true }), true
		for range 100 {
			is = is && fitAtRandom(r, loads, rooms)
		}
		if says {
			yes++
		}
		if is {
			possible++
		}
		if says && !is {
			wrong++
		}
	}
	t.Logf("%d worlds in which all fit, %d in which random play found no other, wrong in %d", yes, possible, wrong)
	if wrong > 0 || yes < 1900 {
		t.Errorf("all fit in %d of 5000 worlds, and random play leaves a pod in %d of these (seed %d)", yes, wrong, seed)
	}
}

func fitAtRandom(r *rand.Rand, loads []load, places [][]int64) bool {
	var rooms [][]int64
	for _, p := range places {
		rooms = append(rooms, slices.Clone(p))
	}
	var pods [][]int64
	for _, l := range loads {
		for range l.N {
			pods = append(pods, l.Size)
		}
	}
	r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	tight := r.IntN(2) == 0
	for _, size := range pods {
		var fits []int
		for i := range rooms {
			if binpack.Fits(rooms[i], size) {
				fits = append(fits, i)
			}
		}
		if len(fits) == 0 {
			return false
		}
		at := fits[r.IntN(len(fits))]
		if tight {
			at = slices.MinFunc(fits, func(a, b int) int { return int(rooms[a][0] - rooms[b][0]) })
		}
		binpack.Sub(rooms[at], size, 1)
	}
	return true
}

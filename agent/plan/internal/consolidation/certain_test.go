package consolidation

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// TestFitAnyhow holds fitAnyhow against random orders and places. It looks for the worst by a rule and not by trying all, which
// random play betters in 4 of 1,000 small worlds (6 with one order of the classes); with the first place in place of the worst one in 28.
func TestFitAnyhow(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("AUTOSCALER_TEST_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	always, yes, wrong := func(*place) bool { return true }, 0, 0
	for range 5000 {
		var places []place
		for i := range 1 + r.IntN(5) {
			places = append(places, place{i, []int64{r.Int64N(4000), r.Int64N(16) << 30, 1 + r.Int64N(20)}})
		}
		var loads []load
		for range 1 + r.IntN(4) {
			loads = append(loads, load{1 + r.IntN(3), []int64{100 + 50*r.Int64N(20), (1 + r.Int64N(8)) << 29, 1}, always})
		}
		if !fitAnyhow(loads, places, func(int) bool { return true }) {
			continue
		}
		yes++
		for range 100 {
			if !fitAtRandom(r, loads, places) {
				wrong++
				break
			}
		}
	}
	t.Logf("%d worlds in which all fit, wrong in %d", yes, wrong)
	if wrong*100 > yes || yes < 2000 {
		t.Errorf("all fit in %d of 5000 worlds, and random play leaves a pod in %d of these (seed %d)", yes, wrong, seed)
	}
}

func fitAtRandom(r *rand.Rand, loads []load, places []place) bool {
	var rooms [][]int64
	for _, p := range places {
		rooms = append(rooms, slices.Clone(p.room))
	}
	var pods [][]int64
	for _, l := range loads {
		for range l.n {
			pods = append(pods, l.size)
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

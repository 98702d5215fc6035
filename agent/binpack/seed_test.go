package binpack

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// ready returns a drawn problem whose sizes stand.
func ready(p *Problem) *Problem {
	for i := range p.Items {
		p.Items[i].Amounts = NewItem(p.Items[i].Size).Amounts
	}
	return p
}

// packSeed returns the seed of the first drawn problem and the factor on their number. The
// gate plays the same problems on every machine, so that a red run is a change
// that somebody made; `make soak` goes by the clock and draws many times as many.
// AUTOSCALER_TEST_SEED plays the seed that a failure has printed, 0 takes the clock's.
func packSeed(t testing.TB) (seed uint64, times int) {
	t.Helper()
	number := func(name string, or uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return or
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	if seed = number("AUTOSCALER_TEST_SEED", 1); seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	times = int(number("AUTOSCALER_TEST_SEEDS", 1))
	t.Logf("seed %d", seed)
	return seed, times
}

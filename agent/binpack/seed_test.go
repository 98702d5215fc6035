package binpack

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// packSeed are the seed of the first packSeed world and how many times as many of them are
// packSeed. The gate plays the same worlds on every machine, so that a red run is a change
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

// Package drawn says with which seed a test draws its worlds, and how many. The gate plays the
// same worlds on every machine, so that a red run is a change that somebody made; `make soak`
// and `make chaos` go by the clock and draw many times as many. It refuses to draw anything itself.
// Small and apart: tests of every layer use it, those of test/ too.
package drawn

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Seed returns the seed of the first drawn world, and logs it: AUTOSCALER_TEST_SEED plays the
// one that a failure has printed, 0 takes the clock's; unset, it is 1.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := Number(t, "AUTOSCALER_TEST_SEED", 1)
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("AUTOSCALER_TEST_SEED=%d", seed)
	return seed
}

// Times returns how many times as many worlds are drawn as in the gate: AUTOSCALER_TEST_SEEDS,
// or 1.
func Times(t testing.TB) int {
	t.Helper()
	return int(Number(t, "AUTOSCALER_TEST_SEEDS", 1))
}

// Number reads the environment's variable of that name; unset or empty, it is the other number.
func Number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

package loop

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

var (
	mixes     = flag.Int("mixes", 4, "how many mixes TestLoop plays")
	firstSeed = flag.Uint64("seed", 100, "seed of the first mix; 0: of the clock")
)

// TestLoop plays seeded mixes with the real API server, controller manager and
// scheduler.
func TestLoop(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true, NodeMonitorGrace: time.Hour})
	seed := *firstSeed
	if seed == 0 {
		seed = uint64(time.Now().Unix())
	}
	var all Result
	for i := range *mixes {
		t.Run(fmt.Sprint("seed=", seed+uint64(i)), func(t *testing.T) {
			var said strings.Builder
			began := time.Now()
			r, err := Play(t.Context(), cp.Client(), seed+uint64(i), &said)
			if err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			t.Logf("%d pods: %d promised in the first purchase, %d of them bound at once; %d bound, %d held, %d machines in %d purchases, %s",
				r.Pods, r.Promised, r.AtOnce, r.Bound, r.Held, r.Machines, r.Rounds, time.Since(began).Round(time.Second/10))
			for _, p := range r.Problems {
				t.Error(p)
			}
			if len(r.Problems) > 0 || r.AtOnce < r.Promised {
				t.Log(said.String())
			}
			all.Pods, all.Promised, all.AtOnce, all.Bound, all.Held = all.Pods+r.Pods, all.Promised+r.Promised, all.AtOnce+r.AtOnce, all.Bound+r.Bound, all.Held+r.Held
		})
	}
	t.Logf("%d pods: %d promised in first purchases, %d of them bound at once; %d bound in the end, %d held", all.Pods, all.Promised, all.AtOnce, all.Bound, all.Held)
}

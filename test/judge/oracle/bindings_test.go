package oracle

import (
	"flag"
	"testing"
	"time"
)

var bindings = flag.Int("bindings", 5_000, "how many bindings TestBindings compares")

// TestBindings holds the model of kube-scheduler (agent/plan/internal/schedsim) against
// kube-scheduler's own framework: the set of best nodes has to be the same before each
// binding.
func TestBindings(t *testing.T) {
	j, err := StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	first := *firstSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	agreed, worlds, differ := 0, 0, 0
	for seed := first; agreed < *bindings && differ < 5; seed++ {
		n, difference, err := Bindings(j, GenerateBindings(seed), seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if difference != "" {
			t.Errorf("seed %d: %s", seed, difference)
			differ++
		}
		agreed += n
		worlds++
	}
	t.Logf("first seed %d: %d bindings in %d worlds agree", first, agreed, worlds)
}

package world

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSeeds plays drawn worlds. SEEDS is a number of worlds or first-last, HOURS their length (4 hours make an act: a storm and a calm in
// which everything has to settle), TRACE=1 prints the stories.
func TestSeeds(t *testing.T) {
	first, last, hours := seedsOf(t)
	cfg := load(t)
	begun, played := time.Now(), 0.0
	for seed := first; seed <= last; seed++ {
		p := Play{Env: cfg, Seed: seed, Length: time.Duration(hours) * time.Hour}
		at := time.Now()
		r := play(t, p)
		played += r.Hours
		t.Logf("seed %d: %.0f hours in %s, %d faults, requests %v", seed, r.Hours, time.Since(at).Round(time.Millisecond), len(r.Faults), r.Requests)
		if os.Getenv("TRACE") != "" {
			fmt.Println(r.Story)
		}
		if len(r.Violations) > 0 {
			t.Errorf("seed %d:\n%s", seed, strings.Join(r.Violations, "\n"))
			if os.Getenv("SHRINK") != "0" {
				p.Faults = Shrink(r.Faults, func(f []Fault) bool {
					p.Faults = f
					return f != nil && len(play(t, p).Violations) > 0
				})
				t.Errorf("seed %d, with fewer faults:\n%s", seed, play(t, p))
			}
		}
	}
	t.Logf("%.0f simulated hours in %s", played, time.Since(begun).Round(time.Millisecond))
}

// play runs a play in a bubble of its own.
func play(t *testing.T, p Play) (out Report) {
	p.Dir = dirOf(t)
	defer os.RemoveAll(p.Dir)
	synctest.Test(t, func(t *testing.T) {
		var err error
		if out, err = Run(p); err != nil {
			t.Fatal(err)
		}
	})
	return out
}

func seedsOf(t *testing.T) (first, last uint64, hours int) {
	first, last, hours = 1, 2, 4
	var err error
	if text := os.Getenv("SEEDS"); text != "" {
		from, to, ranged := strings.Cut(text, "-")
		if last, err = strconv.ParseUint(from, 10, 64); err != nil {
			t.Fatal(err)
		}
		if ranged {
			if first, last = last, 0; true {
				if last, err = strconv.ParseUint(to, 10, 64); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if text := os.Getenv("HOURS"); text != "" {
		if hours, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return first, last, hours
}

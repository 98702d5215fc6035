package world

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestSeeds plays drawn worlds. SEEDS is a number of worlds or first-last, HOURS their least length (an act, a storm and a calm in
// which everything has to settle, takes four hours or 80 minutes), TRACE=1 prints the stories, TRACE=failed those of worlds with a violation. With BUDGET, a processor time, it ends
// with the first violation, or after that time.
func TestSeeds(t *testing.T) {
	first, last, hours := seedsOf(t)
	cfg := load(t)
	begun, played := time.Now(), 0.0
	budget, _ := time.ParseDuration(os.Getenv("BUDGET"))
	for seed := first; seed <= last && (budget == 0 || !t.Failed() && processorTime() < budget); seed++ {
		p := Play{Env: cfg, Seed: seed, Length: time.Duration(hours) * time.Hour, Faults: written(t)}
		if p.Faults != nil {
			p.Tempo = 1
		}
		at := time.Now()
		r := play(t, p)
		played += r.Hours
		t.Logf("seed %d: %.1f hours in %s, %d faults, requests %v, raises %d", seed, r.Hours, time.Since(at).Round(time.Millisecond), len(r.Faults), r.Requests, r.raises)
		if trace := os.Getenv("TRACE"); trace != "" && (trace != "failed" || len(r.Violations) > 0) {
			fmt.Println(r.Story)
		}
		if len(r.Violations) > 0 {
			t.Errorf("seed %d:\n%s", seed, strings.Join(r.Violations, "\n"))
			if os.Getenv("SEEDS") != "" && os.Getenv("SHRINK") != "0" { // make test tells it at once
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

// processorTime is what this process has taken.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// written reads PLAY, faults in place of those that the seed draws, with commas: time, kind, length, number and agent, as in
// "10m reborn 5m 17 0,40m kill 1m 0 1". nil: the seed draws.
func written(t *testing.T) (out []Fault) {
	for text := range strings.SplitSeq(os.Getenv("PLAY"), ",") {
		if text == "" {
			return nil
		}
		word := []string{"", "", "0s", "0", "0"}
		copy(word, strings.Fields(text))
		f := Fault{Kind: word[1]}
		var err [4]error
		f.At, err[0] = time.ParseDuration(word[0])
		f.For, err[1] = time.ParseDuration(word[2])
		f.N, err[2] = strconv.Atoi(word[3])
		f.Agent, err[3] = strconv.Atoi(word[4])
		if _, known := faultKinds[f.Kind]; !known || errors.Join(err[:]...) != nil {
			t.Fatalf("PLAY: %q: %v", text, errors.Join(err[:]...))
		}
		out = append(out, f)
	}
	return out
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
	first, last, hours = 1, 4, 0
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

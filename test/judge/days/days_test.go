package days

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/sim"
)

var (
	count     = flag.Int("days", 1, "how many days of each kind TestDays plays")
	firstSeed = flag.Uint64("seed", 1, "seed of the first day")
	kinds     = flag.String("kinds", strings.Join(Kinds, ","), "kinds of days, comma-separated")
	programs  = flag.String("peers", "", "programs that play too, separated by commas; see Moment")
	verbose   = flag.Bool("acts", false, "log every act of every scaler")
)

var judgeProgram string

func TestMain(m *testing.M) {
	if os.Getenv(programMode) != "" {
		os.Exit(answer())
	}
	flag.Parse()
	os.Exit(withJudge(m))
}

func withJudge(m *testing.M) int {
	dir, err := os.MkdirTemp("", "days-")
	if err == nil {
		defer os.RemoveAll(dir)
		judgeProgram, err = oracle.BuildJudge(context.Background(), dir)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return m.Run()
}

// scalers are those that play.
func scalers(t *testing.T) (out []Scaler) {
	policy := func(change func(*decision.Policy)) decision.Policy {
		p, err := sim.Defaults()
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	out = []Scaler{
		ClusterAutoscaler("Cluster Autoscaler's rules"),
		Ours("this agent", policy(nil), false),
		Ours("consolidation `priced`", policy(func(p *decision.Policy) { p.Consolidate = "priced" }), false),
		Ours("`AUTOSCALER_PRICES=typed`", policy(nil), true),
	}
	for path := range strings.SplitSeq(*programs, ",") {
		if path != "" {
			s := Program(t.Context(), path)
			s.Name = filepath.Base(path)
			out = append(out, s)
		}
	}
	for i := range out {
		if *verbose {
			out[i].Log = func(line string) { t.Logf("%s: %s", out[i].Name, line) }
		}
	}
	return out
}

// TestDays plays days of each kind with each scaler, and prints what they came to.
func TestDays(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	all := scalers(t)
	peer := 0 // Cluster Autoscaler's rules
	if *programs != "" {
		peer = len(all) - 1
	}
	sums := make([]Sum, len(all))
	for i := range all {
		sums[i].Name = all[i].Name
	}
	for kind := range strings.SplitSeq(*kinds, ",") {
		for seed := *firstSeed; seed < *firstSeed+uint64(*count); seed++ {
			reports := make([]Report, len(all))
			for i, s := range all {
				day, err := Draw(kind, seed)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if reports[i], err = Play(j, day, s); err != nil {
					t.Fatalf("%s: %v", s.Name, err)
				}
				t.Logf("%-8s seed %d, %d groups, %-28s %s; played in %s", kind, seed, len(day.Groups), s.Name, &reports[i], time.Since(began).Round(100*time.Millisecond))
			}
			for i := range all {
				sums[i].Add(&reports[i], &reports[peer])
			}
		}
	}
	t.Logf("days of seeds %d to %d\n%s", *firstSeed, *firstSeed+uint64(*count)-1, Table(sums))
}

package days

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

var (
	count     = flag.Int("days", 1, "how many days of each kind TestDays plays")
	firstSeed = flag.Uint64("seed", 2, "seed of the first day")
	kinds     = flag.String("kinds", strings.Join(Kinds, ","), "kinds of days, comma-separated")
	programs  = flag.String("peers", "", "programs that play too, separated by commas; see Moment")
	with      = flag.String("with", "", "settings of more agents that play, in place of no consolidation and of no prices: NAME=VALUE,NAME=VALUE;NAME=VALUE")
	verbose   = flag.Bool("acts", false, "log every act of every scaler")
)

var judgeProgram string

func TestMain(m *testing.M) {
	if os.Getenv(programMode) != "" {
		os.Exit(answer())
	}
	flag.Parse()
	os.Exit(oracle.WithJudge(func(program string) int {
		judgeProgram = program
		return m.Run()
	}))
}

// policy is that of an agent with some settings (AUTOSCALER_SCALING_*), and else its defaults.
func policy(t *testing.T, settings ...string) decision.Policy {
	var plain, p decision.Policy
	if err := envconfig.Process("AUTOSCALER_SCALING", &plain); err != nil {
		t.Fatal(err)
	}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			t.Fatalf("-with %q: write NAME=VALUE, as in AUTOSCALER_SCALING_NEW_POD_DELAY=10s", setting)
		}
		if was, had := os.LookupEnv(name); had {
			defer os.Setenv(name, was)
		} else {
			defer os.Unsetenv(name)
		}
		os.Setenv(name, value)
	}
	if err := envconfig.Process("AUTOSCALER_SCALING", &p); err != nil {
		t.Fatal(err)
	}
	if len(settings) > 0 && reflect.DeepEqual(p, plain) {
		t.Fatalf("-with %q changes nothing: it names no setting of the scaler, or its default", settings)
	}
	return p
}

// scalers are those that play. The first is Cluster Autoscaler's rules.
func scalers(t *testing.T) []Scaler {
	out := []Scaler{ClusterAutoscaler("Cluster Autoscaler's rules"), Ours("this agent", policy(t), false)}
	if *with == "" {
		out = append(out, Ours("consolidation `off`", policy(t, "AUTOSCALER_SCALING_CONSOLIDATE=off"), false))
		if *count > 1 { // one day holds no bar of its own
			out = append(out, Ours("`AUTOSCALER_PRICES=typed`", policy(t), true))
		}
	}
	for settings := range strings.SplitSeq(*with, ";") {
		if settings != "" {
			out = append(out, Ours(settings, policy(t, strings.Split(settings, ",")...), false))
		}
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

const (
	longest  = 10 * time.Minute // that a pod may wait: two boots, and what kube-scheduler gives to others
	rebought = 0.2              // of the machines that are started, those within ten minutes after a removal in their group
	dearest  = 1.05             // bill of the agent over that of Cluster Autoscaler's rules, geometric mean
	fullest  = 2                // bill of the end of the day over the bound
)

// TestDays plays days of each kind with each scaler, and prints what they came to. The bars are
// wide, because a single day has a bill of up to 1.4 times the peer's; a scaler that does not
// remove, buys far too much or lets pods wait fails them. docs/performance.md has the figures.
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
				if most := reports[i].Wait(1); most > longest {
					t.Errorf("%s, day %s, seed %d: a pod waited %s", all[i].Name, kind, seed, most)
				}
				sums[i].Add(kind, &reports[i], &reports[peer])
			}
		}
	}
	ours := &sums[1]
	if len(ours.kinds) < len(Kinds) {
		t.Log("the bars are for all kinds of days together")
	} else if ours.Bill() > dearest || ours.End() > fullest || ours.reports.Evictions > 3*sums[0].reports.Evictions || ours.reports.Started > 3*sums[0].reports.Started || float64(ours.reports.Again) > rebought*float64(ours.reports.Started) {
		t.Errorf("%s is beyond a bar", ours.Name)
	}
	if *with == "" && len(ours.kinds) == len(Kinds) && ours.Bill() > sums[2].Bill()+0.01 {
		t.Errorf("%s costs %.3f, and the agent as it is %.3f", sums[2].Name, sums[2].Bill(), ours.Bill())
	}
	t.Logf("days of seeds %d to %d\n%s", *firstSeed, *firstSeed+uint64(*count)-1, Table(sums))
}

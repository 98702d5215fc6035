package sim

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// never holds what no plan of a day may contain, whatever happens.
func never(t *testing.T, s cluster.Snapshot, m decision.Memory, p decision.Policy, got decision.Plan) {
	grows, shrinks := map[cluster.GroupID]bool{}, map[cluster.GroupID]bool{}
	group := map[cluster.GroupID]*cluster.NodeGroup{}
	for i := range s.Groups {
		group[s.Groups[i].ID] = &s.Groups[i]
	}
	for _, a := range got.Actions {
		switch a := a.(type) {
		case decision.Grow:
			grows[a.Group] = true
			if g := group[a.Group]; a.To > g.Max || a.To <= a.From {
				t.Errorf("%s: %s, maximum %d", s.Now.Format("15:04:05"), a, g.Max)
			}
		case decision.Terminate:
			shrinks[a.Group] = true
		}
	}
	for g := range grows {
		if shrinks[g] {
			t.Errorf("%s: group %s grows and shrinks in one round\n%s", s.Now.Format("15:04:05"), g, got)
		}
	}
	if again, _ := plan.Decide(s, m, p); again.String() != got.String() {
		t.Errorf("%s: the same round decides otherwise:\n%s--- and\n%s", s.Now.Format("15:04:05"), got, again)
	}
}

func day(t *testing.T, o Options) Report {
	t.Helper()
	n := 0
	o.Check = func(s cluster.Snapshot, m decision.Memory, p decision.Policy, got decision.Plan) {
		if n++; n%10 == 0 || len(got.Actions) > 0 {
			never(t, s, m, p, got)
		}
	}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", oneLine(&r))
	return r
}

func oneLine(r *Report) string {
	return fmt.Sprintf("%-8s seed %d: %d pods, waited p50 %s p99 %s most %s, late %d, overtaken %d; %d machines, %.0f node-hours, cost %.2f; %d grows, %d terminates, %d evictions; flaps %d of %d",
		r.Curve, r.Seed, r.created, r.Pending(0.5).Round(100*time.Millisecond), r.Pending(0.99).Round(100*time.Millisecond), r.Pending(1).Round(100*time.Millisecond), r.Late, r.Overtaken,
		r.Machines, r.NodeHours, r.Cost, r.Grows, r.Terminates, r.Evictions, r.Flaps, r.Rebought)
}

// TestDays plays 24 hours of every curve, with a seed that stays and, pods strictly by age, with a drawn one: no
// flap, and no pod that waits longer than a decision and a boot. On days with losses a
// pod may wait for a machine that does not come.
func TestDays(t *testing.T) {
	days := []Options{{Seed: 7}, {Seed: drawn.Seed(t), ByAge: true}}
	for _, c := range Curves {
		for _, o := range days {
			o.Curve = c.Name
			t.Run(fmt.Sprintf("%s/seed=%d/byAge=%v", c.Name, o.Seed, o.ByAge), func(t *testing.T) {
				t.Parallel()
				r := day(t, o)
				if r.Flaps > 0 {
					t.Errorf("%d flaps (seed %d):\n%s", r.Flaps, o.Seed, strings.Join(r.FlapWords, "\n"))
				}
				if r.Late > 0 && !c.Losses {
					t.Errorf("%d pods waited too long (seed %d): %s", r.Late, o.Seed, r.WorstLate)
				}
				if r.Overtaken > len(r.pending)/50 {
					t.Errorf("%d of %d pods were overtaken (seed %d)", r.Overtaken, len(r.pending), o.Seed)
				}
				if most := 30*time.Minute + 3*r.bound; r.worst > most { // two machines that never join, one in 15 does, and a third
					t.Errorf("%s; more than %s (seed %d)", r.WorstLate, most, o.Seed)
				}
			})
		}
	}
}

// TestDaysWithRestarts lets the agent lose its memory every twenty minutes.
func TestDaysWithRestarts(t *testing.T) {
	seed := drawn.Seed(t)
	for _, c := range Curves {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			r := day(t, Options{Curve: c.Name, Seed: seed, Restart: 20 * time.Minute})
			if r.Flaps > 0 || r.Late > 0 && !c.Losses {
				t.Errorf("seed %d: %d flaps, %d late: %s\n%s", seed, r.Flaps, r.Late, r.WorstLate, strings.Join(r.FlapWords, "\n"))
			}
		})
	}
}

// TestRepeats plays a morning twice: equal seeds give equal days.
func TestRepeats(t *testing.T) {
	var out [2]bytes.Buffer
	for i := range out {
		r, err := Run(Options{Curve: "spot", Seed: 3, Length: 9 * time.Hour, Log: func(line string) { out[i].WriteString(line + "\n") }})
		if err != nil {
			t.Fatal(err)
		}
		r.Deciding = 0
		r.Print(&out[i])
	}
	if out[0].String() != out[1].String() {
		t.Error("equal seeds gave unequal days")
	}
}

// TestTheCountersBite proves that the simulation sees what it is there to see: an
// engine with no patience flaps, and one that may not buy leaves pods waiting.
func TestTheCountersBite(t *testing.T) {
	p, err := Defaults()
	if err != nil {
		t.Fatal(err)
	}
	hasty := p
	hasty.UnneededFor, hasty.DelayAfterAdd, hasty.UtilizationThreshold = time.Second, time.Second, 1
	r, err := Run(Options{Curve: "sawtooth", Seed: 7, Policy: &hasty})
	if err != nil || r.Evictions < 700 {
		t.Errorf("an engine without patience evicts %d pods, %v", r.Evictions, err)
	}
	poor := p
	poor.MaxNodesTotal = 5
	r, err = Run(Options{Curve: "office", Seed: 7, Length: 12 * time.Hour, Policy: &poor})
	if err != nil || r.LateHeld == 0 {
		t.Errorf("an engine that may buy five machines leaves %d pods waiting with a reason, %d without; %v", r.LateHeld, r.Late, err)
	}
	deaf := p
	deaf.ExpendablePodsCutoff = 50 // all but the service "front"
	if r, err = Run(Options{Curve: "office", Seed: 7, Length: 9 * time.Hour, Policy: &deaf}); err != nil || r.LateHeld == 0 {
		t.Errorf("an engine that calls pods expendable: %d held, %v", r.LateHeld, err)
	}
}

// TestTrickle: 1,000 pods of ten ReplicaSets that come one after the other within ten
// seconds are two orders, of exactly the machines that hold them: 32 pods of half a core
// to one of 16 cores, less what is reserved.
func TestTrickle(t *testing.T) {
	usual := Curves
	t.Cleanup(func() { Curves = usual })
	Curves = []Curve{{Name: "trickle", setup: func(w *world) {
		w.pool("general", 16, 64, 1, 0, 100, nil)
		for i := range 10 {
			s := w.deployment(fmt.Sprintf("d%d", i), 500, 512, nil)
			w.after(time.Minute+time.Duration(i)*time.Second, func() { w.scale(s, 100) })
		}
	}}}
	for _, seed := range []uint64{7, drawn.Seed(t)} {
		var orders []string
		last := 0
		r, err := Run(Options{Curve: "trickle", Seed: seed, Length: 15 * time.Minute, Check: func(_ cluster.Snapshot, _ decision.Memory, _ decision.Policy, p decision.Plan) {
			for _, a := range p.Actions {
				if g, ok := a.(decision.Grow); ok {
					orders, last = append(orders, g.String()), g.To
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d: %s", seed, strings.Join(orders, "; "))
		if len(orders) > 2 || last != 33 || r.created != 1000 {
			t.Errorf("seed %d: %d orders up to %d machines for %d pods, want at most two up to 33", seed, len(orders), last, r.created)
		}
	}
}

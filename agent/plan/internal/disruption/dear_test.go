package disruption_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestWaitsForMachines: a dear node goes when as many machines are Ready as were ordered.
func TestWaitsForMachines(t *testing.T) {
	for n, want := range []string{decision.RuleConsolidate, decision.RuleConsolidate, ""} {
		w := old(3)
		w.dear(time.Minute).Machines = 2
		for i := range n {
			w.join(w.g(), cluster.NodeName(fmt.Sprint("x-", i)), time.Second, "")
		}
		d := w.begin()
		why := d.Reason(0)
		if rule, words := d.Hold(0, why); rule != want || why.Name != cluster.ReasonDear {
			t.Errorf("%d machines have come: %v is held by [%s] %s", n, why, rule, words)
		}
		if wake := d.Plan.Wake; (wake == w.s.Now.Add(29*time.Minute)) != (want != "") {
			t.Errorf("%d machines have come: it is woken at %s", n, wake)
		}
	}
}

// TestGroupOfMachinesIsNotTold: then no machine of another group counts.
func TestGroupOfMachinesIsNotTold(t *testing.T) {
	w := old(3)
	w.dear(time.Minute).Group = "b"
	w.join(w.g(), "x", time.Second, "")
	d := w.begin()
	if rule, words := d.Hold(0, d.Reason(0)); rule != decision.RuleConsolidate {
		t.Errorf("held by [%s] %s", rule, words)
	}
}

// TestYoungPod: the pod that has run for the shortest time, of those that a drain would move.
func TestYoungPod(t *testing.T) {
	for name, c := range map[string]struct {
		ages []time.Duration
		all  func(*cluster.Pod)
		want cluster.PodKey
		wake time.Duration
	}{
		"none":                  {nil, nil, "", 0},
		"an hour":               {[]time.Duration{time.Hour}, nil, "", 0},
		"less than an hour":     {[]time.Duration{time.Hour - time.Second}, nil, "default/w-000-0", time.Second},
		"the youngest of three": {[]time.Duration{30 * time.Minute, 20 * time.Minute, 40 * time.Minute}, nil, "default/w-000-1", 40 * time.Minute},
		"of two the first":      {[]time.Duration{time.Minute, time.Minute}, nil, "default/w-000-0", 59 * time.Minute},
		"a DaemonSet's":         {[]time.Duration{time.Minute}, func(p *cluster.Pod) { p.Owner.Kind = "DaemonSet" }, "", 0},
	} {
		for _, reversed := range []bool{false, true} {
			w := old(1)
			n := w.s.Nodes[0]
			for _, age := range c.ages {
				pod := put(n, w.s.Now.Add(-age))
				if c.all != nil {
					c.all(pod)
				}
			}
			if reversed {
				slices.Reverse(n.Pods)
			}
			d := w.begin()
			d.Plan.Wake = time.Time{}
			if got, until := d.YoungPod(&d.Nodes[0], true); got != c.want || c.wake > 0 && !until.Equal(w.s.Now.Add(c.wake)) || (c.wake == 0) != d.Plan.Wake.IsZero() || c.wake > 0 && d.Plan.Wake != w.s.Now.Add(c.wake) {
				t.Errorf("%s: %q, awake at %s", name, got, d.Plan.Wake)
			}
		}
	}
}

package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestRolloutMetrics: each round tells how the rollouts stand; one on stale facts leaves what is known, and what is over goes.
func TestRolloutMetrics(t *testing.T) {
	m := watched()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := cluster.Snapshot{Now: now, ControlPlaneVersion: "v1.36.3"}
	for i, version := range []string{"v1.36.3", "v1.36.1", "v1.35.9", "v1.32.0", "v1.37.0", ""} {
		s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(fmt.Sprint("n", i)), KubeletVersion: version})
	}
	s.Nodes = append(s.Nodes, &cluster.Node{Name: "leader", ControlPlane: true, KubeletVersion: "v1.35.4"})
	p := decision.Plan{Rollouts: []decision.Rollout{
		{Group: "a", State: decision.RolloutRolling, By: map[string]int{cluster.ReasonDrifted: 3, cluster.ReasonSick: 1}, Oldest: now.Add(-time.Hour)},
		{Group: "b", State: decision.RolloutPaused, By: map[string]int{cluster.ReasonDrifted: 2}, Oldest: now.Add(-48 * time.Hour)},
		{Group: "c", State: decision.RolloutDone},
	}}
	since := func(d time.Duration) float64 { return float64(now.Add(-d).Unix()) }
	const waiting, kubelets, nodes, state = "autoscaler_rollout_waiting_since_timestamp_seconds", "autoscaler_kubelets_count", "autoscaler_disruption_nodes_count", "autoscaler_rollout_state"
	check := func(what string, want map[string]float64, gone ...string) {
		t.Helper()
		got := reads(t, m.registry)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %s is %v, want %v", what, name, got[name], value)
			}
		}
		for _, name := range gone {
			if _, is := got[name]; is {
				t.Errorf("%s: %s is still there", what, name)
			}
		}
	}
	round := func() { m.Round(s, p, decision.Memory{}, decision.Policy{}, true, true) }
	round()
	whole := map[string]float64{waiting + " a": since(time.Hour), waiting + " b": since(48 * time.Hour), nodes + " drifted": 5, nodes + " sick": 1,
		state + " b paused": 1, kubelets + " 0": 2, kubelets + " 1": 1, kubelets + " 4": 1, kubelets + " -1": 1}
	check("at first", whole, waiting+" c")
	s.Stale, p.Rollouts = "the API server is not heard", nil
	round()
	check("stale facts", whole)
	s.Stale, s.Nodes = "", s.Nodes[:1]
	round()
	check("it is over", map[string]float64{nodes + " drifted": 0, kubelets + " 0": 1}, waiting+" a", waiting+" b", state+" b paused", kubelets+" 1", kubelets+" -1")
	s.ControlPlaneVersion = ""
	round()
	check("the API server's version is not known", nil, kubelets+" 0")
}

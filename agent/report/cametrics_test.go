package report

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// reads are the values of all metrics, by name and label values; of histograms the
// count and the sum.
func reads(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				out[name], out[name+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
			}
		}
	}
	return out
}

func TestMetricsUnderClusterAutoscalersNames(t *testing.T) {
	m := NewMetrics()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{{ID: "g", Min: 1, Max: 9, Target: 3}, {ID: "h", Max: 4, Stale: "old"}}}
	policy := decision.Policy{MaxNodeStartupTime: time.Minute, MaxNodeProvisionTime: time.Minute, MaxNodesTotal: 10}
	memory := decision.Memory{Unneeded: map[cluster.NodeName]time.Time{"a": now}, Unregistered: map[cluster.InstanceID]time.Time{"x": now.Add(-time.Hour), "y": now},
		Backoff: []decision.Backoff{{Group: "g", Cause: cluster.CauseQuota, Until: now.Add(time.Minute)}, {Group: "h", Cause: cluster.CauseQuota, Until: now}}}
	held := []decision.Held{{Kind: "node", Rule: decision.RuleBusy}, {Kind: "node", Rule: decision.RuleBusy}, {Kind: "node", Rule: decision.RuleInUse}, {Kind: "node", Rule: decision.RuleCooldown}}
	m.Round(s, decision.Plan{Held: held}, memory, policy, true, true)
	m.Outcomes([]cluster.Outcome{{Action: "grow", Group: "g", From: 0, To: 2, At: now}, {Action: "grow", Group: "h", Error: "no", Kind: "exhausted", At: now},
		{Action: "cordon", Node: "a", At: now}, {Action: "cordon", Node: "b", At: now}, {Action: "cordon", Node: "c", At: now}, {Action: "evict", Node: "a"},
		{Action: "terminate", Node: "a", Instance: "1", At: now.Add(10 * time.Second)}, {Action: "terminate", Node: "b", Instance: "2", At: now}, {Action: "terminate", Node: "c", Instance: "3", At: now},
		{Action: "terminate", Instance: "4", At: now}},
		decision.Plan{Actions: []decision.Action{decision.Cordon{Node: "b", Rule: decision.RuleUnready}, decision.Terminate{Instance: "4", Rule: decision.RuleNoJoin}}})
	s.Now = now.Add(40 * time.Second)
	s.Groups[0].Instances = []cluster.Instance{{ID: "i1"}, {ID: "i2"}, {ID: "i3"}}
	s.Groups[0].Failures = []cluster.Failure{{Cause: cluster.CauseCapacity, At: s.Now}}
	for i, id := range []string{"i1", "i2", "i3"} { // one more than was asked for
		s.Nodes = append(s.Nodes, &cluster.Node{UID: cluster.UID(id), ProviderID: id, Created: now.Add(10 * time.Second), Ready: cluster.StatusTrue, ReadySince: now.Add(time.Duration(i+2) * 10 * time.Second)})
	}
	m.Round(s, decision.Plan{Held: held}, memory, policy, true, true)
	m.Round(s, decision.Plan{Held: held}, memory, policy, true, false)
	got := reads(t, m.registry)
	for name, want := range map[string]float64{
		"cluster_autoscaler_unneeded_nodes_count": 1, "cluster_autoscaler_unremovable_nodes_count NotUnderutilized": 2, "cluster_autoscaler_unremovable_nodes_count D9": 1,
		"cluster_autoscaler_scale_down_in_cooldown": 1, "cluster_autoscaler_max_nodes_count": 10, "cluster_autoscaler_node_groups_count autoscaled": 2,
		"cluster_autoscaler_node_group_backoff_status g quota": 1, "cluster_autoscaler_node_group_backoff_status h quota": 0,
		"cluster_autoscaler_node_group_healthiness g": 1, "cluster_autoscaler_node_group_healthiness h": 0, "cluster_autoscaler_node_group_target_count g": 3,
		"cluster_autoscaler_nodes_count ready": 3, "cluster_autoscaler_nodes_count longUnregistered": 1, "cluster_autoscaler_nodes_count unregistered": 1,
		"cluster_autoscaler_scaled_down_nodes_total underutilized": 1, "cluster_autoscaler_scaled_down_nodes_total unready": 1, "cluster_autoscaler_scaled_down_nodes_total empty": 1,
		"cluster_autoscaler_scaled_down_nodes_total unregistered": 1, "cluster_autoscaler_old_unregistered_nodes_removed_count": 1,
		"cluster_autoscaler_failed_scale_ups_total cloudProviderError": 2, "cluster_autoscaler_failed_scale_ups_total timeout": 1, "cluster_autoscaler_failed_node_creations_total capacity": 1, "cluster_autoscaler_failed_node_creations_total no-join": 1,
		"cluster_autoscaler_node_removal_latency_seconds true": 3, "cluster_autoscaler_node_removal_latency_seconds true sum": 10,
		"autoscaler_decision_to_ready_seconds": 2, "autoscaler_decision_to_ready_seconds sum": 50,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if len(m.ca.asks) != 0 || len(m.ca.arrived) != 0 || len(m.ca.leaving) != 0 {
		t.Errorf("remembered for nothing: %+v", m.ca)
	}
}

package report

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// watched are metrics with the agent's state, as the running agent has them.
func watched() *Metrics {
	m := NewMetrics()
	yes := func() bool { return true }
	m.Watch(State{Acting: yes, Kubernetes: yes, Cloud: yes, GroupsFault: func() string { return "" }})
	return m
}

// names are the metrics that a registry tells, with their help.
func names(t *testing.T, r *prometheus.Registry) map[string]string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		out[f.GetName()] = f.GetHelp()
	}
	return out
}

// TestClusterAutoscalersMetrics: every metric that Cluster Autoscaler documents
// (cluster-autoscaler/proposals/metrics.md at 1.36) is there after one round, unless the
// manual says why it is not.
func TestClusterAutoscalersMetrics(t *testing.T) {
	documented := strings.Fields(`cluster_safe_to_autoscale nodes_count node_groups_count unschedulable_pods_count max_nodes_count
		cluster_cpu_current_cores cpu_limits_cores cluster_memory_current_bytes memory_limits_bytes
		node_group_min_count node_group_max_count node_group_target_count node_group_healthiness node_group_backoff_status
		last_activity function_duration_seconds function_duration_quantile_seconds pending_node_deletions
		errors_total scaled_up_nodes_total scaled_up_gpu_nodes_total failed_scale_ups_total failed_node_creations_total failed_gpu_scale_ups_total
		scaled_down_nodes_total scaled_down_gpu_nodes_total evicted_pods_total unneeded_nodes_count unremovable_nodes_count scale_down_in_cooldown
		old_unregistered_nodes_removed_count overflowing_controllers_count skipped_scale_events_count created_node_groups_total deleted_node_groups_total
		node_taints_count inconsistent_instances_migs_count binpacking_heterogeneity max_node_skip_eval_duration_seconds node_removal_latency_seconds
		dra_node_template_resources_mismatch`)
	m := watched()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{{ID: "g", Max: 9, Target: 3}}}
	m.Round(s, decision.Plan{Held: []decision.Held{{Kind: "node", Rule: decision.RuleBusy}}}, decision.Memory{}, decision.Policy{}, true, true)
	got := names(t, m.registry)
	page, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range documented {
		if _, there := got["cluster_autoscaler_"+name]; there == strings.Contains(string(page), "`"+name+"`: not given") {
			t.Errorf("%s: there %v, and docs/explain.md says the opposite", name, there)
		}
	}
}

// TestFirstScrape: what can be counted is there before the first round, each with words
// that say what is counted, and the page of metrics lists it.
func TestFirstScrape(t *testing.T) {
	got := names(t, watched().registry)
	page, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, help := range got {
		own := strings.HasPrefix(name, ownPrefix) || strings.HasPrefix(name, "cluster_autoscaler_")
		if !own && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s has no prefix of this agent", name)
		}
		if own && (len(help) < 12 || !strings.HasSuffix(help, ".")) {
			t.Errorf("%s: help %q does not say what is counted", name, help)
		}
		if own && !strings.Contains(string(page), "`"+strings.TrimPrefix(name, "cluster_autoscaler_")+"`") {
			t.Errorf("docs/explain.md does not list %s", name)
		}
	}
	for _, name := range []string{"autoscaler_build_info", "process_resident_memory_bytes", "go_goroutines", "cluster_autoscaler_failed_scale_ups_total",
		"cluster_autoscaler_scaled_down_nodes_total", "cluster_autoscaler_errors_total", "autoscaler_csr_alarms_total", "autoscaler_bootstrap_rehearsals_total", "autoscaler_config_last_reload_successful"} {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is not there from the start", name)
		}
	}
}

// TestServicesDeclareTheirMetrics: a name that is counted somewhere is in the list.
func TestServicesDeclareTheirMetrics(t *testing.T) {
	m := NewMetrics()
	call := regexp.MustCompile(`(?:Count|Gauge|count|gauge)\("([a-z_]+)"`)
	found := map[string]bool{}
	for _, dir := range []string{"../../csrsigner", "../../nodecleaner", "../../bootstrap", "../../bootstrap/attest"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range call.FindAllStringSubmatch(string(data), -1) {
				if name := match[1]; strings.Contains(name, "_") && !strings.HasSuffix(file, "_test.go") {
					found[name] = true
					if m.services[name] == nil {
						t.Errorf("%s counts %s, which is not declared", file, name)
					}
				}
			}
		}
	}
	for name := range m.services {
		if !found[name] {
			t.Errorf("%s is declared and nothing counts it", name)
		}
	}
	if len(found) < 12 {
		t.Errorf("only %d names found: the pattern no longer fits the sources", len(found))
	}
	m.Count("csr_decisions_total", "do", "approve", "rule", "R1")
	m.Count("csr_decisions_total", "do", "approve") // wrong labels: no crash
	m.Count("no_such_thing_total")
	m.Gauge("csr_alarm", 1)
	got := reads(t, m.registry)
	if got["autoscaler_csr_decisions_total approve R1"] != 1 || got["autoscaler_csr_alarm"] != 1 {
		t.Errorf("not counted: %v", got)
	}
}

// TestQuietRounds: rounds that only look move every activity that Cluster Autoscaler's
// users alert on, and count no failure: neither does a change that somebody else was
// faster with, nor one that the cloud asks to try again.
func TestQuietRounds(t *testing.T) {
	m := watched()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range 3 {
		m.Round(cluster.Snapshot{Now: now.Add(time.Duration(i) * 30 * time.Second), Groups: []cluster.NodeGroup{{ID: "g", Max: 3}}}, decision.Plan{}, decision.Memory{}, decision.Policy{}, true, i == 0)
	}
	m.Outcomes([]cluster.Outcome{{Action: "grow", Group: "g", Error: "busy", Kind: provider.Busy.String(), At: now}, {Action: "grow", Group: "g", Error: "drift", Kind: provider.Conflict.String(), At: now}}, decision.Plan{})
	got := reads(t, m.registry)
	for _, activity := range []string{"main", "autoscaling", "scaleUp", "scaleDown"} {
		if at := got["cluster_autoscaler_last_activity "+activity]; at != float64(now.Add(time.Minute).Unix()) {
			t.Errorf("last_activity of %s is %v", activity, at)
		}
	}
	for name, value := range got {
		if failed := strings.Contains(name, "failed") || strings.Contains(name, "errors_total"); failed && value != 0 {
			t.Errorf("%s is %v after quiet rounds", name, value)
		}
	}
	if backoff, ok := got["cluster_autoscaler_node_group_backoff_status g "]; !ok || backoff != 0 {
		t.Errorf("a group that is not backed off has status %v, there: %v", backoff, ok)
	}
	m.Call("Groups", time.Second, errors.New("no answer"))
	if got := reads(t, m.registry); got["cluster_autoscaler_errors_total cloudProviderError"] != 1 {
		t.Error("a read of the groups that failed is no error")
	}
}

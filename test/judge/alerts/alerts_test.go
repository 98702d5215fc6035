package alerts

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// troubles are series of the trouble that each alert is for, one sample a minute, and after
// how long it must fire, in minutes. glitch is the same trouble, too short for the alert.
var troubles = map[string]struct {
	series, glitch string
	after          int
}{
	"AutoscalerAgentDown":      {`autoscaler_build_info{instance="a"} 1x10 _x60`, `autoscaler_build_info{instance="a"} 1x10 _x6 1x60`, 21},
	"AutoscalerAgentNotActing": {`autoscaler_acting{instance="a"} 0x60`, `autoscaler_acting{instance="a"} 1 0x8 1x60`, 11},
	"AutoscalerAgentStalled": {`cluster_autoscaler_last_activity{activity="main",instance="a"} 0 60 120 120x60`,
		`cluster_autoscaler_last_activity{activity="main",instance="a"} 0+60x10 600x6 1080+60x60`, 14},
	"AutoscalerAgentKubernetesUnreachable": {`autoscaler_kubernetes_up{instance="a"} 0x60`, `autoscaler_kubernetes_up{instance="a"} 1 0x8 1x60`, 11},
	"AutoscalerAgentCloudUnreadable":       {`autoscaler_cloud_up{instance="a"} 0x60`, `autoscaler_cloud_up{instance="a"} 0x13 1x60`, 16},
	"AutoscalerAgentConfigNotInForce":      {`autoscaler_config_last_reload_successful{file="groups.yaml",instance="a"} 0x60`, `autoscaler_config_last_reload_successful{file="groups.yaml",instance="a"} 0x3 1x60`, 6},
	"AutoscalerAgentPodsWithoutRoom":       {`autoscaler_held_count{kind="pod",rule="U5",instance="a"} 3x60`, "autoscaler_held_count{kind=\"pod\",rule=\"U5\",instance=\"a\"} 3x10 _x60\nautoscaler_held_count{kind=\"pod\",rule=\"U2\",instance=\"a\"} 9x60", 16},
	"AutoscalerAgentRolloutHalted": {`autoscaler_rollout_state{node_group="g",state="halted",instance="a"} 1x60`,
		"autoscaler_rollout_state{node_group=\"g\",state=\"halted\",instance=\"a\"} 1x3 stale\nautoscaler_rollout_state{node_group=\"g\",state=\"paused\",instance=\"a\"} 1x60", 6},
	"AutoscalerAgentRolloutBehind": {"autoscaler_rollout_waiting_since_timestamp_seconds{node_group=\"g\",instance=\"a\"} 600x4500",
		// A node goes each day, and another one is expired: none waits for long.
		"autoscaler_rollout_waiting_since_timestamp_seconds{node_group=\"g\",instance=\"a\"} 600x1400 86400x1400 172800x1400 stale\nautoscaler_rollout_waiting_since_timestamp_seconds{node_group=\"h\",instance=\"a\"} 0x4500", 4392},
	"AutoscalerAgentWorkersBehind": {`autoscaler_kubelets_count{minors_behind="1",instance="a"} 5x10200`,
		"autoscaler_kubelets_count{minors_behind=\"1\",instance=\"a\"} 5x5000 stale\nautoscaler_kubelets_count{minors_behind=\"0\",instance=\"a\"} 9x10200", 10081},
	"AutoscalerAgentKubeletSkew": {"autoscaler_kubelets_count{minors_behind=\"-1\",instance=\"a\"} 1x60\nautoscaler_kubelets_count{minors_behind=\"10\",instance=\"a\"} 1x60",
		"autoscaler_kubelets_count{minors_behind=\"3\",instance=\"a\"} 5x60\nautoscaler_kubelets_count{minors_behind=\"0\",instance=\"a\"} 9x60\nautoscaler_kubelets_count{minors_behind=\"-1\",instance=\"a\"} 1x10 stale", 31},
	"AutoscalerAgentNodesSick": {`autoscaler_held_count{kind="node",rule="D32",instance="a"} 7x60`, `autoscaler_held_count{kind="node",rule="D32",instance="a"} 7x10 _x60`, 16},
	"AutoscalerAgentNodeGroupAtMaximum": {full + `cluster_autoscaler_unschedulable_pods_count{type="unschedulable",instance="a"} 4x60`,
		full + `cluster_autoscaler_unschedulable_pods_count{type="unschedulable",instance="a"} 4x10 0x60`, 16},
	"AutoscalerAgentNodeGroupBackedOff": {`cluster_autoscaler_node_group_backoff_status{node_group="g",reason="quota",instance="a"} 1x60`, `cluster_autoscaler_node_group_backoff_status{node_group="g",reason="quota",instance="a"} 1x20 0x60`, 31},
	"AutoscalerAgentScaleUpsFail":       {`cluster_autoscaler_failed_scale_ups_total{reason="cloudProviderError",instance="a"} 0x5 1 2 3 4x60`, `cluster_autoscaler_failed_scale_ups_total{reason="cloudProviderError",instance="a"} 0x5 1x60`, 12},
	"AutoscalerAgentMachinesDoNotJoin":  {`cluster_autoscaler_failed_node_creations_total{reason="no-join",instance="a"} 0x5 1x60`, `cluster_autoscaler_failed_node_creations_total{reason="capacity",instance="a"} 0x5 1x60`, 8},
	"AutoscalerAgentNodeNotStarted":     {`autoscaler_node_not_started{node="n",instance="a"} 1x60`, `autoscaler_node_not_started{node="n",instance="a"} 1x3 stale`, 6},
	"AutoscalerAgentNodeGroupUnhealthy": {`cluster_autoscaler_node_group_healthiness{node_group="g",instance="a"} 0x60`, `cluster_autoscaler_node_group_healthiness{node_group="g",instance="a"} 0x10 1x60`, 16},
	"AutoscalerAgentDrainStuck": {"cluster_autoscaler_pending_node_deletions{instance=\"a\"} 0 1x90\ncluster_autoscaler_scaled_down_nodes_total{reason=\"empty\",instance=\"a\"} 5x90",
		"cluster_autoscaler_pending_node_deletions{instance=\"a\"} 0 1x90\ncluster_autoscaler_scaled_down_nodes_total{reason=\"empty\",instance=\"a\"} 5+1x90", 75},
	"AutoscalerAgentReaperStopped":      {`autoscaler_nodecleaner_breaker_open{rule="B2",instance="a"} 1x60`, `autoscaler_nodecleaner_breaker_open{rule="B2",instance="a"} 1x10 0x60`, 16},
	"AutoscalerAgentCertificateFlood":   {`autoscaler_csr_alarm{instance="a"} 1x60`, `autoscaler_csr_alarm{instance="a"} 1x3 0x60`, 6},
	"AutoscalerAgentJoinRehearsalFails": {`autoscaler_bootstrap_rehearsals_total{result="failed",instance="a"} 0x5 1x60`, `autoscaler_bootstrap_rehearsals_total{result="ok",instance="a"} 0x5 1x60`, 8},
}

const full = `cluster_autoscaler_node_group_target_count{node_group="g",instance="a"} 5x60
cluster_autoscaler_node_group_max_count{node_group="g",instance="a"} 5x60
`

// TestEachRuleFires: on its trouble, in its time, with names in its words; and not on a
// glitch of the same kind.
func TestEachRuleFires(t *testing.T) {
	seen := map[string]bool{}
	for i, r := range Rules(t) {
		trouble, ok := troubles[r.Name()]
		if seen[r.Name()] = true; !ok {
			t.Errorf("%s has no test", r.Name())
			continue
		}
		epoch := time.Unix(0, 0).UTC()
		load := func(series string) string { return "load 1m\n  " + strings.ReplaceAll(series, "\n", "\n  ") + "\n" }
		store := promqltest.LoadedStorage(t, load(trouble.glitch))
		long := max(90, trouble.after+10)
		if at, summary := Firing(t, r, store, epoch, epoch.Add(time.Duration(long-40)*time.Minute)); !at.IsZero() {
			t.Errorf("%s fires on a glitch after %s: %s", r.Name(), at.Sub(epoch), summary)
		}
		_ = store.Close()
		store = promqltest.LoadedStorage(t, load(trouble.series))
		at, summary := Firing(t, Rules(t)[i], store, epoch, epoch.Add(time.Duration(long)*time.Minute))
		_ = store.Close()
		if at.IsZero() || at.Sub(epoch) > time.Duration(trouble.after)*time.Minute {
			t.Errorf("%s fires after %s, want %d minutes", r.Name(), at.Sub(epoch), trouble.after)
		}
		if summary == "" || strings.Contains(summary, "<no value>") || strings.Contains(summary, "error") {
			t.Errorf("%s says %q", r.Name(), summary)
		}
	}
	for name := range troubles {
		if !seen[name] {
			t.Errorf("there is no rule %s", name)
		}
	}
}

// scraped is what an agent answers under /metrics before anything failed.
func scraped(t *testing.T, now time.Time, m *report.Metrics) []byte {
	t.Helper()
	s := cluster.Snapshot{Now: now, ControlPlaneVersion: "v1.36.3", Groups: []cluster.NodeGroup{{ID: "g", Max: 9, Target: 3, Price: 0.2}}, Nodes: []*cluster.Node{{Name: "n", KubeletVersion: "v1.35.4"}}}
	p := decision.Plan{Held: []decision.Held{{Kind: "node", Rule: decision.RuleBusy}}, Rollouts: []decision.Rollout{{Group: "g", State: decision.RolloutDone, Oldest: now}}}
	m.Round(s, p, decision.Memory{}, decision.Policy{}, true, true)
	m.Call("Groups", time.Second, nil)
	m.Request("DescribeAutoScalingGroups", time.Second, nil)
	m.Count("csr_decisions_total", "do", "approve", "rule", "R0")
	m.Zero("nodecleaner_deleted_total", "G3") // as the agent does for every rule
	m.Count("nodecleaner_held_total", "rule", "L1")
	m.Gauge("nodecleaner_held_nodes", 0, "rule", "L1")
	m.Gauge("nodecleaner_breaker_open", 0, "rule", "B1")
	return text(t, m.Registry())
}

func text(t *testing.T, r *prometheus.Registry) []byte {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func metrics() *report.Metrics {
	m := report.NewMetrics()
	yes := func() bool { return true }
	m.Watch(report.State{Acting: yes, Kubernetes: yes, Cloud: yes, GroupsFault: func() string { return "" }})
	return m
}

// TestQueriesNameMetricsOfTheAgent: every metric that a rule or a panel reads is one that
// the agent answers.
func TestQueriesNameMetricsOfTheAgent(t *testing.T) {
	m := metrics()
	there := Names(t, scraped(t, time.Now(), m))
	// A node that has not started has a series of its own while the rule holds.
	late := decision.Plan{Held: []decision.Held{{Kind: "node", Name: "n", Rule: decision.RuleNeverStarted}}}
	m.Round(cluster.Snapshot{Now: time.Now()}, late, decision.Memory{}, decision.Policy{}, true, true)
	maps.Copy(there, Names(t, text(t, m.Registry())))
	for _, q := range Queries(t) {
		for _, name := range Selects(t, q) {
			if !there[name] {
				t.Errorf("%s reads %s, which the agent does not have", q.Where, name)
			}
		}
	}
}

// TestQuietHours: over two hours of rounds in which nothing is wrong no rule fires.
func TestQuietHours(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m := metrics()
	var scrapes []Scrape
	for i := range 121 {
		at := start.Add(time.Duration(i) * time.Minute)
		scrapes = append(scrapes, Scrape{at, scraped(t, at, m)})
	}
	store := Load(t, scrapes)
	defer func() { _ = store.Close() }() // in memory and a temporary directory
	for _, r := range Rules(t) {
		if at, summary := Firing(t, r, store, start, start.Add(2*time.Hour)); !at.IsZero() {
			t.Errorf("%s fires after %s of quiet: %s", r.Name(), at.Sub(start), summary)
		}
	}
}

// TestDashboard: its shape is Grafana's, panels do not overlap, and every query is one of
// Prometheus.
func TestDashboard(t *testing.T) {
	d := Board(t)
	if d.UID == "" || len(d.UID) > 40 || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schema %d", d.UID, d.Title, d.SchemaVersion)
	}
	variables := map[string]bool{}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	units := []string{"", "short", "s", "bytes", "percentunit", "none"}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the ID %d", p.ID)
		}
		ids[p.ID] = true
		if !slices.Contains([]string{"row", "stat", "timeseries"}, p.Type) || p.Title == "" {
			t.Errorf("panel %q is of type %q", p.Title, p.Type)
		}
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W < 1 || p.GridPos.H < 1 {
			t.Errorf("panel %q is at %+v", p.Title, p.GridPos)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource == nil || p.Datasource.UID != "${datasource}" || !slices.Contains(units, p.FieldConfig.Defaults.Unit) || len(p.Targets) == 0 {
			t.Errorf("panel %q: data source %+v, unit %q, %d queries", p.Title, p.Datasource, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" {
				t.Errorf("panel %q: two queries are called %q", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			if strings.Contains(target.Expr, "$group") && !variables["group"] || !strings.Contains(target.Expr, `job=~"$job"`) {
				t.Errorf("panel %q: %s", p.Title, target.Expr)
			}
		}
	}
	if len(d.Panels) < 20 || !variables["datasource"] || !variables["job"] || !variables["group"] {
		t.Errorf("%d panels, variables %v", len(d.Panels), variables)
	}
}

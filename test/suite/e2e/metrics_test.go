package e2e

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/alerts"
)

// TestMetricsOfTheRunningAgent scrapes the agent while machines come and go with nothing
// wrong, and for two hours after that, in which its last answer stands and only the clock
// goes on: no alert rule fires at any minute, every metric that a rule or a panel reads is
// there, and the queries of dashboards for Cluster Autoscaler have data.
func TestMetricsOfTheRunningAgent(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=3s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s", "AUTOSCALER_SCALING_DRIFT=true") // groups whose nodes are replaced have metrics of their rollouts
	var mu sync.Mutex
	var scrapes []alerts.Scrape
	scrape := func() {
		if text := s.metrics(); text != nil {
			mu.Lock()
			defer mu.Unlock()
			scrapes = append(scrapes, alerts.Scrape{At: time.Now(), Text: text})
		}
	}
	s.until("metrics on the socket", func() bool { scrape(); return len(scrapes) > 0 })
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Second); ; {
			select {
			case <-tick.C:
				scrape()
			case <-ctx.Done():
				return
			}
		}
	}()
	s.workers(world.Workers{Name: "workers", Max: 8})
	s.deploy("load", 20, "700m", "64Mi")
	s.until("20 Running", func() bool { return s.running("load") == 20 })
	scrape()
	s.scale("load", 0)
	s.until("no worker left", func() bool { return len(s.nodes()) == 0 })
	// A metric without a value yet is absent: a busy machine may take some rounds to have all.
	var absent []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("not answered: %s", strings.Join(absent, ", "))
		}
	})
	s.until("a round after that, and every metric that is read was answered at some time", func() bool {
		scrape()
		mu.Lock()
		seen := slices.Clone(scrapes)
		mu.Unlock()
		absent = notAnswered(t, seen)
		return len(absent) == 0 && strings.Contains(string(seen[len(seen)-1].Text), "cluster_autoscaler_pending_node_deletions 0\n")
	})
	stop()
	<-done
	last := scrapes[len(scrapes)-1]
	start := scrapes[0].At
	for i := range 120 {
		later := time.Duration(i+1) * time.Minute
		scrapes = append(scrapes, alerts.Scrape{At: last.At.Add(later), Text: alerts.Aged(last.Text, later)})
	}
	store := alerts.Load(t, scrapes)
	defer func() { _ = store.Close() }() // in memory and a temporary directory
	for _, r := range alerts.Rules(t) {
		if at, summary := alerts.Firing(t, r, store, start, last.At.Add(2*time.Hour)); !at.IsZero() {
			t.Errorf("%s fires %s after the start: %s", r.Name(), at.Sub(start), summary)
		}
	}
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	for _, query := range dashboardsForClusterAutoscaler {
		q, err := engine.NewInstantQuery(context.Background(), store, nil, query, last.At)
		if err != nil {
			t.Fatal(err)
		}
		if result := q.Exec(context.Background()); result.Err != nil || result.Value.String() == "" {
			t.Errorf("no data: %s: %v", query, result.Err)
		}
		q.Close()
	}
}

// onlyWithTrouble are metrics that no answer has here: of what is in trouble, and prices, which groups of these types do not have.
var onlyWithTrouble = []string{"autoscaler_node_group_price_per_hour", "autoscaler_nodecleaner_held_nodes", "autoscaler_node_not_started",
	"autoscaler_rollout_waiting_since_timestamp_seconds"}

// notAnswered are the metrics that an alert rule or a panel reads and that no answer has: series of nodes end with the nodes.
func notAnswered(t *testing.T, scrapes []alerts.Scrape) (out []string) {
	there := map[string]bool{}
	for _, s := range scrapes {
		maps.Copy(there, alerts.Names(t, s.Text))
	}
	for _, q := range alerts.Queries(t) {
		for _, name := range alerts.Selects(t, q) {
			if !there[name] && !slices.Contains(onlyWithTrouble, name) {
				out = append(out, q.Where+" reads "+name)
			}
		}
	}
	return out
}

// dashboardsForClusterAutoscaler are the forms in which public dashboards and alerts read
// its metrics.
var dashboardsForClusterAutoscaler = []string{
	`sum(cluster_autoscaler_nodes_count)`, `sum(cluster_autoscaler_nodes_count) by (state)`, `sum(cluster_autoscaler_max_nodes_count)`,
	`sum(cluster_autoscaler_nodes_count) / sum(cluster_autoscaler_max_nodes_count)`, `sum(cluster_autoscaler_node_groups_count)`,
	`sum(cluster_autoscaler_cluster_safe_to_autoscale)`, `sum(cluster_autoscaler_unschedulable_pods_count) by (type)`,
	`time() - max(cluster_autoscaler_last_activity{activity="scaleUp"})`, `time() - max(cluster_autoscaler_last_activity{activity="scaleDown"})`,
	`time() - cluster_autoscaler_last_activity{activity="autoscaling"}`, `sum(cluster_autoscaler_unneeded_nodes_count)`,
	`sum(increase(cluster_autoscaler_evicted_pods_total[5m])) by (eviction_result)`, `sum(increase(cluster_autoscaler_scaled_up_nodes_total[5m]))`,
	`sum(increase(cluster_autoscaler_scaled_down_nodes_total[5m])) by (reason)`, `sum(rate(cluster_autoscaler_failed_scale_ups_total[5m])) by (reason)`,
	`sum(rate(cluster_autoscaler_errors_total[5m])) by (type)`, `count(cluster_autoscaler_node_group_min_count)`,
	`avg by (node_group) (cluster_autoscaler_node_group_target_count) / max by (node_group) (cluster_autoscaler_node_group_max_count)`,
	`sum(cluster_autoscaler_node_group_healthiness) / count(cluster_autoscaler_node_group_healthiness)`,
	`sum(cluster_autoscaler_node_group_backoff_status) / count(cluster_autoscaler_node_group_backoff_status)`,
	`histogram_quantile(0.99, sum(rate(cluster_autoscaler_function_duration_seconds_bucket{function="main"}[5m])) by (le))`,
	`sum(rate(cluster_autoscaler_function_duration_seconds_sum[5m])) by (function)`, `cluster_autoscaler_cluster_cpu_current_cores`,
	`cluster_autoscaler_cpu_limits_cores`, `process_resident_memory_bytes`, `go_goroutines`,
}

// metrics is the agent's answer to /metrics on its socket; nil: none yet.
func (s *scene) metrics() []byte {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.w.Socket())
	}}}
	resp, err := client.Get("http://agent/metrics")
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return text
}

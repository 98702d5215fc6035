package report

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// rolloutMetrics tell of nodes that are replaced.
type rolloutMetrics struct {
	state, nodes, since, kubelets *prometheus.GaugeVec
}

// replaced are the reasons for which nodes are replaced, and not only removed.
var replaced = []string{cluster.ReasonRequested, cluster.ReasonSick, cluster.ReasonDrifted, cluster.ReasonExpired}

func newRolloutMetrics(r registrar) rolloutMetrics {
	m := rolloutMetrics{
		state:    r.gauge("autoscaler_rollout_state", "1 for the state of a node group's rollout: done, waiting, trial, rolling, paused or halted; only groups whose nodes are replaced.", "node_group", "state"),
		since:    r.gauge("autoscaler_rollout_waiting_since_timestamp_seconds", "Since when the node of a node group has been to be replaced that has waited longest; only groups with such a node.", "node_group"),
		kubelets: r.gauge("autoscaler_kubelets_count", "Nodes that are no leaders, by how many minor versions their kubelet is older than the API server; negative: newer.", "minors_behind"),
		nodes:    r.gauge("autoscaler_disruption_nodes_count", "Nodes that are to be replaced, by reason.", "reason"),
	}
	for _, reason := range replaced {
		m.nodes.WithLabelValues(reason)
	}
	return m
}

// round takes the plan of a round. On stale facts nothing was judged, and what was known stays.
func (m *rolloutMetrics) round(s *cluster.Snapshot, p *decision.Plan) {
	if s.Stale != "" {
		return
	}
	m.state.Reset()
	m.since.Reset()
	by := map[string]int{}
	for _, r := range p.Rollouts {
		m.state.WithLabelValues(string(r.Group), r.State).Set(1)
		if !r.Oldest.IsZero() {
			m.since.WithLabelValues(string(r.Group)).Set(float64(r.Oldest.Unix()))
		}
		for reason, n := range r.By {
			by[reason] += n
		}
	}
	for _, reason := range replaced {
		m.nodes.WithLabelValues(reason).Set(float64(by[reason]))
	}
	m.versions(s)
}

// versions counts the workers by how far their kubelets are behind the API server.
func (m *rolloutMetrics) versions(s *cluster.Snapshot) {
	m.kubelets.Reset()
	for _, n := range s.Nodes {
		if !n.ControlPlane && n.KubeletVersion != "" && s.ControlPlaneVersion != "" {
			m.kubelets.WithLabelValues(strconv.Itoa(cluster.MinorsBehind(n.KubeletVersion, s.ControlPlaneVersion))).Inc()
		}
	}
}

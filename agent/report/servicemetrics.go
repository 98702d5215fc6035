package report

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// ownPrefix begins the name of every metric that Cluster Autoscaler does not have.
const ownPrefix = "autoscaler_"

// serviceMetric is a counter or a gauge of a service beside the scaler. The services name
// it without the prefix.
type serviceMetric struct {
	name, help string
	labels     []string
	first      []string // values of the one label from the start

	counter *prometheus.CounterVec
	gauge   *prometheus.GaugeVec
}

// newServiceMetrics registers every metric that a service may count or set. A test
// compares the list with the services' sources.
func newServiceMetrics(r registrar) map[string]*serviceMetric {
	counters := []serviceMetric{
		{name: "csr_decisions_total", help: "Verdicts on certificate requests, by what is done and the rule; a verdict that repeats is one.", labels: []string{"do", "rule"}},
		{name: "csr_alarms_total", help: "Times that the alarm of a flood of certificate requests began."},
		{name: "nodecleaner_held_total", help: "Nodes that are not Ready and were newly held, by rule.", labels: []string{"rule"}},
		{name: "nodecleaner_deleted_total", help: "Node objects of dead machines that were deleted, by the rule of the proof.", labels: []string{"rule"}, first: []string{"G3", "G4", "S1"}},
		{name: "nodecleaner_breakers_total", help: "Times that a breaker stopped the deletion of Nodes, by rule.", labels: []string{"rule"}},
		{name: "nodecleaner_out_of_service_total", help: "Nodes that were given the taint out-of-service."},
		{name: "bootstrap_tokens_total", help: "Join tokens, by what became of them.", labels: []string{"what"}, first: []string{"made", "renewed", "revoked", "deleted"}},
		{name: "bootstrap_publications_total", help: "Times that new join values were published."},
		{name: "bootstrap_rehearsals_total", help: "Rehearsals of a join with the published values, by result.", labels: []string{"result"}, first: []string{"ok", "failed"}},
		{name: "bootstrap_attestations_total", help: "Machines that asked the attest listener for a token, by the rule that refused them, or served.", labels: []string{"rule"}, first: []string{"served"}},
	}
	gauges := []serviceMetric{
		{name: "csr_pending_count", help: "Certificate requests of kubelets that are not decided."},
		{name: "csr_alarm", help: "1 while certificate requests flood the cluster."},
		{name: "nodecleaner_held_nodes", help: "Nodes that are not Ready and are kept, by the rule that holds them.", labels: []string{"rule"}},
		{name: "nodecleaner_breaker_open", help: "1 while a breaker stops the deletion of Nodes.", labels: []string{"rule"}},
	}
	all := map[string]*serviceMetric{}
	for _, s := range counters {
		s.counter = r.counter(ownPrefix+s.name, s.help, s.labels...)
		if len(s.labels) == 0 {
			s.counter.WithLabelValues()
		}
		for _, value := range s.first {
			s.counter.WithLabelValues(value)
		}
		all[s.name] = &s
	}
	for _, s := range gauges {
		if s.gauge = r.gauge(ownPrefix+s.name, s.help, s.labels...); len(s.labels) == 0 {
			s.gauge.WithLabelValues()
		}
		all[s.name] = &s
	}
	return all
}

// Count adds one to a counter of a service; labels are names and values in turn. A name
// that is not declared counts nothing: counting is not worth a crash.
func (m *Metrics) Count(name string, labels ...string) {
	if s := m.services[strings.TrimPrefix(name, ownPrefix)]; s != nil && s.counter != nil {
		if c, err := s.counter.GetMetricWith(pairs(labels)); err == nil {
			c.Inc()
		}
	}
}

// Gauge sets a gauge of a service; labels are names and values in turn.
func (m *Metrics) Gauge(name string, value float64, labels ...string) {
	if s := m.services[strings.TrimPrefix(name, ownPrefix)]; s != nil && s.gauge != nil {
		if g, err := s.gauge.GetMetricWith(pairs(labels)); err == nil {
			g.Set(value)
		}
	}
}

func pairs(labels []string) prometheus.Labels {
	out := prometheus.Labels{}
	for i := 0; i+1 < len(labels); i += 2 {
		out[labels[i]] = labels[i+1]
	}
	return out
}

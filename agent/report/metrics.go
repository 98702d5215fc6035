package report

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Metrics are those that dashboards for Cluster Autoscaler know, under its names,
// and a few of the agent's own. The registry is its own: the process's default one
// carries collectors that nobody asked for.
type Metrics struct {
	registry      *prometheus.Registry
	mu            sync.Mutex
	counters      map[string]*prometheus.CounterVec // by name; see Count
	gauges        map[string]*prometheus.GaugeVec   // by name; see Gauge
	safe          prometheus.Gauge
	nodes         *prometheus.GaugeVec
	unschedulable prometheus.Gauge
	groupMin      *prometheus.GaugeVec
	groupMax      *prometheus.GaugeVec
	groupTarget   *prometheus.GaugeVec
	activity      *prometheus.GaugeVec
	errors        *prometheus.CounterVec
	scaledUp      prometheus.Counter
	scaledDown    *prometheus.CounterVec
	failedUp      *prometheus.CounterVec
	evicted       *prometheus.CounterVec
	held          *prometheus.GaugeVec
	waited        prometheus.Histogram
	decision      prometheus.Histogram
	calls         *prometheus.HistogramVec
	duration      *prometheus.HistogramVec
	ca            caMetrics
}

// NewMetrics returns metrics in a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(v)
		return v
	}
	m.safe = gauge("cluster_autoscaler_cluster_safe_to_autoscale", "1 while the agent may act and its facts are live.").WithLabelValues()
	m.nodes = gauge("cluster_autoscaler_nodes_count", "Nodes by state.", "state")
	m.unschedulable = gauge("cluster_autoscaler_unschedulable_pods_count", "Pods that the scheduler found no node for.").WithLabelValues()
	m.groupMin = gauge("cluster_autoscaler_node_group_min_count", "Least size of a node group.", "node_group")
	m.groupMax = gauge("cluster_autoscaler_node_group_max_count", "Largest size of a node group.", "node_group")
	m.groupTarget = gauge("cluster_autoscaler_node_group_target_count", "Size that the cloud was asked for.", "node_group")
	m.activity = gauge("cluster_autoscaler_last_activity", "Unix time of the last activity of a kind.", "activity")
	m.errors = counter("cluster_autoscaler_errors_total", "Errors by type.", "type")
	m.scaledUp = counter("cluster_autoscaler_scaled_up_nodes_total", "Nodes asked for by scale-ups.").WithLabelValues()
	m.scaledDown = counter("cluster_autoscaler_scaled_down_nodes_total", "Nodes taken by scale-down, by reason.", "reason")
	m.failedUp = counter("cluster_autoscaler_failed_scale_ups_total", "Scale-ups that the cloud refused, by reason.", "reason")
	m.evicted = counter("cluster_autoscaler_evicted_pods_total", "Evictions asked for, by result.", "eviction_result")
	m.held = gauge("autoscaler_held_count", "Things that the last plan held back, by kind and rule.", "kind", "rule")
	m.waited = histogram("autoscaler_pod_pending_to_decision_seconds", "From the first sight of an unschedulable pod to the plan that covers it.",
		[]float64{.1, .25, .5, .75, 1, 1.5, 2, 3, 5, 10}).WithLabelValues().(prometheus.Histogram)
	m.decision = histogram("autoscaler_decision_seconds", "Time that one plan took to make.", []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}).WithLabelValues().(prometheus.Histogram)
	m.calls = histogram("autoscaler_provider_call_seconds", "Calls to the cloud by method and result.", []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "method", "result")
	m.duration = histogram("cluster_autoscaler_function_duration_seconds", "Time that parts of a round took.", []float64{.001, .01, .05, .1, .5, 1, 2.5, 5, 10, 30}, "function")
	m.ca = newCAMetrics(gauge, counter, histogram)
	return m
}

// Round updates the gauges from a Snapshot and the plan made of it; changed tells that
// the plan is another one than the last.
func (m *Metrics) Round(s cluster.Snapshot, p decision.Plan, memory decision.Memory, policy decision.Policy, mayAct, changed bool) {
	m.safe.Set(0)
	if mayAct && s.Stale == "" {
		m.safe.Set(1)
	}
	waiting := 0
	for _, pod := range s.Pods {
		if !pod.Unschedulable.IsZero() {
			waiting++
		}
	}
	m.unschedulable.Set(float64(waiting))
	m.ca.round(&s, p, memory, policy, changed)
	m.countNodes(&s, memory, policy)
	for _, v := range []*prometheus.GaugeVec{m.groupMin, m.groupMax, m.groupTarget} {
		v.Reset()
	}
	for _, g := range s.Groups {
		m.groupMin.WithLabelValues(string(g.ID)).Set(float64(g.Min))
		m.groupMax.WithLabelValues(string(g.ID)).Set(float64(g.Max))
		m.groupTarget.WithLabelValues(string(g.ID)).Set(float64(g.Target))
	}
	if changed {
		m.held.Reset()
		for i := range p.Held {
			h := &p.Held[i]
			m.held.WithLabelValues(h.Kind, h.Rule).Add(float64(max(h.Count, 1)))
		}
	}
	m.activity.WithLabelValues("main").Set(float64(s.Now.Unix()))
}

// Outcomes counts what became of a plan's actions.
func (m *Metrics) Outcomes(outcomes []cluster.Outcome, p decision.Plan) {
	reasons, marks := map[cluster.InstanceID]string{}, map[cluster.NodeName]string{}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case decision.Terminate:
			reasons[a.Instance] = a.Rule
		case decision.Cordon:
			marks[a.Node] = a.Rule
		}
	}
	for _, o := range outcomes {
		at := float64(o.At.Unix())
		switch {
		case o.Kind == provider.Busy.String(): // nothing failed and nothing was done
		case o.Action == "grow" && o.Error == "":
			m.scaledUp.Add(float64(max(o.To-o.From, 0)))
			m.activity.WithLabelValues("scaleUp").Set(at)
			m.ca.asked(o)
		case o.Action == "grow":
			m.failedUp.WithLabelValues(o.Kind).Inc()
			m.errors.WithLabelValues("cloudProviderError").Inc()
		case o.Action == "terminate" && o.Error == "":
			m.scaledDown.WithLabelValues(m.ca.removed(o, reasons[o.Instance])).Inc()
			m.activity.WithLabelValues("scaleDown").Set(at)
		case o.Action == "terminate":
			m.errors.WithLabelValues("cloudProviderError").Inc()
		case o.Action == "cordon" && o.Error == "":
			m.ca.marked(o, marks[o.Node])
		case o.Action == "evict" && o.Error == "":
			m.ca.drained(o)
			m.evicted.WithLabelValues("succeeded").Inc()
		case o.Action == "evict":
			m.evicted.WithLabelValues("failed").Inc()
		case o.Error != "":
			m.errors.WithLabelValues("apiCallError").Inc()
		}
	}
}

// Registry is what /metrics serves.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Decided times one decision.
func (m *Metrics) Decided(took time.Duration) { m.decision.Observe(took.Seconds()) }

// Waited is the time from the first sight of an unschedulable pod to the decision about it.
func (m *Metrics) Waited(d time.Duration) { m.waited.Observe(d.Seconds()) }

// RoundTook times one whole round, actions included.
func (m *Metrics) RoundTook(d time.Duration) { m.duration.WithLabelValues("main").Observe(d.Seconds()) }

// Active notes that the loop looked at the cluster at now.
func (m *Metrics) Active(now time.Time) { m.activity.WithLabelValues("main").Set(float64(now.Unix())) }

// Request counts one request to the cloud's API, by the cloud's own name of it.
func (m *Metrics) Request(action string, _ time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.Count("autoscaler_cloud_requests_total", "action", action, "result", result)
}

// Call times a call to the cloud; it is what wrap.Count reports.
func (m *Metrics) Call(method string, took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = provider.KindOf(err).String()
	}
	m.calls.WithLabelValues(method, result).Observe(took.Seconds())
}

// Count adds one to a counter of a service; labels are names and values in turn. A
// counter appears with its first event.
func (m *Metrics) Count(name string, labels ...string) {
	names, values := pairs(labels)
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.counters[name]
	if !ok {
		v = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "Counted by a service of the agent."}, names)
		if m.registry.Register(v) != nil {
			return // the name is taken by a metric of another kind; counting is not worth a crash
		}
		if m.counters == nil {
			m.counters = map[string]*prometheus.CounterVec{}
		}
		m.counters[name] = v
	}
	if c, err := v.GetMetricWithLabelValues(values...); err == nil {
		c.Inc()
	}
}

// Gauge sets a gauge of a service; labels are names and values in turn. A gauge appears
// when it is first set.
func (m *Metrics) Gauge(name string, value float64, labels ...string) {
	names, values := pairs(labels)
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.gauges[name]
	if !ok {
		v = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "Measured by a service of the agent."}, names)
		if m.registry.Register(v) != nil {
			return // as in Count
		}
		if m.gauges == nil {
			m.gauges = map[string]*prometheus.GaugeVec{}
		}
		m.gauges[name] = v
	}
	if g, err := v.GetMetricWithLabelValues(values...); err == nil {
		g.Set(value)
	}
}

func pairs(labels []string) (names, values []string) {
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return names, values
}

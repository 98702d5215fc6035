package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Metrics are those that dashboards for Cluster Autoscaler know, under its names and with
// its meaning, and the agent's own, whose names begin with "autoscaler_". Every metric whose
// labels are known is there with its first value from the start, so that rate and increase
// see the first event. The registry is its own: the process's default one carries
// collectors that nobody asked for.
type Metrics struct {
	registry      *prometheus.Registry
	services      map[string]*serviceMetric
	safe          prometheus.Gauge
	unschedulable *prometheus.GaugeVec
	groupMin      *prometheus.GaugeVec
	groupMax      *prometheus.GaugeVec
	groupTarget   *prometheus.GaugeVec
	groupPrice    *prometheus.GaugeVec
	nodes         *prometheus.GaugeVec
	activity      *prometheus.GaugeVec
	errors        *prometheus.CounterVec
	scaledUp      prometheus.Counter
	scaledDown    *prometheus.CounterVec
	failedUp      *prometheus.CounterVec
	evicted       *prometheus.CounterVec
	held          *prometheus.GaugeVec
	notStarted    *prometheus.GaugeVec
	waited        prometheus.Histogram
	decision      prometheus.Histogram
	calls         *prometheus.HistogramVec
	requests      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	quantile      *prometheus.SummaryVec
	ca            caMetrics
	rollouts      rolloutMetrics
}

// The label values of Cluster Autoscaler's metrics.
const (
	cloudProviderError = "cloudProviderError"
	apiCallError       = "apiCallError"
	timeoutError       = "timeout"
)

// activities are what Cluster Autoscaler names in last_activity. Each round of this agent
// does all four; its users alert on the age of any of them.
var activities = []string{"main", "autoscaling", "scaleUp", "scaleDown"}

// NewMetrics returns metrics in a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	r := registrar{m.registry}
	m.safe = r.gauge("cluster_autoscaler_cluster_safe_to_autoscale", "1 while this agent may act and the API server is heard, 0 otherwise; 0 on an agent that does not hold the Lease.").WithLabelValues()
	m.nodes = r.gauge("cluster_autoscaler_nodes_count", "Nodes of the cluster, the control plane included, and machines without a Node, by state.", "state")
	m.unschedulable = r.gauge("cluster_autoscaler_unschedulable_pods_count", "Pods that the scheduler found no node for, by Cluster Autoscaler's type; scheduler_unprocessed is always 0: such pods are not taken for pending.", "type")
	m.groupMin = r.gauge("cluster_autoscaler_node_group_min_count", "Least size of a node group.", "node_group")
	m.groupMax = r.gauge("cluster_autoscaler_node_group_max_count", "Largest size of a node group.", "node_group")
	m.groupTarget = r.gauge("cluster_autoscaler_node_group_target_count", "Size of a node group that the cloud was asked for.", "node_group")
	m.groupPrice = r.gauge("autoscaler_node_group_price_per_hour", "Price of a node group's target for an hour, in the currency of groups.yaml; only where a price is known.", "node_group")
	m.activity = r.gauge("cluster_autoscaler_last_activity", "Unix time at which a part of the loop last ran.", "activity")
	m.errors = r.counter("cluster_autoscaler_errors_total", "Calls to the cloud or to the API server that failed, by Cluster Autoscaler's type. A change that the cloud asks to try again later is none.", "type")
	m.scaledUp = r.counter("cluster_autoscaler_scaled_up_nodes_total", "Machines that node groups were grown by.").WithLabelValues()
	m.scaledDown = r.counter("cluster_autoscaler_scaled_down_nodes_total", "Machines that the cloud was told to end, by reason.", "reason")
	m.failedUp = r.counter("cluster_autoscaler_failed_scale_ups_total", "Scale-ups that failed: the cloud refused the call or could not start a machine (cloudProviderError), or a machine did not join in its time (timeout).", "reason")
	m.evicted = r.counter("cluster_autoscaler_evicted_pods_total", "Evictions asked for, by result.", "eviction_result")
	m.held = r.gauge("autoscaler_held_count", "Things that the last plan held back, by kind and rule.", "kind", "rule")
	m.notStarted = r.gauge("autoscaler_node_not_started", "1 for a node that has not become in its time what its group's template says.", "node")
	m.waited = r.histogram("autoscaler_pod_pending_to_decision_seconds", "From the first sight of an unschedulable pod to the plan that covers it.",
		[]float64{.1, .25, .5, .75, 1, 1.5, 2, 3, 5, 10}).WithLabelValues().(prometheus.Histogram)
	m.decision = r.histogram("autoscaler_decision_seconds", "Time that one plan took to make.", []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}).WithLabelValues().(prometheus.Histogram)
	m.calls = r.histogram("autoscaler_provider_call_seconds", "Calls to the cloud by method and result.", []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "method", "result")
	m.requests = r.counter("autoscaler_cloud_requests_total", "Requests to the API of the cloud, by its own name of the action.", "action", "result")
	m.duration = r.histogram("cluster_autoscaler_function_duration_seconds", "Time that a part of a round took; a round in which nothing changed is not decided again and is not counted.", []float64{.001, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 100}, "function")
	m.quantile = r.summary("cluster_autoscaler_function_duration_quantile_seconds", "Sum and count of the time that a part of a round took.", "function")
	m.ca, m.rollouts = newCAMetrics(r), newRolloutMetrics(r)
	m.services = newServiceMetrics(r)
	r.process()
	m.zero()
	return m
}

// zero gives each metric whose labels are known its first value.
func (m *Metrics) zero() {
	for _, kind := range []string{cloudProviderError, apiCallError, "internalError"} {
		m.errors.WithLabelValues(kind)
	}
	for _, reason := range []string{cloudProviderError, apiCallError, timeoutError} {
		m.failedUp.WithLabelValues(reason)
	}
	for _, reason := range []string{"empty", "underutilized", "unready", "unregistered"} {
		m.scaledDown.WithLabelValues(reason)
	}
	for _, result := range []string{"succeeded", "failed"} {
		m.evicted.WithLabelValues(result)
	}
	for _, state := range []string{"ready", "unready", "notStarted", "unregistered", "longUnregistered"} {
		m.nodes.WithLabelValues(state)
	}
	for _, kind := range []string{"unschedulable", "scheduler_unprocessed"} {
		m.unschedulable.WithLabelValues(kind)
	}
	for _, function := range []string{"main", stepState, stepScaleUp, stepFindUnneeded, stepScaleDown} {
		m.duration.WithLabelValues(function)
		m.quantile.WithLabelValues(function)
	}
	m.ca.zero()
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
	m.unschedulable.WithLabelValues("unschedulable").Set(float64(waiting))
	m.failedUp.WithLabelValues(cloudProviderError).Add(float64(m.ca.round(&s, p, memory, policy, changed)))
	m.countNodes(&s, memory, policy)
	for _, v := range []*prometheus.GaugeVec{m.groupMin, m.groupMax, m.groupTarget, m.groupPrice} {
		v.Reset()
	}
	for _, g := range s.Groups {
		if g.Unmade() {
			continue
		}
		m.groupMin.WithLabelValues(string(g.ID)).Set(float64(g.Min))
		m.groupMax.WithLabelValues(string(g.ID)).Set(float64(g.Max))
		m.groupTarget.WithLabelValues(string(g.ID)).Set(float64(g.Target))
		if g.Price > 0 && !g.PriceComputed {
			m.groupPrice.WithLabelValues(string(g.ID)).Set(g.Price * float64(g.Target))
		}
	}
	m.rollouts.round(&s, &p)
	if changed {
		m.held.Reset()
		m.notStarted.Reset()
		for i := range p.Held {
			h := &p.Held[i]
			m.held.WithLabelValues(h.Kind, h.Rule).Add(float64(max(h.Count, 1)))
			if h.Rule == decision.RuleNeverStarted {
				m.notStarted.WithLabelValues(h.Name).Set(1)
			}
		}
	}
	m.Active(s.Now)
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
	late := map[cluster.GroupID]bool{} // groups whose machines did not join
	for _, o := range outcomes {
		switch {
		case o.Kind == provider.Busy.String(): // nothing failed and nothing was done
		case o.Action == "grow" && o.Error == "":
			m.scaledUp.Add(float64(max(o.To-o.From, 0)))
			m.ca.asked(o)
		case o.Action == "grow" && o.Kind == provider.Conflict.String(): // somebody changed the group meanwhile: the next round decides anew
		case o.Action == "grow":
			m.failedUp.WithLabelValues(cloudProviderError).Inc()
			m.errors.WithLabelValues(cloudProviderError).Inc()
		case o.Action == "terminate" && o.Error == "":
			m.scaledDown.WithLabelValues(m.ca.removed(o, reasons[o.Instance])).Inc()
			if reasons[o.Instance] == decision.RuleNoJoin && !late[o.Group] {
				late[o.Group] = true
				m.failedUp.WithLabelValues(timeoutError).Inc()
			}
		case o.Action == "terminate":
			m.errors.WithLabelValues(cloudProviderError).Inc()
		case o.Action == "uncordon" && o.Error == "":
			m.ca.kept(o)
		case o.Action == "cordon" && o.Error == "":
			m.ca.marked(o, marks[o.Node])
		case o.Action == "evict" && o.Error == "":
			m.ca.drained(o)
			m.evicted.WithLabelValues("succeeded").Inc()
		case o.Action == "evict":
			m.evicted.WithLabelValues("failed").Inc()
		case o.Error != "":
			m.errors.WithLabelValues(apiCallError).Inc()
		}
	}
}

// Registry is what /metrics serves.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Decided times one decision.
func (m *Metrics) Decided(took time.Duration) { m.decision.Observe(took.Seconds()) }

// Waited is the time from the first sight of an unschedulable pod to the decision about it.
func (m *Metrics) Waited(d time.Duration) { m.waited.Observe(d.Seconds()) }

// Active notes that the loop looked at the cluster at now.
func (m *Metrics) Active(now time.Time) {
	for _, activity := range activities {
		m.activity.WithLabelValues(activity).Set(float64(now.Unix()))
	}
}

// Request counts one request to the cloud's API, by the cloud's own name of it.
func (m *Metrics) Request(action string, _ time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.requests.WithLabelValues(action, result).Inc()
}

// Call times a call to the cloud; it is what wrap.Count reports. Failed changes are
// counted with their outcomes.
func (m *Metrics) Call(method string, took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = provider.KindOf(err).String()
		if method == "Groups" {
			m.errors.WithLabelValues(cloudProviderError).Inc()
		}
	}
	m.calls.WithLabelValues(method, result).Observe(took.Seconds())
}

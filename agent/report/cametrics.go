package report

import (
	"cmp"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// caMetrics are those that need to remember something between rounds, and Cluster
// Autoscaler's about scale-down and backoff. It is used by the scaler's goroutine
// alone.
type caMetrics struct {
	backoff     *prometheus.GaugeVec
	healthiness *prometheus.GaugeVec
	groups      *prometheus.GaugeVec
	most        *prometheus.GaugeVec
	cores       *prometheus.GaugeVec
	coreLimits  *prometheus.GaugeVec
	memory      *prometheus.GaugeVec
	memoryLimit *prometheus.GaugeVec
	unneeded    *prometheus.GaugeVec
	unremovable *prometheus.GaugeVec
	cooldown    *prometheus.GaugeVec
	pending     *prometheus.GaugeVec
	nap         *prometheus.GaugeVec
	created     *prometheus.CounterVec
	deleted     *prometheus.CounterVec
	skipped     *prometheus.CounterVec
	reaped      *prometheus.CounterVec
	failedNodes *prometheus.CounterVec
	latency     *prometheus.HistogramVec
	ready       *prometheus.HistogramVec

	asks    []ask
	arrived map[cluster.UID]bool           // nodes that an ask was met by
	leaving map[cluster.NodeName]departure // nodes that this agent has marked
	failed  map[cluster.GroupID]time.Time  // newest failure to start that was counted
	atLimit map[limit]bool                 // limits that the last plan held something back at
}

// ask is one successful resize whose machines are awaited.
type ask struct {
	group cluster.GroupID
	at    time.Time
	left  int
}

// departure is a node on its way out.
type departure struct {
	at      time.Time
	unready bool
	drained bool
}

// awaitedFor bounds how long a machine is awaited for decision_to_ready_seconds.
const awaitedFor = time.Hour

func newCAMetrics(r registrar) caMetrics {
	seconds := []float64{5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900}
	return caMetrics{
		backoff:     r.gauge("cluster_autoscaler_node_group_backoff_status", "1 while a node group is backed off, by cause; 0 without a cause while it is not.", "node_group", "reason"),
		healthiness: r.gauge("cluster_autoscaler_node_group_healthiness", "1 while the facts of a node group are live.", "node_group"),
		groups:      r.gauge("cluster_autoscaler_node_groups_count", "Node groups; this agent creates none itself (autoprovisioned).", "node_group_type"),
		most:        r.gauge("cluster_autoscaler_max_nodes_count", "Largest size of all node groups together, or the cluster's own limit where that is lower."),
		cores:       r.gauge("cluster_autoscaler_cluster_cpu_current_cores", "Cores of the Nodes that are not on their way out."),
		coreLimits:  r.gauge("cluster_autoscaler_cpu_limits_cores", "Least and largest number of cores of the cluster that are configured; +Inf: no limit.", "direction"),
		memory:      r.gauge("cluster_autoscaler_cluster_memory_current_bytes", "Memory of the Nodes that are not on their way out."),
		memoryLimit: r.gauge("cluster_autoscaler_memory_limits_bytes", "Least and largest memory of the cluster that is configured; +Inf: no limit.", "direction"),
		unneeded:    r.gauge("cluster_autoscaler_unneeded_nodes_count", "Nodes that nothing needs."),
		unremovable: r.gauge("cluster_autoscaler_unremovable_nodes_count", "Nodes that stay, by Cluster Autoscaler's reason, or the rule where it has none.", "reason"),
		cooldown:    r.gauge("cluster_autoscaler_scale_down_in_cooldown", "1 while scale-down waits after a scale-up or a failure."),
		pending:     r.gauge("cluster_autoscaler_pending_node_deletions", "Nodes that carry this agent's mark."),
		nap:         r.gauge("cluster_autoscaler_nap_enabled", "Always 0: this agent creates no node groups."),
		created:     r.counter("cluster_autoscaler_created_node_groups_total", "Always 0: this agent creates no node groups."),
		deleted:     r.counter("cluster_autoscaler_deleted_node_groups_total", "Always 0: this agent deletes no node groups."),
		skipped:     r.counter("cluster_autoscaler_skipped_scale_events_count", "Plans that newly held something back at a limit, by direction and limit.", "direction", "reason"),
		reaped:      r.counter("cluster_autoscaler_old_unregistered_nodes_removed_count", "Instances removed that never became Nodes."),
		failedNodes: r.counter("cluster_autoscaler_failed_node_creations_total", "Instances that the cloud could not start or that never joined, by cause.", "reason"),
		latency:     r.histogram("cluster_autoscaler_node_removal_latency_seconds", "From the mark on a node to its instance's termination (deleted=true), or until the mark was taken back (false).", seconds, "deleted"),
		ready:       r.histogram("autoscaler_decision_to_ready_seconds", "From a successful resize to a Ready node of it.", seconds),
		arrived:     map[cluster.UID]bool{}, leaving: map[cluster.NodeName]departure{}, failed: map[cluster.GroupID]time.Time{}, atLimit: map[limit]bool{},
	}
}

// zero gives each metric whose labels are known its first value.
func (m *caMetrics) zero() {
	for _, v := range []*prometheus.GaugeVec{m.most, m.cores, m.memory, m.unneeded, m.cooldown, m.pending, m.nap} {
		v.WithLabelValues()
	}
	for _, v := range []*prometheus.CounterVec{m.created, m.deleted, m.reaped} {
		v.WithLabelValues()
	}
	for _, kind := range []string{"autoscaled", "autoprovisioned"} {
		m.groups.WithLabelValues(kind)
	}
	for _, cause := range []cluster.Cause{cluster.CauseOther, cluster.CauseCapacity, cluster.CauseQuota, cluster.CauseInvalid, cluster.CauseRefused, cluster.CauseNoJoin} {
		m.failedNodes.WithLabelValues(string(cause))
	}
	for _, l := range limits {
		m.skipped.WithLabelValues(l.direction, l.reason)
	}
	for _, deleted := range []string{"true", "false"} {
		m.latency.WithLabelValues(deleted)
	}
	m.ready.WithLabelValues()
}

// limit is one that holds growth or removals back.
type limit struct{ direction, reason string }

// limits are the rules of limits, in Cluster Autoscaler's words where it has them.
var limits = map[string]limit{
	decision.RuleMax: {"up", "MaxLimitReached"}, decision.RuleTotals: {"up", "ResourceLimitReached"},
	decision.RuleAtMin: {"down", "MinLimitReached"}, decision.RuleTotalsMin: {"down", "MinimalResourceLimitReached"},
}

// round returns how many groups the cloud newly failed to start machines in.
func (m *caMetrics) round(s *cluster.Snapshot, p decision.Plan, memory decision.Memory, policy decision.Policy, changed bool) (failures int) {
	if changed {
		m.countHeld(p.Held)
	}
	for _, v := range []*prometheus.GaugeVec{m.backoff, m.healthiness} {
		v.Reset()
	}
	m.unneeded.WithLabelValues().Set(float64(len(memory.Unneeded)))
	m.pending.WithLabelValues().Set(float64(len(memory.Draining)))
	most, made := 0, 0
	for _, p := range cluster.Pools(s.Groups) {
		most += p.Max
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Pool == "" {
			most += g.Max
		}
		if g.Unmade() {
			continue
		}
		made++
		live := 1.0
		if g.Stale != "" {
			live = 0
		}
		m.healthiness.WithLabelValues(string(g.ID)).Set(live)
		if m.countFailures(g) {
			failures++
		}
	}
	if limit := policy.MaxNodesTotal; limit > 0 {
		most = min(most, limit)
	}
	m.most.WithLabelValues().Set(float64(most))
	m.groups.WithLabelValues("autoscaled").Set(float64(made))
	backedOff := map[cluster.GroupID]bool{}
	for i := range memory.Backoff {
		if b := &memory.Backoff[i]; b.Active(s.Now) {
			backedOff[b.Group] = true
			m.backoff.WithLabelValues(string(b.Group), string(b.Cause)).Set(1)
		}
	}
	for i := range s.Groups {
		if g := &s.Groups[i]; !backedOff[g.ID] {
			m.backoff.WithLabelValues(string(g.ID), "").Set(0)
		}
	}
	m.countResources(s, memory, policy)
	m.awaited(s)
	return failures
}

// countResources sets the cores and the memory of the cluster and their limits.
func (m *caMetrics) countResources(s *cluster.Snapshot, memory decision.Memory, policy decision.Policy) {
	var cpu, bytes int64
	for _, n := range s.Nodes {
		if _, leaves := memory.Draining[n.Name]; !leaves {
			cpu += n.Capacity.MilliCPU
			bytes += n.Capacity.Memory
		}
	}
	m.cores.WithLabelValues().Set(float64(cpu) / 1000)
	m.memory.WithLabelValues().Set(float64(bytes))
	atMost := func(n, unit int64) float64 {
		if n == 0 {
			return math.Inf(1)
		}
		return float64(n * unit)
	}
	m.coreLimits.WithLabelValues("minimum").Set(float64(policy.MinCoresTotal))
	m.coreLimits.WithLabelValues("maximum").Set(atMost(policy.MaxCoresTotal, 1))
	m.memoryLimit.WithLabelValues("minimum").Set(float64(policy.MinMemoryTotal << 30))
	m.memoryLimit.WithLabelValues("maximum").Set(atMost(policy.MaxMemoryTotal, 1<<30))
}

// countHeld counts the nodes that stay, by reason.
func (m *caMetrics) countHeld(held []decision.Held) {
	m.unremovable.Reset()
	cooldown, reached := 0.0, map[limit]bool{}
	for i := range held {
		h := &held[i]
		if l, ok := limits[h.Rule]; ok {
			reached[l] = true
		}
		if h.Kind != "node" || h.Rule == decision.RuleStarting || h.Rule == decision.RuleNeverStarted {
			continue
		}
		if h.Rule == decision.RuleCooldown || h.Rule == decision.RuleFailed {
			cooldown = 1
			continue // unneeded, and only the cluster's pause keeps it
		}
		m.unremovable.WithLabelValues(cmp.Or(decision.RuleByID(h.Rule).ClusterAutoscaler, h.Rule)).Inc()
	}
	m.cooldown.WithLabelValues().Set(cooldown)
	for l := range reached {
		if !m.atLimit[l] {
			m.skipped.WithLabelValues(l.direction, l.reason).Inc()
		}
	}
	m.atLimit = reached
}

// countFailures counts what the cloud reports of a group, each report once, and tells
// whether there was a new one.
func (m *caMetrics) countFailures(g *cluster.NodeGroup) (fresh bool) {
	newest, known := m.failed[g.ID], true
	if newest.IsZero() {
		known = false // what happened before this process is not counted again
	}
	last := newest
	for _, f := range g.Failures {
		if known && f.At.After(newest) {
			fresh = true
			m.failedNodes.WithLabelValues(string(f.Cause)).Inc()
		}
		if f.At.After(last) {
			last = f.At
		}
	}
	if !known && last.IsZero() {
		last = time.Unix(0, 0)
	}
	m.failed[g.ID] = last
	return fresh
}

// asked notes a successful resize.
func (m *caMetrics) asked(o cluster.Outcome) {
	m.asks = append(m.asks, ask{o.Group, o.At, max(o.To-o.From, 0)})
}

// awaited looks for the machines of the resizes that are Ready by now. It costs
// nothing while none is awaited.
func (m *caMetrics) awaited(s *cluster.Snapshot) {
	if len(m.asks) == 0 {
		return
	}
	young := map[cluster.InstanceID]*cluster.Node{}
	for _, n := range s.Nodes {
		if n.Created.After(m.asks[0].at.Add(-time.Second)) && n.Ready == cluster.StatusTrue && !m.arrived[n.UID] {
			young[cluster.InstanceID(n.ProviderID)] = n
		}
	}
	for i := range s.Groups {
		for k := range s.Groups[i].Instances {
			if n := young[s.Groups[i].Instances[k].ID]; n != nil {
				m.arrive(s.Groups[i].ID, n)
			}
		}
	}
	rest := m.asks[:0]
	for _, a := range m.asks {
		if a.left > 0 && s.Now.Sub(a.at) < awaitedFor {
			rest = append(rest, a)
		}
	}
	if m.asks = rest; len(rest) == 0 {
		clear(m.arrived)
	}
}

// arrive counts a Ready node for the oldest resize of its group that still waits.
func (m *caMetrics) arrive(group cluster.GroupID, n *cluster.Node) {
	for i := range m.asks {
		if a := &m.asks[i]; a.group == group && a.left > 0 && !n.ReadySince.Before(a.at.Truncate(time.Second)) {
			a.left--
			m.arrived[n.UID] = true
			m.ready.WithLabelValues().Observe(max(n.ReadySince.Sub(a.at).Seconds(), 0))
			return
		}
	}
}

// marked, drained, kept and removed follow a node on its way out.
func (m *caMetrics) marked(o cluster.Outcome, rule string) {
	if rule == decision.RuleInterrupted {
		return // the cloud ends it: nothing of ours follows
	}
	m.leaving[o.Node] = departure{at: o.At, unready: rule == decision.RuleUnready}
}

func (m *caMetrics) drained(o cluster.Outcome) {
	if d, ok := m.leaving[o.Node]; ok {
		d.drained = true
		m.leaving[o.Node] = d
	}
}

// kept notes a node whose mark was taken back.
func (m *caMetrics) kept(o cluster.Outcome) {
	if d, ok := m.leaving[o.Node]; ok {
		delete(m.leaving, o.Node)
		m.latency.WithLabelValues("false").Observe(max(o.At.Sub(d.at).Seconds(), 0))
	}
}

// removed counts an instance that was told to go and returns Cluster Autoscaler's
// reason for it.
func (m *caMetrics) removed(o cluster.Outcome, rule string) string {
	if o.Node == "" {
		m.reaped.WithLabelValues().Inc()
		if rule == decision.RuleNoJoin {
			m.failedNodes.WithLabelValues(string(cluster.CauseNoJoin)).Inc()
		}
		return "unregistered"
	}
	d, ok := m.leaving[o.Node]
	delete(m.leaving, o.Node)
	if ok {
		m.latency.WithLabelValues("true").Observe(o.At.Sub(d.at).Seconds())
	}
	switch {
	case d.unready:
		return "unready"
	case d.drained:
		return "underutilized"
	}
	return "empty"
}

// countNodes sets nodes_count by Cluster Autoscaler's states.
func (m *Metrics) countNodes(s *cluster.Snapshot, memory decision.Memory, policy decision.Policy) {
	ready, unready, starting, late := 0, 0, 0, 0
	for _, n := range s.Nodes {
		start, starts := memory.Starting[n.Name]
		switch {
		case n.Ready == cluster.StatusTrue && starts && start.Passed.IsZero() && !start.Overdue:
			starting++
		case n.Ready == cluster.StatusTrue:
			ready++
		case s.Now.Sub(n.Created) < policy.MaxNodeStartupTime:
			starting++
		default:
			unready++
		}
	}
	for _, since := range memory.Unregistered {
		if s.Now.Sub(since) >= policy.MaxNodeProvisionTime {
			late++
		}
	}
	for state, n := range map[string]int{"ready": ready, "unready": unready, "notStarted": starting, "unregistered": len(memory.Unregistered) - late, "longUnregistered": late} {
		m.nodes.WithLabelValues(state).Set(float64(n))
	}
}

package report

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// The status page of Cluster Autoscaler, by its field names (its clusterstate/api
// package, since 1.30): dashboards and habits read it in the ConfigMap
// cluster-autoscaler-status.
type (
	caStatus struct {
		Time      string    `json:"time"`
		State     string    `json:"autoscalerStatus"` // Initializing or Running
		Message   string    `json:"message,omitempty"`
		Cluster   caCluster `json:"clusterWide"`
		NodeGroup []caGroup `json:"nodeGroups,omitempty"`
	}
	caCluster struct {
		Health    caHealth    `json:"health"`
		ScaleUp   caScaleUp   `json:"scaleUp"`
		ScaleDown caScaleDown `json:"scaleDown"`
	}
	caGroup struct {
		Name      string        `json:"name"`
		Health    caGroupHealth `json:"health"`
		ScaleUp   caScaleUp     `json:"scaleUp"`
		ScaleDown caScaleDown   `json:"scaleDown"`
	}
	caHealth struct {
		Status string  `json:"status"` // Healthy or Unhealthy
		Counts caCount `json:"nodeCounts"`
		caTimes
	}
	caGroupHealth struct {
		Status string  `json:"status"`
		Counts caCount `json:"nodeCounts"`
		Target int     `json:"cloudProviderTarget"`
		Min    int     `json:"minSize"`
		Max    int     `json:"maxSize"`
		caTimes
	}
	caScaleUp struct {
		Status  string     `json:"status"` // InProgress, NoActivity or Backoff
		Backoff *caBackoff `json:"backoffInfo,omitempty"`
		caTimes
	}
	caBackoff struct {
		Code string `json:"errorCode"`
		Text string `json:"errorMessage"`
	}
	caScaleDown struct {
		Status     string `json:"status"` // CandidatesPresent or NoCandidates
		Candidates int    `json:"candidates,omitempty"`
		caTimes
	}
	caTimes struct {
		Probe      time.Time `json:"lastProbeTime"`
		Transition time.Time `json:"lastTransitionTime"`
	}
	caCount struct {
		Registered struct {
			Total        int `json:"total"`
			Ready        int `json:"ready"`
			NotStarted   int `json:"notStarted"`
			Suspended    int `json:"suspended"`
			BeingDeleted int `json:"beingDeleted"`
			Unready      struct {
				Total    int `json:"total"`
				Resource int `json:"resourceUnready"`
			} `json:"unready"`
		} `json:"registered"`
		LongUnregistered int `json:"longUnregistered"`
		Unregistered     int `json:"unregistered"`
	}
)

const caTimeFormat = "2006-01-02 15:04:05.999999999 -0700 MST"

// add counts one Node.
func (c *caCount) add(n *cluster.Node, now time.Time, startup time.Duration) {
	r := &c.Registered
	r.Total++
	for _, t := range n.Taints {
		if t.Key == cluster.TaintToBeDeleted {
			r.BeingDeleted++
			return
		}
	}
	switch {
	case n.Ready == cluster.StatusTrue:
		r.Ready++
	case now.Sub(n.Created) < startup:
		r.NotStarted++
	default:
		r.Unready.Total++
	}
}

// page writes the status of one round; since remembers when each condition became
// what it is.
func page(s *cluster.Snapshot, p decision.Plan, m decision.Memory, policy decision.Policy, since map[string]transition) caStatus {
	out := caStatus{Time: s.Now.UTC().Format(caTimeFormat), State: "Running"}
	times := func(about, status string) caTimes {
		t := since[about]
		if t.status != status {
			t = transition{status, s.Now.UTC()}
			since[about] = t
		}
		return caTimes{Probe: s.Now.UTC(), Transition: t.at}
	}
	groups := map[cluster.InstanceID]int{}
	counts := make([]caCount, len(s.Groups))
	candidates := make([]int, len(s.Groups))
	total, all := &out.Cluster.Health.Counts, 0
	for i := range s.Groups {
		for k := range s.Groups[i].Instances {
			in := &s.Groups[i].Instances[k]
			groups[in.ID] = i
			counts[i].unregistered(s, m, policy, &s.Groups[i], in.ID)
		}
		total.Unregistered += counts[i].Unregistered
		total.LongUnregistered += counts[i].LongUnregistered
	}
	id := cluster.Identify(s.Groups, s.Nodes)
	for _, n := range s.Nodes {
		total.add(n, s.Now, policy.MaxNodeStartupTime)
		i, ok := groups[id.Instance[n.Name]]
		if !ok {
			continue
		}
		counts[i].add(n, s.Now, policy.MaxNodeStartupTime)
		if _, unneeded := m.Unneeded[n.Name]; unneeded {
			candidates[i]++
			all++
		}
	}
	out.NodeGroup = make([]caGroup, 0, len(s.Groups))
	growing := "NoActivity"
	for i := range s.Groups {
		if s.Groups[i].Unmade() {
			continue
		}
		g := groupPage(s, m, &s.Groups[i], counts[i], candidates[i])
		if g.ScaleUp.Status == "InProgress" {
			growing = "InProgress"
		}
		name := "group " + g.Name
		g.Health.caTimes, g.ScaleUp.caTimes, g.ScaleDown.caTimes = times(name+" health", g.Health.Status), times(name+" up", g.ScaleUp.Status), times(name+" down", g.ScaleDown.Status)
		out.NodeGroup = append(out.NodeGroup, g)
	}
	out.Cluster.Health.Status, out.Message = clusterHealth(p.Held)
	out.Cluster.ScaleUp.Status, out.Cluster.ScaleDown = growing, candidatesPage(all)
	out.Cluster.Health.caTimes, out.Cluster.ScaleUp.caTimes = times("health", out.Cluster.Health.Status), times("up", growing)
	out.Cluster.ScaleDown.caTimes = times("down", out.Cluster.ScaleDown.Status)
	return out
}

// clusterHealth is what holds the whole cluster. That a round was decided coarsely is told where
// nothing else is.
func clusterHealth(held []decision.Held) (status, message string) {
	status = "Healthy"
	for i := range held {
		if h := &held[i]; h.Kind == "cluster" && (h.Rule != decision.RuleBudget || message == "") {
			message = h.Rule + ": " + h.Why
			if h.Rule == decision.RuleUnhealthy {
				status = "Unhealthy"
			}
		}
	}
	return status, message
}

// at is the same page, looked at again at a later time.
func (s caStatus) at(now time.Time) caStatus {
	now = now.UTC()
	s.Time = now.Format(caTimeFormat)
	s.Cluster.Health.Probe, s.Cluster.ScaleUp.Probe, s.Cluster.ScaleDown.Probe = now, now, now
	s.NodeGroup = slices.Clone(s.NodeGroup) // the page before may still be about to be written
	for i := range s.NodeGroup {
		g := &s.NodeGroup[i]
		g.Health.Probe, g.ScaleUp.Probe, g.ScaleDown.Probe = now, now, now
	}
	return s
}

// transition is since when a condition has had its status.
type transition struct {
	status string
	at     time.Time
}

// unregistered counts an instance that is no Node, long ones as such.
func (c *caCount) unregistered(s *cluster.Snapshot, m decision.Memory, policy decision.Policy, g *cluster.NodeGroup, id cluster.InstanceID) {
	since, ok := m.Unregistered[id]
	if !ok {
		return
	}
	patience := policy.MaxNodeProvisionTime
	if g.Options.MaxNodeProvisionTime != nil {
		patience = *g.Options.MaxNodeProvisionTime
	}
	if s.Now.Sub(since) < patience {
		c.Unregistered++
	} else {
		c.LongUnregistered++
	}
}

func candidatesPage(n int) caScaleDown {
	if n == 0 {
		return caScaleDown{Status: "NoCandidates"}
	}
	return caScaleDown{Status: "CandidatesPresent", Candidates: n}
}

// groupPage is the status of one group, without its times.
func groupPage(s *cluster.Snapshot, m decision.Memory, g *cluster.NodeGroup, c caCount, candidates int) caGroup {
	out := caGroup{Name: string(g.ID), ScaleDown: candidatesPage(candidates)}
	out.Health = caGroupHealth{Status: "Healthy", Counts: c, Target: g.Target, Min: g.Min, Max: g.Max}
	if g.Stale != "" || c.LongUnregistered > 0 || c.Registered.Unready.Total*2 > c.Registered.Total {
		out.Health.Status = "Unhealthy"
	}
	out.ScaleUp.Status = "NoActivity"
	if c.Registered.NotStarted > 0 || g.Target > c.Registered.Total+c.LongUnregistered {
		out.ScaleUp.Status = "InProgress"
	}
	for i := range m.Backoff {
		if b := &m.Backoff[i]; b.Group == g.ID && b.Active(s.Now) {
			out.ScaleUp.Status, out.ScaleUp.Backoff = "Backoff", &caBackoff{Code: string(b.Cause), Text: b.Text}
		}
	}
	return out
}

var printSeed = maphash.MakeSeed()

// Fingerprint is a number that is another one when a plan says something else; it
// costs no memory, where the plan's text would cost what the cluster has.
func Fingerprint(p decision.Plan) uint64 {
	var h maphash.Hash
	h.SetSeed(printSeed)
	for i := range p.Held {
		x := &p.Held[i]
		_, _ = h.WriteString(x.Kind) // a maphash takes everything
		_, _ = h.WriteString(x.Name)
		_, _ = h.WriteString(x.Rule)
		_, _ = h.WriteString(x.Why)
		_ = h.WriteByte(byte(x.Count))
		_ = h.WriteByte(byte(x.Count >> 8))
	}
	for _, a := range p.Actions {
		_, _ = h.WriteString(a.String())
	}
	return h.Sum64()
}

package growth

import (
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

var now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// oneGroup is a round with one group of machines of two cores, a GPU and four GiB, of which
// two are Nodes.
func oneGroup(change func(*cluster.Snapshot, *decision.Memory, *decision.Policy)) *round.State {
	machine := cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110, Extended: map[string]int64{"nvidia.com/gpu": 1}}
	g := cluster.NodeGroup{ID: "g", Max: 9, Target: 2, ReadAt: now, Template: cluster.Template{Capacity: machine, Allocatable: machine}}
	s := cluster.Snapshot{Now: now}
	for _, id := range []string{"a", "b"} {
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID("x:///" + id), Phase: cluster.PhaseRunning, Member: true, Created: now.Add(-time.Hour)})
		s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(id), ProviderID: "x:///" + id, Created: now.Add(-time.Hour), Ready: cluster.StatusTrue, Capacity: machine, Allocatable: machine})
	}
	s.Groups = []cluster.NodeGroup{g}
	m, p := decision.Memory{}, decision.Policy{FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, BackoffReset: time.Hour}
	change(&s, &m, &p)
	w := round.New(new(round.Cache), &s, &m, &p)
	w.Remember()
	w.Index()
	w.Account()
	w.Health()
	Judge(w)
	return w
}

// TestOf: each limit and each hold answers with its count, its rule and its words, and
// Reasons begins with the same.
func TestOf(t *testing.T) {
	type in = func(*cluster.Snapshot, *decision.Memory, *decision.Policy)
	group := func(change func(*cluster.NodeGroup)) in {
		return func(s *cluster.Snapshot, _ *decision.Memory, _ *decision.Policy) { change(&s.Groups[0]) }
	}
	policy := func(change func(*decision.Policy)) in {
		return func(_ *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { change(p) }
	}
	backoff := func(g cluster.GroupID) in {
		return func(_ *cluster.Snapshot, m *decision.Memory, _ *decision.Policy) {
			m.Backoff = []decision.Backoff{{Group: g, Cause: cluster.CauseQuota, Step: time.Minute, Last: now, Until: now.Add(time.Minute), Text: "refused"}}
		}
	}
	for name, c := range map[string]struct {
		change in
		want   decision.GrowthLimit
	}{
		"maximum":          {group(func(*cluster.NodeGroup) {}), decision.GrowthLimit{Count: 7, Rule: "U7", Why: "at its maximum of 9"}},
		"at its maximum":   {group(func(g *cluster.NodeGroup) { g.Max = 2 }), decision.GrowthLimit{Rule: "U7", Why: "at its maximum of 2"}},
		"upcoming machine": {group(func(g *cluster.NodeGroup) { g.Target = 5 }), decision.GrowthLimit{Count: 4, Rule: "U7", Why: "at its maximum of 9"}},
		"nodes":            {policy(func(p *decision.Policy) { p.MaxNodesTotal = 5 }), decision.GrowthLimit{Count: 3, Rule: "U8", Why: "the cluster's limit of 5 nodes is reached"}},
		"cores":            {policy(func(p *decision.Policy) { p.MaxCoresTotal = 7 }), decision.GrowthLimit{Count: 1, Rule: "U8", Why: "the cluster's limit of 7 cores is reached"}},
		"memory":           {policy(func(p *decision.Policy) { p.MaxMemoryTotal = 7 }), decision.GrowthLimit{Rule: "U8", Why: "the cluster's limit of 7 GiB is reached"}},
		"GPUs": {policy(func(p *decision.Policy) { p.GPUTotal = decision.Bounds{{Resource: "nvidia.com/gpu", Max: 4}} }),
			decision.GrowthLimit{Count: 2, Rule: "U8", Why: "the cluster's limit of 4 nvidia.com/gpu is reached"}},
		"exceeded": {func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { // a group below its minimum is judged by its limits
			s.Groups[0].Max, s.Groups[0].Min, s.Groups[0].Target, p.MaxCoresTotal = 2, 2, 1, 3
		}, decision.GrowthLimit{Rule: "U8", Why: "the cluster's limit of 3 cores is reached"}},
		"reached": {func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) { // a total is named where it is exceeded, and else the maximum
			s.Groups[0].Max, s.Groups[0].Min, s.Groups[0].Target, p.MaxCoresTotal = 2, 2, 1, 4
		}, decision.GrowthLimit{Rule: "U7", Why: "at its maximum of 2"}},
		"negative":       {group(func(g *cluster.NodeGroup) { g.Min = -1 }), decision.GrowthLimit{Rule: "U12", Why: "invalid bounds: minimum -1, maximum 9; set a maximum that is not below the minimum"}},
		"bounds":         {group(func(g *cluster.NodeGroup) { g.Min, g.Max = 3, 1 }), decision.GrowthLimit{Rule: "U12", Why: "invalid bounds: minimum 3, maximum 1; set a maximum that is not below the minimum"}},
		"operator":       {group(func(g *cluster.NodeGroup) { g.Pause = &cluster.Pause{} }), decision.GrowthLimit{Rule: "U21", Why: "paused"}},
		"stale":          {group(func(g *cluster.NodeGroup) { g.Stale = "throttled" }), decision.GrowthLimit{Rule: "U13", Why: "the group's facts are old: throttled"}},
		"cloud paused":   {group(func(g *cluster.NodeGroup) { g.Paused = "suspended" }), decision.GrowthLimit{Rule: "U10", Why: "suspended"}},
		"cloud busy":     {group(func(g *cluster.NodeGroup) { g.Busy = "updating" }), decision.GrowthLimit{Rule: "U27", Why: "updating"}},
		"template stale": {group(func(g *cluster.NodeGroup) { g.TemplateStale = "throttled" }), decision.GrowthLimit{Rule: "U11", Why: "what its next machine would be is old: throttled"}},
		"template":       {group(func(g *cluster.NodeGroup) { g.Template.Unknown = "no flavor" }), decision.GrowthLimit{Rule: "U11", Why: "template unknown: no flavor"}},
		"backoff":        {backoff("g"), decision.GrowthLimit{Rule: "U9", Why: "backed off until 2026-01-05T08:01:00Z (quota): refused"}},
		"quota":          {backoff("other"), decision.GrowthLimit{Rule: "U19", Why: "shares the quota of group other, which is backed off until 2026-01-05T08:01:00Z: refused"}},
		"unhealthy": {func(s *cluster.Snapshot, _ *decision.Memory, p *decision.Policy) {
			p.OKTotalUnready, s.Nodes[0].Ready = 0, cluster.StatusFalse
			for _, name := range []cluster.NodeName{"c", "d"} { // the cluster as a whole is well
				s.Nodes = append(s.Nodes, &cluster.Node{Name: name, Ready: cluster.StatusTrue, Created: now.Add(-time.Hour)})
			}
		}, decision.GrowthLimit{Rule: "U22", Why: "1 of 2 of its nodes are not Ready"}},
		"reads lag": {func(s *cluster.Snapshot, _ *decision.Memory, _ *decision.Policy) {
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "young", ProviderID: "x:///young", Created: now.Add(-time.Second)})
		}, decision.GrowthLimit{Rule: "U18", Why: "node young has registered and no group lists its instance yet: growth waits for the cloud's reads to catch up"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := oneGroup(c.change)
			g := &w.Groups[0]
			if got := Of(w, g, 100); got != c.want {
				t.Errorf("Of says %+v, want %+v", got, c.want)
			}
			reasons := Reasons(w, g)
			if c.want.Count > 0 {
				if len(reasons) > 0 {
					t.Errorf("Reasons has %+v, though the group may grow", reasons)
				}
				if got := Of(w, g, 1); got != (decision.GrowthLimit{Count: 1}) {
					t.Errorf("one machine is allowed, and Of names %+v", got)
				}
				return
			}
			if len(reasons) == 0 || reasons[0] != c.want || slices.Contains(reasons[1:], c.want) {
				t.Errorf("Reasons has %+v, want %+v first, and once", reasons, c.want)
			}
		})
	}
}

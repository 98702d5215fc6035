package scaledown

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

var reapedAt = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// dead is a round with one group of three instances, two of which never became Nodes and are to go.
func dead(change func(s *cluster.Snapshot, p *decision.Policy)) *round.State {
	g := cluster.NodeGroup{ID: "g", Max: 9, Target: 3, ReadAt: reapedAt}
	for _, id := range []cluster.InstanceID{"x:///a", "x:///c", "x:///b"} {
		g.Instances = append(g.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: reapedAt.Add(-time.Hour)})
	}
	s := cluster.Snapshot{Now: reapedAt, Groups: []cluster.NodeGroup{g}, Nodes: []*cluster.Node{
		{Name: "a", ProviderID: "x:///a", Created: reapedAt.Add(-time.Hour), Ready: cluster.StatusTrue},
	}}
	p := decision.Policy{FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, MaxEmptyAtOnce: 10, MaxNodeProvisionTime: 15 * time.Minute}
	change(&s, &p)
	seen := make(map[cluster.InstanceID]time.Time)
	for _, in := range s.Groups[0].Instances {
		seen[in.ID] = in.Created
	}
	w := round.New(new(round.Cache), &s, &decision.Memory{Unregistered: seen}, &p)
	w.Index()
	w.Account()
	w.Health()
	return w
}

// TestInstances: what keeps an instance that never became a Node, and how many go at once.
func TestInstances(t *testing.T) {
	type in = func(s *cluster.Snapshot, p *decision.Policy)
	node := func(n cluster.Node) in {
		return func(s *cluster.Snapshot, _ *decision.Policy) { s.Nodes = append(s.Nodes, &n) }
	}
	young := reapedAt.Add(-time.Minute)
	for name, c := range map[string]struct {
		change in
		gone   string // the instances that are told to go
		held   string // the rules of the others
	}{
		"both go":                   {func(*cluster.Snapshot, *decision.Policy) {}, "x:///b x:///c", ""},
		"one at once":               {func(_ *cluster.Snapshot, p *decision.Policy) { p.MaxEmptyAtOnce = 1 }, "x:///b", decision.RuleBatch},
		"down to the minimum":       {func(s *cluster.Snapshot, _ *decision.Policy) { s.Groups[0].Min = 2 }, "x:///b", decision.RuleInstanceMin},
		"at the minimum":            {func(s *cluster.Snapshot, _ *decision.Policy) { s.Groups[0].Min = 3 }, "", decision.RuleInstanceMin + " " + decision.RuleInstanceMin},
		"old facts of the cluster":  {func(s *cluster.Snapshot, _ *decision.Policy) { s.Stale = "no watch" }, "", decision.RuleStale + " " + decision.RuleStale},
		"old facts of the group":    {func(s *cluster.Snapshot, _ *decision.Policy) { s.Groups[0].ReadAt = reapedAt.Add(-time.Hour) }, "", decision.RuleGroupStale + " " + decision.RuleGroupStale},
		"a paused group":            {func(s *cluster.Snapshot, _ *decision.Policy) { s.Groups[0].Pause = &cluster.Pause{} }, "", decision.RuleOperator + " " + decision.RuleOperator},
		"a cloud that keeps":        {func(s *cluster.Snapshot, _ *decision.Policy) { s.Groups[0].Keeps = "scale-in is off" }, "", decision.RuleKeeps + " " + decision.RuleKeeps},
		"a cloud that is busy":      {func(s *cluster.Snapshot, _ *decision.Policy) { s.Groups[0].Busy = "updating" }, "", decision.RuleCloudBusy + " " + decision.RuleCloudBusy},
		"a Node without an ID":      {node(cluster.Node{Name: "nameless", Created: young}), "", decision.RuleClaimed + " " + decision.RuleClaimed},
		"a Node older than both":    {node(cluster.Node{Name: "old", Created: reapedAt.Add(-2 * time.Hour)}), "x:///b x:///c", ""},
		"a leader without an ID":    {node(cluster.Node{Name: "leader", Created: young, ControlPlane: true}), "x:///b x:///c", ""},
		"a Node of another machine": {node(cluster.Node{Name: "other", Created: young, ProviderID: "x:///other"}), "x:///b x:///c", ""},
		"a failed one is nobody's": {func(s *cluster.Snapshot, p *decision.Policy) {
			node(cluster.Node{Name: "nameless", Created: young})(s, p)
			s.Groups[0].Instances[2].Phase = cluster.PhaseFailed
		}, "x:///b", decision.RuleClaimed},
		"an address of another Node": {func(s *cluster.Snapshot, _ *decision.Policy) {
			s.Groups[0].Instances[1].Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.3")}
			s.Nodes[0].Addresses = []string{"10.0.0.3"}
		}, "x:///b", decision.RuleClaimed},
	} {
		w := dead(c.change)
		New(w, new(Cache)).ReapInstances()
		gone, held := "", ""
		for _, a := range w.Plan.Actions {
			gone += fmt.Sprint(" ", a.(decision.Terminate).Instance)
		}
		for _, h := range w.Plan.Held {
			if h.Kind == "instance" {
				held += " " + h.Rule
			}
		}
		if gone != c.gone && gone != " "+c.gone || held != c.held && held != " "+c.held {
			t.Errorf("%s: gone%s, held%s; want %q and %q: %v", name, gone, held, c.gone, c.held, w.Plan.Held)
		}
	}
}

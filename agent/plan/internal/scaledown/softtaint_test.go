package scaledown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

var taintedAt = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// TestUpdate: which of the nodes a, b and c of a group get the taint (+) or lose it (-), and when the agent looks again.
func TestUpdate(t *testing.T) {
	type in = func(s *cluster.Snapshot, p *decision.Policy)
	tainted := func(s *cluster.Snapshot, names ...int) {
		for _, i := range names {
			s.Nodes[i].Taints = append(s.Nodes[i].Taints, cluster.Taint{Key: cluster.TaintDeletionCandidate, Effect: "PreferNoSchedule"})
		}
	}
	long := taintedAt.Add(-time.Hour)
	for name, c := range map[string]struct {
		change   in
		unneeded map[cluster.NodeName]time.Time
		want     string
		wake     time.Duration
	}{
		"all are needed":         {func(*cluster.Snapshot, *decision.Policy) {}, nil, "", 0},
		"one is not":             {func(*cluster.Snapshot, *decision.Policy) {}, map[cluster.NodeName]time.Time{"b": long}, " +b", 0},
		"just long enough":       {func(*cluster.Snapshot, *decision.Policy) {}, map[cluster.NodeName]time.Time{"b": taintedAt.Add(-softTaintAfter)}, " +b", 0},
		"not long enough":        {func(*cluster.Snapshot, *decision.Policy) {}, map[cluster.NodeName]time.Time{"a": taintedAt.Add(-time.Second), "b": long}, " +b", softTaintAfter - time.Second},
		"it has the taint":       {func(s *cluster.Snapshot, _ *decision.Policy) { tainted(s, 1) }, map[cluster.NodeName]time.Time{"b": long}, "", 0},
		"it is needed again":     {func(s *cluster.Snapshot, _ *decision.Policy) { tainted(s, 1) }, nil, " -b", 0},
		"needed ones are first":  {func(s *cluster.Snapshot, _ *decision.Policy) { tainted(s, 2) }, map[cluster.NodeName]time.Time{"a": long}, " -c +a", 0},
		"two at once":            {func(*cluster.Snapshot, *decision.Policy) {}, map[cluster.NodeName]time.Time{"a": long, "b": long, "c": long}, " +a +b", time.Second},
		"two that lose it":       {func(s *cluster.Snapshot, _ *decision.Policy) { tainted(s, 0, 1, 2) }, nil, " -a -b", time.Second},
		"one loses, one gets":    {func(s *cluster.Snapshot, _ *decision.Policy) { tainted(s, 2) }, map[cluster.NodeName]time.Time{"a": long, "b": long}, " -c +a", time.Second},
		"none at once":           {func(_ *cluster.Snapshot, p *decision.Policy) { p.MaxBulkSoftTaintCount = 0 }, map[cluster.NodeName]time.Time{"a": long}, "", 0},
		"fewer than none":        {func(_ *cluster.Snapshot, p *decision.Policy) { p.MaxBulkSoftTaintCount = -1 }, map[cluster.NodeName]time.Time{"a": long}, "", 0},
		"old facts":              {func(s *cluster.Snapshot, _ *decision.Policy) { s.Stale = "no watch" }, map[cluster.NodeName]time.Time{"a": long}, "", 0},
		"a node of no group":     {func(s *cluster.Snapshot, _ *decision.Policy) { s.Nodes[0].ProviderID = "x:///other" }, map[cluster.NodeName]time.Time{"a": long}, "", 0},
		"a node that is deleted": {func(s *cluster.Snapshot, _ *decision.Policy) { s.Nodes[0].Deleting = true }, map[cluster.NodeName]time.Time{"a": long}, "", 0},
		"a node that is to go": {func(s *cluster.Snapshot, _ *decision.Policy) {
			s.Nodes[0].Taints = []cluster.Taint{{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}}
		}, map[cluster.NodeName]time.Time{"a": long}, "", 0},
		"a node that is interrupted": {func(s *cluster.Snapshot, _ *decision.Policy) {
			s.Groups[0].Instances[0].Interruption, s.Groups[0].Instances[0].Phase = &cluster.Interruption{}, cluster.PhaseDeleting
		}, map[cluster.NodeName]time.Time{"a": long}, "", 0},
	} {
		g := cluster.NodeGroup{ID: "g", Max: 9, Target: 3, ReadAt: taintedAt}
		s, p := cluster.Snapshot{Now: taintedAt}, decision.Policy{MaxBulkSoftTaintCount: 2, FreshFor: time.Minute}
		for _, id := range []string{"a", "b", "c"} {
			g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID("x:///" + id), Phase: cluster.PhaseRunning, Member: true, Created: long})
			s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(id), ProviderID: "x:///" + id, Created: long, Ready: cluster.StatusTrue})
		}
		s.Groups = []cluster.NodeGroup{g}
		c.change(&s, &p)
		w := round.New(new(round.Cache), &s, &decision.Memory{}, &p)
		w.Index()
		w.Next.Unneeded, w.Plan.Wake = c.unneeded, time.Time{}
		UpdateSoftTaints(w)
		got, wake := "", time.Duration(0)
		for _, a := range w.Plan.Actions {
			taint, sign, why := a.(decision.SoftTaint), " +", "not needed since "
			if taint.Off {
				sign, why = " -", "it is needed again"
			}
			if !strings.HasPrefix(taint.Why, why) {
				t.Errorf("%s: %s%s because %q", name, sign, taint.Node, taint.Why)
			}
			got += fmt.Sprint(sign, taint.Node)
		}
		if !w.Plan.Wake.IsZero() {
			wake = w.Plan.Wake.Sub(taintedAt)
		}
		if got != c.want || wake != c.wake {
			t.Errorf("%s: %q and again in %s, want %q and %s", name, got, wake, c.want, c.wake)
		}
	}
}

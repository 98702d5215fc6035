package waiting

import (
	"maps"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func TestFor(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	forever := time.Time{}
	in := func(id string, phase cluster.Phase, age time.Duration) cluster.Instance {
		return cluster.Instance{ID: cluster.InstanceID(id), Phase: phase, Member: true, Created: now.Add(-age)}
	}
	detached := in("detached", cluster.PhaseRunning, time.Hour)
	detached.Member = false
	node := func(id string, age time.Duration) *cluster.Node {
		return &cluster.Node{Name: cluster.NodeName(id), ProviderID: id, Ready: cluster.StatusTrue, Created: now.Add(-age)}
	}
	up := in("up", cluster.PhaseRunning, time.Hour)
	for name, c := range map[string]struct {
		group   cluster.NodeGroup
		actions []decision.Action
		nodes   []*cluster.Node
		until   *time.Time // nil: it does not wait
		all     time.Time
	}{
		"at rest":            {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up}}},
		"a machine missing":  {group: cluster.NodeGroup{Target: 2, Instances: []cluster.Instance{up}}, until: &forever},
		"paused":             {group: cluster.NodeGroup{Target: 2, Paused: "Launch is suspended", Instances: []cluster.Instance{up}}},
		"starting":           {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{in("a", cluster.PhasePending, 0)}}, until: &forever},
		"on its way out":     {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up, in("a", cluster.PhaseDeleting, time.Hour)}}, until: &forever},
		"in Standby":         {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up, in("a", cluster.PhaseStopped, time.Hour)}}},
		"detached":           {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up, detached}}},
		"joining":            {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{in("a", cluster.PhaseRunning, time.Minute)}}, until: new(now.Add(14 * time.Minute))},
		"not Ready for long": {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{in("a", cluster.PhaseRunning, time.Hour)}}},
		"an operation":       {group: cluster.NodeGroup{Target: 1, Busy: "UPDATE_IN_PROGRESS", Instances: []cluster.Instance{up}}, until: &forever},
		"grown":              {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up}}, actions: []decision.Action{decision.Grow{Group: "g"}}, until: new(now.Add(time.Minute))},
		"a machine ended":    {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up}}, actions: []decision.Action{decision.Terminate{Group: "g"}}, until: new(now.Add(time.Minute))},
		"marks and evictions": {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up}},
			actions: []decision.Action{decision.SoftTaint{}, decision.Cordon{}, decision.Uncordon{}, decision.Evict{}}},
		"a young Node that no group lists": {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up}}, nodes: []*cluster.Node{node("new", 20*time.Second)}, all: now.Add(40 * time.Second)},
		"an old one":                       {group: cluster.NodeGroup{Target: 1, Instances: []cluster.Instance{up}}, nodes: []*cluster.Node{node("other", time.Hour)}},
	} {
		c.group.ID = "g"
		s := cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{c.group}, Nodes: append(c.nodes, node("up", time.Hour))}
		got := For(&s, decision.Plan{Actions: c.actions})
		want := map[cluster.GroupID]time.Time{}
		if c.until != nil {
			want["g"] = *c.until
		}
		if !maps.Equal(got.Groups, want) || !got.All.Equal(c.all) {
			t.Errorf("%s: %v, all until %v; want %v, %v", name, got.Groups, got.All, want, c.all)
		}
	}
}

package disruption_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// fleet is a group of machines with one image, which would start another one today.
func fleet(n int) (cluster.Snapshot, decision.Policy) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	machine := cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}
	g := cluster.NodeGroup{ID: "workers", Max: 2 * n, Target: n, ReadAt: now, Template: cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine, Source: cluster.Spec{"image": "new"}}}
	s := cluster.Snapshot{Now: now}
	for i := range n {
		id := cluster.InstanceID(fmt.Sprintf("i-%03d", i))
		g.Instances = append(g.Instances, cluster.Instance{ID: id, Member: true, Phase: cluster.PhaseRunning, Created: now.Add(-24 * time.Hour), Source: cluster.Spec{"image": "old"}})
		s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(fmt.Sprintf("w-%03d", i)), ProviderID: string(id), Ready: cluster.StatusTrue, Created: now.Add(-24 * time.Hour), Capacity: machine, Allocatable: machine})
	}
	s.Groups = []cluster.NodeGroup{g}
	return s, decision.Policy{FreshFor: time.Minute, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute, RepairMaxSick: 20}
}

// begun is a round as far as package disruption needs it.
func begun(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) *disruption.Round {
	w := round.New(new(round.Cache), s, m, p)
	w.Remember()
	w.Index()
	w.Account()
	w.Health()
	growth.Judge(w)
	d := disruption.New(w)
	d.Judge()
	return d
}

// A group may replace its drifted nodes at night only.
func Example() {
	s, p := fleet(2)
	p.Drift = true
	s.Groups[0].Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 1, Reasons: []string{cluster.ReasonDrifted}, Cron: "0 22 * * *", For: 6 * time.Hour, Zone: "Europe/Berlin"}}
	d := begun(&s, &decision.Memory{}, &p)
	why := d.Reason(0)
	fmt.Println(why.Rule, why.Why)
	fmt.Println(d.Hold(0, why))
	// Output:
	// D25 it is drifted: image: old, wanted new
	// D29 it is drifted: image: old, wanted new; it waits: no disruption budget of group workers for drifted nodes holds now; the next one does at 2026-01-05T21:00:00Z
}

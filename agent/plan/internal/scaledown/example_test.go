package scaledown_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaledown"
)

// pending is a cluster without nodes, a group of machines of two cores, and three pods of
// one core that the scheduler could not place.
func pending() (cluster.Snapshot, decision.Policy) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	machine := cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}
	s := cluster.Snapshot{Now: now,
		Groups:  []cluster.NodeGroup{{ID: "workers", Max: 10, ReadAt: now, Template: cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine, Labels: map[string]string{"topology.kubernetes.io/zone": "a"}}}},
		Classes: []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{MilliCPU: 1000, Memory: 1 << 30, Pods: 1}}},
	}
	for i := range 3 {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprint("default/web-", i)), Created: cluster.At(now), Unschedulable: cluster.At(now)})
	}
	return s, decision.Policy{FreshFor: time.Minute, MaxNodeProvisionTime: 15 * time.Minute}
}

// A node that nothing needs is cordoned once its time is over.
func Example() {
	s, p := pending()
	s.Pods = nil
	g := &s.Groups[0]
	g.Target, g.Instances = 1, []cluster.Instance{{ID: "i-1", Member: true, Phase: cluster.PhaseRunning, Created: s.Now.Add(-time.Hour)}}
	s.Nodes = []*cluster.Node{{Name: "w-1", ProviderID: "i-1", Ready: cluster.StatusTrue, Created: s.Now.Add(-time.Hour), Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable}}
	p.ScaleDown, p.UtilizationThreshold, p.UnneededFor, p.MaxEmptyAtOnce = true, 0.5, 10*time.Minute, 1
	m := decision.Memory{Unneeded: map[cluster.NodeName]time.Time{"w-1": s.Now.Add(-11 * time.Minute)}}
	r := round.New(new(round.Cache), &s, &m, &p)
	r.Index()
	r.Account()
	scaledown.New(r, new(scaledown.Cache)).Decide()
	fmt.Print(r.Plan)
	// Output: cordon w-1 [D1] utilisation 0%, 0 pods to move
}

package topology_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// pending is a cluster without nodes, a group of machines of two cores, and three pods of
// one core that the scheduler could not place.
func pending() (cluster.Snapshot, decision.Policy) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	machine := cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}
	s := cluster.Snapshot{Now: now,
		Groups: []cluster.NodeGroup{{ID: "workers", Max: 10, ReadAt: now, Template: cluster.Template{Spec: "m", Capacity: machine, Allocatable: machine, Labels: map[string]string{"topology.kubernetes.io/zone": "a"}}}},
		Classes: []cluster.PodClass{{Namespace: "default", Labels: map[string]string{"app": "web"}, Requests: cluster.Resources{MilliCPU: 500, Memory: 1 << 30, Pods: 1},
			PodAntiAffinity: []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"default"}, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"web"}}}}}}}},
	}
	for i := range 3 {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprint("default/web-", i)), Created: cluster.At(now), Unschedulable: cluster.At(now)})
	}
	return s, decision.Policy{FreshFor: time.Minute, MaxNodeProvisionTime: 15 * time.Minute}
}

// Pods that keep away from each other on hosts take a capacity dimension of their own.
func Example() {
	s, p := pending()
	r := round.New(new(round.Cache), &s, &decision.Memory{}, &p)
	r.Index()
	r.Account()
	growth.Judge(r)
	r.Gather()
	t := topology.Compile(r)
	fmt.Println(t.Constrained[0], len(t.Size(0))-r.Dimensions.Len(), "more dimension")
	// Output: true 1 more dimension
}

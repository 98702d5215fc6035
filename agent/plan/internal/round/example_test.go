package round_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
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

// The pods that want room become demands, one a class.
func Example() {
	s, p := pending()
	r := round.New(new(round.Cache), &s, &decision.Memory{}, &p)
	r.Index()
	r.Account()
	r.Gather()
	for i := range r.Demands {
		fmt.Println(r.Demands[i].Count(), "pods of class", r.Demands[i].Class)
	}
	// Output: 3 pods of class 0
}

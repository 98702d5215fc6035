package growth_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// One group may have five machines, and the whole cluster eight cores.
func Example() {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	machine := cluster.Resources{MilliCPU: 2000, Memory: 4 << 30, Pods: 110}
	s := cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{
		{ID: "paused", Max: 5, ReadAt: now, Pause: &cluster.Pause{Why: "maintenance"}, Template: cluster.Template{Capacity: machine, Allocatable: machine}},
		{ID: "workers", Max: 5, ReadAt: now, Template: cluster.Template{Capacity: machine, Allocatable: machine}},
	}}
	w := round.New(new(round.Cache), &s, &decision.Memory{}, &decision.Policy{MaxCoresTotal: 8, FreshFor: time.Minute})
	w.Index()
	w.Account()
	growth.Judge(w)
	for i := range w.Groups {
		fmt.Println(w.Groups[i].ID, growth.Of(w, &w.Groups[i], 10))
	}
	// Output:
	// paused {0 U21 paused: maintenance}
	// workers {4 U8 the cluster's limit of 8 cores is reached}
}

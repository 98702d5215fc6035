package burst_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/burst"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A machine was ordered for twelve pods, and a second later come as many that need another.
func Example() {
	now := time.Date(2026, 1, 5, 8, 0, 1, 0, time.UTC)
	first := decision.Reservation{Group: "workers"}
	s := cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{{ID: "workers", Max: 10, Target: 1, ReadAt: now}},
		Classes: []cluster.PodClass{{Namespace: "default", Labels: map[string]string{"app": "early"}}, {Namespace: "default", Labels: map[string]string{"app": "late"}}}}
	for i := range 12 {
		early, late := cluster.PodKey(fmt.Sprint("default/early-", i)), cluster.PodKey(fmt.Sprint("default/late-", i))
		first.Pods = append(first.Pods, early)
		s.Pods = append(s.Pods, cluster.Pod{Key: early, Created: cluster.At(now.Add(-time.Second)), Unschedulable: cluster.At(now)},
			cluster.Pod{Key: late, Class: 1, Created: cluster.At(now), Unschedulable: cluster.At(now)})
	}
	m := decision.Memory{Reservations: decision.Reservations{first}, BurstOrdered: now.Add(-time.Second)}
	w := round.New(new(round.Cache), &s, &m, &decision.Policy{BurstHold: 15 * time.Second})
	w.Remember()
	w.Index()
	w.Account()
	w.Gather()
	burst.Hold(w)
	for _, k := range w.Demands {
		fmt.Printf("%s buys: %v %s.\n", s.Classes[k.Class].Labels["app"], k.Buys, k.DeferralRule)
	}
	fmt.Println("again in", w.Plan.Wake.Sub(now))
	// Unordered output:
	// early buys: true .
	// late buys: false U28.
	// again in 3s
}

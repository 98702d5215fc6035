package reaper_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// An instance of the group is terminated. Its Node goes when two reads of the cloud and
// two answers by ID, a minute apart, have said so, and when its kubelet's Lease has stood
// still meanwhile.
func Example() {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	policy := reaper.Policy{SightInterval: time.Minute, Grace: 10 * time.Minute, MaxShare: 0.2, Silence: 2 * time.Minute}
	var memory reaper.Memory
	group := cluster.NodeGroup{ID: "workers", Target: 2, Instances: []cluster.Instance{
		{ID: "aws:///a/i-1", Phase: cluster.PhaseRunning, Member: true}, {ID: "aws:///a/i-2", Phase: cluster.PhaseRunning, Member: true}}}
	nodes := []cluster.Node{
		{Name: "n1", UID: "u1", ProviderID: "aws:///a/i-1", Ready: cluster.StatusTrue, Created: now.Add(-time.Hour), ReadySince: now.Add(-time.Hour)},
		{Name: "n2", UID: "u2", ProviderID: "aws:///a/i-2", Ready: cluster.StatusTrue, Created: now.Add(-time.Hour), ReadySince: now.Add(-time.Hour)}}
	round := func(step string) {
		now = now.Add(61 * time.Second)
		group.ReadAt = now
		in := reaper.Input{Now: now, Nodes: nodes, Groups: []cluster.NodeGroup{group}, AskedAt: now,
			Answers: map[cluster.InstanceID]cluster.Testimony{"aws:///a/i-1": {Existence: cluster.InstanceTerminated}, "aws:///a/i-2": {Existence: cluster.InstanceExists}},
			Leases:  map[cluster.NodeName]reaper.Lease{"n1": {Renewed: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}}}
		var plan reaper.Plan
		plan, memory = reaper.Decide(in, memory, policy)
		for _, h := range plan.Held {
			fmt.Printf("%s: %s is held by %s\n", step, h.Node, h.Rule)
		}
		for _, d := range plan.Delete {
			fmt.Printf("%s: %s is deleted by %s\n", step, d.Node, d.Rule)
		}
	}
	round("both live")
	nodes[0].Ready, nodes[0].ReadySince = cluster.StatusUnknown, now
	group.Instances[0].Phase, group.Instances[0].Member, group.Target = cluster.PhaseGone, false, 1
	round("the first read")
	round("the second read")
	// Output:
	// the first read: n1 is held by G2
	// the second read: n1 is deleted by G3
}

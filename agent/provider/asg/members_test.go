package asg

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// TestBatchesOfGroupsAtRest: groups of drawn sizes are read every 30 seconds. At each read a batch
// of them is described at most; every group is described again in time,
// one without machines too; a group in which something changes is described at once; a fleet of
// one batch is described once in that time.
func TestBatchesOfGroupsAtRest(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	const age, every, largest = 15 * time.Minute, 30 * time.Second, 300
	for _, count := range []int{1, 3, 8, 20} {
		c := &members{}
		now := time.Unix(1_700_000_000, 0)
		sizes := make([]int, count)
		machines := 0
		for g := range sizes {
			sizes[g] = r.IntN(largest)
			machines += sizes[g]
		}
		batches := time.Duration(machines+batchSize-1) / batchSize // each can wait for the next read
		last := make([]time.Time, count)
		reads := 0
		for round := range 240 { // two hours
			var all []*reading
			for g, size := range sizes {
				x := &reading{group: cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprint(g)), ReadAt: now}, machines: map[string]machine{}}
				for m := range size {
					id := fmt.Sprintf("i-%d-%d", g, m)
					x.source.Instances = append(x.source.Instances, asgtypes.Instance{InstanceId: aws.String(id), LifecycleState: asgtypes.LifecycleStateInService})
					x.machines[id] = machine{state: ec2types.InstanceStateNameRunning}
				}
				all = append(all, x)
			}
			changed := -1
			if round%50 == 49 {
				changed = r.IntN(count)
				all[changed].source.DesiredCapacity = aws.Int32(int32(round))
			}
			rest, others := c.atRest(all, now, age)
			if len(rest)+len(others) != count {
				t.Fatalf("%d and %d of %d groups", len(rest), len(others), count)
			}
			described := 0
			for _, x := range others {
				g := 0
				_, _ = fmt.Sscan(string(x.group.ID), &g)
				described += sizes[g]
				last[g] = now
				if g == changed {
					changed = -1
				}
				c.keep(x, now, true)
			}
			if changed >= 0 {
				t.Fatalf("round %d: group %d changed and is not described", round, changed)
			}
			if round > 0 && described > batchSize+2*largest { // a batch ends with the group that fills it, and one changed
				t.Errorf("round %d: %d machines of %d are described at once", round, described, machines)
			}
			if round > 0 && described > 0 {
				reads++
			}
			for g := range last {
				if late := now.Sub(last[g]); late > age+(batches+1)*every {
					t.Fatalf("round %d: group %d of %d with %d of %d machines was described %s ago", round, g, count, sizes[g], machines, late)
				}
			}
			now = now.Add(every)
		}
		if most := 8*(machines/batchSize+1) + 10; reads > most {
			t.Errorf("%d groups of %d machines: described in %d reads of two hours, at most %d are right", count, machines, reads, most)
		}
	}
}

package asg

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// How long a narrowed read (provider.WithOnly) uses again what EC2 told of a group's
// machines, while Auto Scaling tells the same of the group: while machines start or stop,
// and otherwise. An approval of a certificate rests on facts of at most 30 seconds (R15).
const (
	movingLife  = 6 * time.Second
	settledLife = 20 * time.Second
)

// A running instance keeps its names and addresses but for what an operator changes by hand.
// They are repeated for namesTimes as long as the caller lets what only an operator changes
// be repeated, and described again for batches of batchSize machines, so that no minute has
// to parse the descriptions of a whole large fleet.
const (
	namesTimes = 3
	batchSize  = 1000 // EC2's largest page
)

// members keeps what EC2 last told of the machines of each group.
type members struct {
	mu      sync.Mutex
	byGroup map[cluster.GroupID]membership
	batchAt time.Time // when the last batch of groups at rest was due
}

// membership is one answer of EC2; machines is never changed.
type membership struct {
	print     uint64 // of what Auto Scaling told then
	at        time.Time
	described time.Time // when the machines were read whole, with names and addresses
	settled   bool
	machines  map[string]machine
}

// printOf is a fingerprint of what Auto Scaling tells of a group's size and members.
func printOf(g asgtypes.AutoScalingGroup) uint64 {
	lines := make([]string, 0, len(g.Instances))
	for _, m := range g.Instances {
		lines = append(lines, aws.ToString(m.InstanceId)+" "+string(m.LifecycleState)+" "+aws.ToString(m.HealthStatus))
	}
	slices.Sort(lines)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\n%s", aws.ToInt32(g.DesiredCapacity), strings.Join(lines, "\n"))
	return h.Sum64()
}

// recall fills in the machines of a group from the last answer, if that still holds.
func (c *members) recall(r *reading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byGroup[r.group.ID]
	life := movingLife
	if known.settled {
		life = settledLife
	}
	if !ok || r.group.ReadAt.Sub(known.at) >= life || known.print != printOf(r.source) {
		return false
	}
	r.machines = known.machines
	if known.at.Before(r.group.ReadAt) {
		r.group.ReadAt = known.at
	}
	r.group.NamesReadAt = known.described
	return true
}

// keep stores the machines that were read for a group; whole false: not all of them were.
func (c *members) keep(r *reading, at time.Time, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !whole {
		delete(c.byGroup, r.group.ID)
		return
	}
	if c.byGroup == nil {
		c.byGroup = map[cluster.GroupID]membership{}
	}
	settled := true
	for _, m := range r.source.Instances {
		known, listed := r.machines[aws.ToString(m.InstanceId)]
		settled = settled && listed && known.settled()
	}
	c.byGroup[r.group.ID] = membership{print: printOf(r.source), at: at, described: r.group.ReadAt, settled: settled, machines: r.machines}
}

// atRest divides groups into those whose machines need not be described again and the others.
// Of the first Auto Scaling tells the same as when they were described, and no change of a
// machine was under way. Those described longest ago are due in equal batches, as few as hold
// all machines: all groups within age (and the reads that each batch waits for), never later than
// twice that. It costs G log G beside the fingerprints.
func (c *members) atRest(readings []*reading, now time.Time, age time.Duration) (rest, others []*reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	machines := 0
	for _, r := range readings {
		known, ok := c.byGroup[r.group.ID]
		if ok && known.settled && r.group.ReadAt.Sub(known.described) < 2*age && known.print == printOf(r.source) {
			rest = append(rest, r)
			machines += len(known.machines)
		} else {
			others = append(others, r)
			machines += len(r.source.Instances) // so that one group that changes does not alter how many batches there are
		}
	}
	if c.batchAt.IsZero() {
		c.batchAt = now
	}
	batches := max(1, (machines+batchSize-1)/batchSize)
	if now.Sub(c.batchAt) < age/time.Duration(batches) {
		return rest, others
	}
	c.batchAt = now
	slices.SortStableFunc(rest, func(a, b *reading) int {
		return c.byGroup[a.group.ID].described.Compare(c.byGroup[b.group.ID].described)
	})
	left := (machines + batches - 1) / batches
	for len(rest) > 0 {
		size := len(c.byGroup[rest[0].group.ID].machines)
		if left <= 0 && size > 0 { // groups without machines belong to the batch that they come after
			break
		}
		left -= size
		rest, others = rest[1:], append(others, rest[0])
	}
	return rest, others
}

// repeat fills in the machines of a group at rest as they were described, unless EC2 lists
// other machines that do not run than then. It lists those that were terminated for an hour.
func (c *members) repeat(r *reading, at time.Time, others map[string]machine) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byGroup[r.group.ID]
	if !ok {
		return false
	}
	var forgotten []string
	for id, m := range known.machines {
		is, listed := others[id]
		switch {
		case listed && is.state != m.state, !listed && m.state != ec2types.InstanceStateNameRunning && m.state != ec2types.InstanceStateNameTerminated:
			return false
		case !listed && m.state == ec2types.InstanceStateNameTerminated:
			forgotten = append(forgotten, id)
		}
	}
	for id := range others {
		if _, was := known.machines[id]; !was {
			return false
		}
	}
	if len(forgotten) > 0 {
		known.machines = maps.Clone(known.machines)
		for _, id := range forgotten {
			delete(known.machines, id)
		}
	}
	known.at = at
	c.byGroup[r.group.ID] = known
	r.machines, r.group.NamesReadAt = known.machines, known.described
	return true
}

// retain forgets groups that are no longer listed.
func (c *members) retain(listed []*reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make(map[cluster.GroupID]bool, len(listed))
	for _, r := range listed {
		ids[r.group.ID] = true
	}
	maps.DeleteFunc(c.byGroup, func(id cluster.GroupID, _ membership) bool { return !ids[id] })
}

// Package refresh tells whether an instance refresh of AWS replaces the machines of an Auto Scaling group.
//
// It refuses to ask about more than two groups at once, to take a missing answer for one, and to say which machines the refresh ends:
// AWS does not tell.
package refresh

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// Life is how long an answer holds: instance refreshes take minutes to hours, and the call is throttled like any other.
const Life = time.Minute

// atOnce is how many groups one read asks about: a new version of a launch template may concern every group.
const atOnce = 2

// replacing are the states of an instance refresh in which machines are replaced.
var replacing = []asgtypes.InstanceRefreshStatus{
	asgtypes.InstanceRefreshStatusPending, asgtypes.InstanceRefreshStatusInProgress, asgtypes.InstanceRefreshStatusCancelling,
	asgtypes.InstanceRefreshStatusRollbackInProgress, asgtypes.InstanceRefreshStatusBaking,
}

// Fact is what AWS has told of a group.
type Fact struct {
	Warning string
	// Replacing and Stale are as in cluster.NodeGroup.
	Replacing, Stale string
}

// answer is the last answer about a group. The zero value: there was none yet.
type answer struct {
	warning, replacing string
	known              bool // AWS has answered, or does not let the agent ask
	until              time.Time
}

// Reader keeps the last answers.
type Reader struct {
	mu      sync.Mutex
	byGroup map[cluster.GroupID]answer
}

// Ask asks about those of the groups whose answers are old, two at most: the ones that were asked about the longest time ago.
func (r *Reader) Ask(ctx context.Context, client *awsapi.Client, groups []cluster.GroupID, now time.Time) {
	due := slices.DeleteFunc(slices.Clone(groups), func(id cluster.GroupID) bool { return now.Before(r.last(id).until) })
	slices.SortStableFunc(due, func(a, b cluster.GroupID) int {
		return cmp.Or(r.last(a).until.Compare(r.last(b).until), cmp.Compare(a, b))
	})
	for _, id := range due[:min(len(due), atOnce)] {
		r.ask(ctx, client, id, now)
	}
}

// Of is what is known of a group.
func (r *Reader) Of(id cluster.GroupID) Fact {
	a := r.last(id)
	out := Fact{Warning: a.warning, Replacing: a.replacing}
	if !a.known {
		out.Stale = "AWS has not told yet whether an instance refresh replaces its machines"
	}
	return out
}

func (r *Reader) last(id cluster.GroupID) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byGroup[id]
}

// ask asks about one group. Where AWS does not answer this time, its last answer holds. Where it refuses to answer (a right that is
// missing), the group is taken for one without a refresh, as most are: else no machine would be replaced until somebody grants the right.
func (r *Reader) ask(ctx context.Context, client *awsapi.Client, id cluster.GroupID, now time.Time) {
	said, err := client.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(string(id)), MaxRecords: aws.Int32(1)})
	if ctx.Err() != nil {
		return
	}
	a := answer{known: true}
	switch {
	case err != nil:
		failed := awsapi.Classify("read", "", awsapi.ActionDescribeRefreshes, err)
		if failed.Kind == provider.Transient {
			a = r.last(id)
		}
		a.warning = "whether an instance refresh replaces its machines cannot be read: " + failed.Error()
	case len(said.InstanceRefreshes) > 0 && slices.Contains(replacing, said.InstanceRefreshes[0].Status):
		f := said.InstanceRefreshes[0]
		a.replacing = fmt.Sprintf("an instance refresh is under way (%s, %d %%)", f.Status, aws.ToInt32(f.PercentageComplete))
		a.warning = a.replacing + ": AWS ends its machines one after the other, and none is drained unless a lifecycle hook lets it wait"
	}
	a.until = now.Add(Life)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byGroup == nil {
		r.byGroup = map[cluster.GroupID]answer{}
	}
	r.byGroup[id] = a
}

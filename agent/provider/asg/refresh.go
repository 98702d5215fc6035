package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// drift compares a group's machines with what it starts next. A type that is not
// started any more is worth a warning; an older version is a sign that an instance
// refresh may be under way.
func (r *reading) drift(next template.Startable) (refreshing bool, warning string) {
	if len(next.Types) == 0 {
		return false, ""
	}
	other, n := map[string]bool{}, 0
	for _, m := range r.source.Instances {
		if t := aws.ToString(m.InstanceType); t != "" && counted(m.LifecycleState) && !next.Types[t] {
			other[t] = true
			n++
		}
		if t := m.LaunchTemplate; t != nil && aws.ToString(t.LaunchTemplateId) != "" {
			refreshing = refreshing || !next.Versions[aws.ToString(t.LaunchTemplateId)+"/"+aws.ToString(t.Version)]
		}
	}
	if n > 0 {
		warning = fmt.Sprintf("%d of its machines have an instance type that it does not start any more (%s): they say nothing about the next one, and go when nothing needs them or an instance refresh replaces them",
			n, strings.Join(slices.Sorted(maps.Keys(other)), ", "))
	}
	return refreshing || n > 0, warning
}

// refreshLife is how long an answer about instance refreshes holds: they take minutes
// to hours, and the call is throttled like any other.
const refreshLife = time.Minute

// refreshing are the states of an instance refresh in which machines are replaced.
var refreshing = []asgtypes.InstanceRefreshStatus{
	asgtypes.InstanceRefreshStatusPending, asgtypes.InstanceRefreshStatusInProgress, asgtypes.InstanceRefreshStatusCancelling,
	asgtypes.InstanceRefreshStatusRollbackInProgress, asgtypes.InstanceRefreshStatusBaking,
}

type refreshFact struct {
	warning string
	until   time.Time
}

// refreshes keeps the last read of instance refreshes.
type refreshes struct {
	mu      sync.Mutex
	byGroup map[cluster.GroupID]refreshFact // for refreshLife
}

// refresh returns a warning if an instance refresh is under way in a group whose machines
// differ from what it starts next.
func (p *Provider) refresh(ctx context.Context, id cluster.GroupID) string {
	p.refreshes.mu.Lock()
	known, ok := p.refreshes.byGroup[id]
	p.refreshes.mu.Unlock()
	if ok && p.now().Before(known.until) {
		return known.warning
	}
	answer, err := p.client.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(string(id)), MaxRecords: aws.Int32(1)})
	if ctx.Err() != nil {
		return ""
	}
	warning := ""
	switch {
	case err != nil:
		warning = "whether an instance refresh replaces its machines cannot be read: " + awsapi.Classify("read", "", awsapi.ActionDescribeRefreshes, err).Error()
	case len(answer.InstanceRefreshes) > 0 && slices.Contains(refreshing, answer.InstanceRefreshes[0].Status):
		f := answer.InstanceRefreshes[0]
		warning = fmt.Sprintf("an instance refresh is under way (%s, %d %%): AWS ends its machines one after the other, and none is drained unless a lifecycle hook lets it wait",
			f.Status, aws.ToInt32(f.PercentageComplete))
	}
	p.refreshes.mu.Lock()
	defer p.refreshes.mu.Unlock()
	if p.refreshes.byGroup == nil {
		p.refreshes.byGroup = map[cluster.GroupID]refreshFact{}
	}
	p.refreshes.byGroup[id] = refreshFact{warning: warning, until: p.now().Add(refreshLife)}
	return warning
}

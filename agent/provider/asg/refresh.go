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
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/lifecycle"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// drift compares a group's machines with what it starts next. A type that is not
// started any more is worth a warning; an older version is a sign that an instance
// refresh may be under way.
func (r *reading) drift(next template.Startable) {
	if len(next.Types) == 0 {
		return
	}
	other, n := map[string]bool{}, 0
	for _, m := range r.source.Instances {
		if t := aws.ToString(m.InstanceType); t != "" && lifecycle.Counted(m.LifecycleState) && !next.Types[t] {
			other[t] = true
			n++
		}
		if t := m.LaunchTemplate; t != nil && aws.ToString(t.LaunchTemplateId) != "" {
			r.outdated = r.outdated || !next.Versions[aws.ToString(t.LaunchTemplateId)+"/"+aws.ToString(t.Version)]
		}
	}
	if n > 0 {
		r.outdated = true
		r.warn(fmt.Sprintf("%d of its machines have an instance type that the group does not start any more (%s): new machines are not judged by them, and they leave when nothing needs them or an instance refresh replaces them",
			n, strings.Join(slices.Sorted(maps.Keys(other)), ", ")))
	}
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
	byGroup map[cluster.GroupID]refreshFact
}

// refreshesAtOnce is how many groups one read asks about instance refreshes: a new version
// of a launch template may concern every group.
const refreshesAtOnce = 2

// readRefreshes warns of instance refreshes in groups whose machines differ from what they
// start next. The groups that were asked about the longest time ago come first; the answers
// about the others hold on. A narrowed read asks about none.
func (p *Provider) readRefreshes(ctx context.Context, readings []*reading) {
	var due []*reading
	for _, r := range readings {
		if r.outdated && !p.now().Before(p.refreshes.of(r.group.ID).until) {
			due = append(due, r)
		}
	}
	slices.SortStableFunc(due, func(a, b *reading) int {
		return p.refreshes.of(a.group.ID).until.Compare(p.refreshes.of(b.group.ID).until)
	})
	if provider.Only(ctx) == nil {
		for _, r := range due[:min(len(due), refreshesAtOnce)] {
			p.readRefresh(ctx, r.group.ID)
		}
	}
	for _, r := range readings {
		if r.outdated {
			r.warn(p.refreshes.of(r.group.ID).warning)
		}
	}
}

// of is the last answer about a group.
func (f *refreshes) of(id cluster.GroupID) refreshFact {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byGroup[id]
}

// readRefresh asks whether an instance refresh is under way in a group.
func (p *Provider) readRefresh(ctx context.Context, id cluster.GroupID) {
	answer, err := p.client.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(string(id)), MaxRecords: aws.Int32(1)})
	if ctx.Err() != nil {
		return
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
}

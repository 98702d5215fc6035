package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// What AWS does to a group's machines of its own accord and tells nobody but those who
// ask: spot interruptions and instance refreshes. Both are asked about only where there
// is a sign of them, and an agent that may not ask goes on without.
//
// A rebalance recommendation is not among them: it is told to the machine itself and to
// EventBridge, and no call of the API that a leader could make repeats it. Of a group
// with CapacityRebalance on it is seen by what Auto Scaling does: the new machine, and
// the old one on its way out; a lifecycle hook of the group keeps that one in
// Terminating:Wait, which counts as an interruption without a known end.

// interrupted are the status codes of a spot request whose machine has had its notice.
var interrupted = []string{"marked-for-termination", "marked-for-stop"}

const (
	// noticeTime is how long a machine runs on after its notice (EC2 User Guide, "Spot
	// Instance interruption notices").
	noticeTime = 2 * time.Minute
	// noticeLife is how long a notice is believed while it cannot be read again: until its
	// machine should have ended, with some room.
	noticeLife = noticeTime + time.Minute
)

// notice is an interruption notice as it was last read.
type notice struct {
	code     string
	at, read time.Time // when it was given (its status changed), and read
}

// readSpot looks for interruption notices, and has a machine that got one be on its way
// out: nothing new is placed there, its pods leave, and what Auto Scaling puts in its
// place is expected.
func (p *Provider) readSpot(ctx context.Context, readings []*reading) {
	if !slices.ContainsFunc(readings, func(r *reading) bool { return r.spot }) {
		return
	}
	given, err := p.notices(ctx)
	for _, r := range readings {
		if r.spot && err != nil {
			r.warn("spot interruption notices cannot be read, so its machines go without a warning: " + err.Error())
		}
		for n := range r.group.Instances {
			i := &r.group.Instances[n]
			short, _ := parseProviderID(i.ID)
			notice, ok := given[short]
			if !ok || i.Phase != cluster.PhaseRunning && i.Phase != cluster.PhasePending {
				continue
			}
			i.Phase = cluster.PhaseDeleting
			i.Interruption = &cluster.Interruption{Why: "spot interruption notice: " + notice.code}
			if !notice.at.IsZero() {
				i.Interruption.By = notice.at.Add(noticeTime).UTC()
			}
			r.warn(fmt.Sprintf("spot machine %s has its interruption notice (%s): AWS ends it within two minutes", short, notice.code))
		}
	}
}

// notices reads the interruption notices, by EC2 id. Together with an error it returns
// those that were read a short while ago as well: an error takes none back.
func (p *Provider) notices(ctx context.Context) (map[string]notice, error) {
	in := &ec2.DescribeSpotInstanceRequestsInput{
		Filters: []ec2types.Filter{{Name: aws.String("status-code"), Values: interrupted}}, MaxResults: aws.Int32(1000),
	}
	given, at := map[string]notice{}, p.now()
	var failed error
	for {
		answer, err := call(ctx, p, actionDescribeSpot, p.compute.DescribeSpotInstanceRequests, in)
		if err != nil {
			failed = classify("read", "", actionDescribeSpot, err)
			break
		}
		for _, s := range answer.SpotInstanceRequests {
			if s.Status != nil && slices.Contains(interrupted, aws.ToString(s.Status.Code)) {
				given[aws.ToString(s.InstanceId)] = notice{aws.ToString(s.Status.Code), aws.ToTime(s.Status.UpdateTime), at}
			}
		}
		if aws.ToString(answer.NextToken) == "" {
			break
		}
		next := *in
		next.NextToken = answer.NextToken
		in = &next
	}
	p.facts.mu.Lock()
	defer p.facts.mu.Unlock()
	for id, n := range p.facts.notices {
		if _, ok := given[id]; !ok && failed != nil && at.Sub(n.read) < noticeLife {
			given[id] = n
		}
	}
	p.facts.notices = given
	return given, failed
}

// spotMachine tells how a machine was bought.
func spotMachine(m ec2types.Instance) bool {
	return m.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot
}

// kinds are what a group may start next: launch template versions and instance types.
type kinds struct{ versions, types map[string]bool }

func (d *draft) kinds() kinds {
	k := kinds{map[string]bool{}, map[string]bool{}}
	for _, v := range d.variants {
		k.versions[fmt.Sprintf("%s/%d", v.template.id, v.template.version)] = true
		k.types[v.typ] = true
	}
	return k
}

// drift compares a group's machines with what it starts next. A type that is not
// started any more is worth a warning; an older version is a sign that an instance
// refresh may be under way.
func (r *reading) drift(next kinds) (refreshing bool, warning string) {
	if len(next.types) == 0 {
		return false, ""
	}
	other, n := map[string]bool{}, 0
	for _, m := range r.source.Instances {
		if t := aws.ToString(m.InstanceType); t != "" && counted(m.LifecycleState) && !next.types[t] {
			other[t] = true
			n++
		}
		if t := m.LaunchTemplate; t != nil && aws.ToString(t.LaunchTemplateId) != "" {
			refreshing = refreshing || !next.versions[aws.ToString(t.LaunchTemplateId)+"/"+aws.ToString(t.Version)]
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

// refresh says whether an instance refresh is under way in a group that has machines of
// an older kind.
func (p *Provider) refresh(ctx context.Context, id cluster.GroupID) string {
	p.facts.mu.Lock()
	known, ok := p.facts.refreshes[id]
	p.facts.mu.Unlock()
	if ok && p.now().Before(known.until) {
		return known.warning
	}
	answer, err := call(ctx, p, actionDescribeRefreshes, p.scaling.DescribeInstanceRefreshes,
		&autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(string(id)), MaxRecords: aws.Int32(1)})
	if ctx.Err() != nil {
		return ""
	}
	warning := ""
	switch {
	case err != nil:
		warning = "whether an instance refresh replaces its machines cannot be read: " + classify("read", "", actionDescribeRefreshes, err).Error()
	case len(answer.InstanceRefreshes) > 0 && slices.Contains(refreshing, answer.InstanceRefreshes[0].Status):
		f := answer.InstanceRefreshes[0]
		warning = fmt.Sprintf("an instance refresh is under way (%s, %d %%): AWS ends its machines one after the other, and none is drained unless a lifecycle hook lets it wait",
			f.Status, aws.ToInt32(f.PercentageComplete))
	}
	p.facts.mu.Lock()
	defer p.facts.mu.Unlock()
	if p.facts.refreshes == nil {
		p.facts.refreshes = map[cluster.GroupID]refreshFact{}
	}
	p.facts.refreshes[id] = refreshFact{warning: warning, until: p.now().Add(refreshLife)}
	return warning
}

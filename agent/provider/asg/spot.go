package asg

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// Spot interruptions and instance refreshes (refresh.go) are changes that AWS makes of its
// own accord and announces in no list of groups or instances. They are read only where
// there is a sign of them, and an agent without the right to read them works on.
//
// A rebalance recommendation cannot be read: AWS sends it to the machine itself and to
// EventBridge, and no call of the API repeats it. In a group with CapacityRebalance the
// actions of Auto Scaling show it: a new machine comes, and the old one leaves. A lifecycle
// hook of the group keeps the old one in Terminating:Wait, which counts as an interruption
// without a known end.

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

// notices keeps the interruption notices as they were last read.
type notices struct {
	mu   sync.Mutex
	byID map[string]notice // by EC2 ID, for noticeLife; never changed
	err  error
}

// last is the result of the last read; a narrowed read of the groups makes no other.
func (n *notices) last() (map[string]notice, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byID, n.err
}

// readSpot looks for interruption notices. A machine with a notice becomes PhaseDeleting:
// no pod is placed there, its pods are drained, and the machine that Auto Scaling puts in
// its place is expected.
func (p *Provider) readSpot(ctx context.Context, readings []*reading) {
	if !slices.ContainsFunc(readings, func(r *reading) bool { return r.spot }) {
		return
	}
	given, err := p.notices.last()
	if provider.Only(ctx) == nil {
		given, err = p.readNotices(ctx)
	}
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

// readNotices reads the interruption notices, by EC2 ID. Together with an error it returns
// the notices that were read a short while ago as well: an error revokes none.
func (p *Provider) readNotices(ctx context.Context) (map[string]notice, error) {
	pages := ec2.NewDescribeSpotInstanceRequestsPaginator(p.client, &ec2.DescribeSpotInstanceRequestsInput{
		Filters: []ec2types.Filter{{Name: aws.String("status-code"), Values: interrupted}}, MaxResults: aws.Int32(1000),
	})
	given, at := map[string]notice{}, p.now()
	var failed error
	for pages.HasMorePages() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			failed = awsapi.Classify("read", "", awsapi.ActionDescribeSpot, err)
			break
		}
		for _, s := range answer.SpotInstanceRequests {
			if s.Status != nil && slices.Contains(interrupted, aws.ToString(s.Status.Code)) {
				given[aws.ToString(s.InstanceId)] = notice{aws.ToString(s.Status.Code), aws.ToTime(s.Status.UpdateTime), at}
			}
		}
	}
	p.notices.mu.Lock()
	defer p.notices.mu.Unlock()
	for id, n := range p.notices.byID {
		if _, ok := given[id]; !ok && failed != nil && at.Sub(n.read) < noticeLife {
			given[id] = n
		}
	}
	p.notices.byID, p.notices.err = given, failed
	return given, failed
}

// spotMachine reports whether a machine was bought on the spot market.
func spotMachine(m *ec2types.Instance) bool {
	return m.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot
}

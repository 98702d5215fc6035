package provider_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	memory "github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// way is one way in which a group or a cloud fails.
type way struct {
	name   string
	broken []cluster.GroupID // all others go on scaling
	inject func(r *rig)
	// named are words of which each stands in what one round tells: the journal, the
	// plan, or a group's own remarks. With late the cloud takes the call and fails
	// afterwards, so it is the round after that.
	named []string
	late  bool
}

var (
	onlyA = []cluster.GroupID{groupA}
	ofAWS = []cluster.GroupID{groupA, groupB}
	onlyE = []cluster.GroupID{groupE}
)

// fault is a way in which calls to AWS fail on the wire.
func fault(f aws.Fault) func(*rig) {
	return func(r *rig) { r.aws.Inject(f) }
}

// down is a way in which the other cloud fails whole.
func down(kind provider.Kind, text string) func(*rig) {
	return func(r *rig) { r.other.Down(&provider.Error{Op: "read", Kind: kind, Err: errors.New(text)}) }
}

var ways = []way{
	// All of AWS, on the wire.
	{name: "AWS throttles", broken: ofAWS, inject: fault(aws.Fault{Kind: aws.Throttle}), named: []string{"asg: ", "transient", "Throttling"}},
	{name: "AWS answers 500", broken: ofAWS, inject: fault(aws.Fault{Kind: aws.ServerError500}), named: []string{"asg: ", "transient", "InternalFailure"}},
	{name: "AWS answers 503", broken: ofAWS, inject: fault(aws.Fault{Kind: aws.Unavailable503}), named: []string{"asg: ", "transient", "ServiceUnavailable"}},
	{name: "AWS drops connections", broken: ofAWS, inject: fault(aws.Fault{Kind: aws.ConnectionReset}), named: []string{"asg: ", "transient"}},
	{name: "AWS cuts its answers short", broken: ofAWS, inject: fault(aws.Fault{Kind: aws.TruncatedBody}), named: []string{"asg: "}},
	{name: "AWS refuses connections", broken: ofAWS, inject: func(r *rig) { r.aws.Close() }, named: []string{"asg: ", "transient", "refused"}},
	{name: "AWS hangs", broken: ofAWS, inject: fault(aws.Fault{Kind: aws.Slow, Delay: time.Hour}), named: []string{"asg: ", "transient"}},
	{name: "the role may nothing", broken: ofAWS, inject: fault(aws.Fault{Kind: aws.Forbidden}), named: []string{"asg: ", "denied", "autoscaling:DescribeAutoScalingGroups"}},
	{name: "the credentials have expired", broken: ofAWS, inject: func(r *rig) { r.aws.ExpireKey(r.aws.keys.AccessKeyID) }, named: []string{"asg: ", "denied", "xpired"}},
	{name: "the credentials are revoked", broken: ofAWS, inject: func(r *rig) { r.aws.RevokeKey(r.aws.keys.AccessKeyID) }, named: []string{"asg: ", "denied"}},
	{name: "EC2 is down", broken: ofAWS, inject: fault(aws.Fault{Service: "ec2", Kind: aws.ServerError500}), named: []string{"asg: ", "transient", "DescribeInstances"}},
	{name: "instances may not be read", broken: ofAWS, inject: fault(aws.Fault{Action: "DescribeInstances", Kind: aws.Forbidden}), named: []string{"asg: ", "denied", "ec2:DescribeInstances"}},
	{name: "a success that lists no groups", broken: ofAWS, inject: fault(aws.Fault{Action: "DescribeAutoScalingGroups", Kind: aws.EmptyList}), named: []string{"asg: read a", "asg: read b", "not found"}},
	{name: "raising a target is forbidden", broken: ofAWS, inject: fault(aws.Fault{Action: "SetDesiredCapacity", Kind: aws.Forbidden}), named: []string{"scale-up a", "scale-up b", "denied", "allow autoscaling:SetDesiredCapacity"}},
	{name: "raising a target is throttled", broken: ofAWS, inject: fault(aws.Fault{Action: "SetDesiredCapacity", Kind: aws.Throttle}), named: []string{"scale-up a", "scale-up b", "transient"}},
	{name: "raising a target hangs", broken: ofAWS, inject: fault(aws.Fault{Action: "SetDesiredCapacity", Kind: aws.Slow, Delay: time.Hour}), named: []string{"scale-up a", "not done"}},
	{name: "the quota is used up", broken: ofAWS, inject: func(r *rig) { r.aws.Cloud.Quota(1) }, named: []string{"group a: quota", "vCPU limit"}, late: true},

	// One group of AWS.
	{name: "one group is gone", broken: onlyA, inject: func(r *rig) { r.aws.Vanish(groupA) }, named: []string{"asg: read a", "not found"}},
	{name: "one of two groups is not listed", broken: ofAWS, inject: fault(aws.Fault{Action: "DescribeAutoScalingGroups", Kind: aws.ShortList}), named: []string{"asg: read", "not found"}},
	{name: "no machines of one type", broken: onlyA, inject: func(r *rig) { r.aws.NoCapacity("*", "m5.large") }, named: []string{"group a: capacity", "m5.large"}, late: true},
	{name: "the image of one group is gone", broken: onlyA, inject: func(r *rig) { r.aws.RemoveImage("ami-00000000000000000") }, named: []string{"ami-00000000000000000"}, late: true},
	{name: "launches of one group are suspended", broken: onlyA, inject: func(r *rig) {
		_, err := r.aws.admin.SuspendProcesses(context.Background(), &autoscaling.SuspendProcessesInput{AutoScalingGroupName: sdk.String("a"), ScalingProcesses: []string{"Launch"}})
		if err != nil {
			r.Fatal(err)
		}
	}, named: []string{"group a: ", "Launch"}},
	{name: "one group has weights", broken: onlyA, inject: func(r *rig) {
		err := r.aws.PutGroup(aws.Group{Name: "a", Max: 10, Desired: 1, LaunchTemplate: "a", ProtectNew: true,
			Overrides: []aws.Override{{InstanceType: "m5.large", WeightedCapacity: "2"}, {InstanceType: "m5.xlarge", WeightedCapacity: "4"}}})
		if err != nil {
			r.Fatal(err)
		}
	}, named: []string{"group a: ", "weight"}},

	// The other cloud, and what two have to do with each other.
	{name: "the other cloud throttles", broken: onlyE, inject: down(provider.Transient, "slow down"), named: []string{"other: ", "transient", "slow down"}},
	{name: "the other cloud denies", broken: onlyE, inject: down(provider.Denied, "who are you"), named: []string{"other: ", "denied", "who are you"}},
	{name: "the other cloud fails without a kind", broken: onlyE, inject: func(r *rig) { r.other.Down(errors.New("index out of range")) }, named: []string{"other: ", "index out of range"}},
	{name: "the other cloud hangs", broken: onlyE, inject: func(r *rig) { r.other.Hang(true) }, named: []string{"other: ", "transient"}},
	{name: "the other cloud cannot be made", broken: onlyE, inject: func(r *rig) {
		r.use(wrap.Deferred(func() (provider.Provider, error) { return nil, errors.New("no such host") }))
	}, named: []string{"other: ", "no such host"}},
	{name: "the other cloud reads its group in part", broken: onlyE, inject: func(r *rig) {
		r.other.BreakRead(groupE, &provider.Error{Op: "read", Group: groupE, Kind: provider.Transient, Err: errors.New("page 2 is missing")})
	}, named: []string{"other: read elsewhere", "page 2 is missing"}},
	{name: "the other cloud refuses the next call", broken: onlyE, inject: func(r *rig) {
		r.other.DownAfter(1, &provider.Error{Op: "resize", Kind: provider.Exhausted, Err: errors.New("no more cores")})
	}, named: []string{"scale-up elsewhere", "exhausted", "no more cores"}},
	{name: "somebody else changes the other cloud's target", broken: onlyE, inject: func(r *rig) { r.use(drift{r.other}) },
		named: []string{"scale-up elsewhere", "conflict", "target is 3, not 1"}},
	{name: "the other cloud's quota is used up", broken: onlyE, inject: func(r *rig) {
		r.other.Block(groupE, &cluster.Failure{Cause: cluster.CauseQuota, Text: "cores: 20 of 20"})
	}, named: []string{"group elsewhere: quota", "20 of 20"}, late: true},
	{name: "the other cloud's machines fail", broken: onlyE, inject: func(r *rig) {
		r.other.Spoil(groupE, &cluster.Failure{Cause: cluster.CauseOther, Text: "No valid host was found"})
	}, named: []string{"group elsewhere: ", "No valid host"}, late: true},
	{name: "the other cloud's group is gone", broken: onlyE, inject: func(r *rig) { r.other.RemoveGroup(groupE) }, named: []string{"group elsewhere of provider other no longer exists in the cloud"}},
	{name: "the other cloud is paused", broken: onlyE, inject: func(r *rig) {
		r.other.Edit(groupE, func(g *cluster.NodeGroup) { g.Paused = "maintenance" })
	}, named: []string{"group elsewhere: ", "maintenance"}},
	{name: "the other cloud cannot describe its machine", broken: onlyE, inject: func(r *rig) {
		r.other.Edit(groupE, func(g *cluster.NodeGroup) { g.Template = cluster.Template{Unknown: "flavor is gone"} })
	}, named: []string{"group elsewhere: ", "flavor is gone"}},
	{name: "both clouds have a group of one name", broken: onlyA, inject: func(r *rig) {
		r.other.AddGroup(cluster.NodeGroup{ID: groupA, Max: 3})
	}, named: []string{"read a", "asg and other", "rename one"}},
	{name: "both clouds count one machine", broken: []cluster.GroupID{groupA, groupE}, inject: func(r *rig) {
		r.use(thief{r.other, r.alive(groupA)[0]})
		r.read()
	}, named: []string{"a of provider asg", "elsewhere of provider other"}},
}

// thief is a cloud that claims a machine of another one.
type thief struct {
	*memory.Cloud
	loot cluster.InstanceID
}

func (t thief) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	groups, err := t.Cloud.Groups(ctx)
	for i := range groups {
		groups[i].Instances = append(groups[i].Instances, cluster.Instance{ID: t.loot, Phase: cluster.PhaseRunning, Member: true})
	}
	return groups, err
}

// drift is a cloud whose target somebody changes between a read and a write.
type drift struct{ *memory.Cloud }

func (d drift) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	d.SetTarget(id, 3)
	return d.Cloud.Resize(ctx, id, from, to)
}

// TestOneFailsAndTheOthersScale: whatever happens to one group or to one cloud, every
// other group gets the machines that its pods want and loses the ones that never join,
// in the same rounds as ever; nothing that the trouble is about is ended; and the
// trouble is named within one round.
func TestOneFailsAndTheOthersScale(t *testing.T) {
	if len(ways) < 30 {
		t.Errorf("%d ways, want 30 or more", len(ways))
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			r := newRig(t)
			before := map[cluster.GroupID][]cluster.InstanceID{}
			for _, id := range allGroups {
				before[id] = r.alive(id)
			}
			w.inject(r)
			var sound []cluster.GroupID
			for _, id := range allGroups {
				if !slices.Contains(w.broken, id) {
					sound = append(sound, id)
				}
			}
			text := r.round(1)
			for _, id := range sound {
				if got := r.target(id); got != 2 {
					t.Errorf("%s was not grown: target %d\n%s", id, got, text)
				}
			}
			if w.late {
				r.settleSome(sound)
				text = r.round(1)
			}
			for _, word := range w.named {
				if !strings.Contains(text, word) {
					t.Errorf("a round does not tell of %q:\n%s", word, text)
				}
			}
			r.settleSome(sound)
			r.round(0)                 // the new machines are seen, without Nodes
			r.later = 20 * time.Minute // they have not become Nodes
			r.round(0)
			text = r.round(0) // a machine without a Node goes when it has been looked at twice
			r.settleSome(sound)
			for _, id := range sound {
				if got := r.alive(id); r.target(id) != 1 || !slices.Equal(got, before[id]) {
					t.Errorf("%s was not shrunk: target %d, alive %v of %v\n%s", id, r.target(id), got, before[id], text)
				}
			}
		})
	}
}

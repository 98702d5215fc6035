package asg

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/lifecycle"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// Resize sets the desired capacity. See provider.Provider. AWS has no
// compare-and-set; the group is re-read right before the write, and writes of this
// process to one group wait for each other.
//
// Lowering (taking back what has not come) is refused unless every machine of the
// group is protected from scale-in: between our read and our write a machine may
// have come, and AWS would end some machine for it (kubernetes/autoscaler#10147).
func (p *Provider) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	const op = "resize"
	unlock, err := p.locks.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := p.one(ctx, op, id)
	if err != nil {
		return err
	}
	target := int(aws.ToInt32(g.DesiredCapacity))
	if why := template.Unsupported(g); why != "" {
		return invalid(op, id, "", "%s", why)
	}
	lo, hi, _ := p.bounds(g)
	switch {
	case to < lo || to > hi:
		return invalid(op, id, "change the group's MinSize and MaxSize, or its bounds in AUTOSCALER_AWS_GROUPS", "%d is outside %d..%d", to, lo, hi)
	case target == to:
		return nil
	case target != from:
		return &provider.Error{Op: op, Group: id, Kind: provider.Conflict, Err: fmt.Errorf("target is %d, not %d", target, from)}
	}
	if _, missing := p.pools.of(id); missing {
		return p.makeGroup(ctx, op, id, g, to)
	}
	if to < target {
		if err := mayLower(id, g, to); err != nil {
			return err
		}
	}
	_, err = p.client.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String(string(id)),
		DesiredCapacity:      aws.Int32(int32(to)),
		HonorCooldown:        aws.Bool(false),
	}, once)
	if err != nil {
		return awsapi.Unsure(awsapi.Classify(op, id, awsapi.ActionSetDesired, err))
	}
	return nil
}

// once has a write tried one time only. The capacity is absolute: a first attempt that is
// carried out late, after the second was answered, would undo what was set in between. A
// termination that is repeated after a lost answer could lower the capacity twice; the
// next Delete sees the instance Terminating and leaves the target alone.
func once(o *autoscaling.Options) { o.RetryMaxAttempts = 1; o.Retryer = aws.NopRetryer{} }

func mayLower(id cluster.GroupID, g asgtypes.AutoScalingGroup, to int) error {
	members, bare := 0, 0
	for _, m := range g.Instances {
		if !lifecycle.Counted(m.LifecycleState) {
			continue
		}
		members++
		if !aws.ToBool(m.ProtectedFromScaleIn) {
			bare++
		}
	}
	if to < members {
		return invalid("resize", id, "", "%d is below its %d instances, and Resize never removes one", to, members)
	}
	if bare > 0 || !aws.ToBool(g.NewInstancesProtectedFromScaleIn) {
		return invalid("resize", id, "set NewInstancesProtectedFromScaleIn on the group and protect its instances from scale-in",
			"lowering to %d could end a running machine: not all are protected from scale-in", to)
	}
	return nil
}

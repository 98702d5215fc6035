package asg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/lifecycle"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// Delete terminates instances one by one, each with one decrement of the desired
// capacity. After one without an answer it asks for no more: whether the next lowers the
// capacity too follows from whether that one is carried out. See provider.Provider.
func (p *Provider) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	const op = "delete"
	if len(ids) == 0 {
		return ctx.Err()
	}
	unlock, err := p.locks.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := p.one(ctx, op, id)
	if err != nil {
		return err
	}
	lives := map[string]asgtypes.LifecycleState{}
	for _, m := range g.Instances {
		if !lifecycle.Warm(m.LifecycleState) {
			lives[aws.ToString(m.InstanceId)] = m.LifecycleState
		}
	}
	lo, _, _ := p.bounds(g)
	d := &deletion{p: p, group: id, lives: lives, target: int(aws.ToInt32(g.DesiredCapacity)), min: lo, weighted: template.Unsupported(g)}
	for _, life := range lives {
		if lifecycle.Counted(life) && !lifecycle.Leaving(life) {
			d.surplus++
		}
	}
	d.surplus -= d.target
	var errs []error
	for i, instance := range ids {
		err := d.delete(ctx, instance)
		if err != nil {
			errs = append(errs, err)
		}
		if unsure, all := provider.Unsure(err); all || len(unsure) > 0 {
			for _, rest := range ids[i+1:] {
				errs = append(errs, &provider.Error{Op: op, Group: id, Instance: rest, Kind: provider.Busy, Err: fmt.Errorf("not asked for: the end of %s has no answer", instance)})
			}
			break
		}
	}
	return errors.Join(errs...)
}

// deletion is one Delete under way.
type deletion struct {
	p           *Provider
	group       cluster.GroupID
	lives       map[string]asgtypes.LifecycleState
	target, min int
	// surplus is how many members there are above the target (scale-in protection
	// keeps AWS from ending them): ending one of those lowers nothing, and AWS would
	// refuse to lower a target that is at its minimum.
	surplus  int
	weighted string
}

func (d *deletion) delete(ctx context.Context, id cluster.InstanceID) error {
	fail := func(kind provider.Kind, remedy, format string, args ...any) error {
		return &provider.Error{Op: "delete", Group: d.group, Instance: id, Kind: kind, Remedy: remedy, Err: fmt.Errorf(format, args...)}
	}
	short, ok := parseProviderID(id)
	if !ok {
		return fail(provider.NotFound, "", "not an AWS provider ID")
	}
	life, member := d.lives[short]
	switch {
	case !member:
		return d.absent(ctx, id, short)
	case lifecycle.Leaving(life):
		return nil
	case !lifecycle.Counted(life):
		return fail(provider.Invalid, "return the instance to service first", "it is %s, which the desired capacity does not count", life)
	case d.weighted != "":
		return fail(provider.Invalid, "", "%s", d.weighted)
	case d.target <= d.min && d.surplus <= 0:
		return fail(provider.Invalid, "lower the group's MinSize, or its min in AUTOSCALER_AWS_GROUPS", "the target is %d, which is the group's minimum", d.target)
	}
	_, err := d.p.client.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: aws.String(short), ShouldDecrementDesiredCapacity: aws.Bool(d.surplus <= 0)}, once)
	if err == nil {
		if d.surplus > 0 {
			d.surplus--
		} else {
			d.target--
		}
		d.lives[short] = asgtypes.LifecycleStateTerminating
		return nil
	}
	e := awsapi.Unsure(awsapi.Classify("delete", d.group, awsapi.ActionTerminate, err))
	e.Instance = id
	if e.Kind == provider.NotFound {
		return d.absent(ctx, id, short)
	}
	if e.Kind == provider.Invalid && strings.Contains(strings.ToLower(err.Error()), "min") {
		e.Remedy = "lower the group's MinSize"
	}
	return e
}

// absent judges an instance that its group does not list: one that is gone or
// going is a deletion that has already happened; one that lives outside the group
// is NotFound, and nothing is done to it.
func (d *deletion) absent(ctx context.Context, id cluster.InstanceID, short string) error {
	answer, err := d.p.client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{short}})
	fail := func(kind provider.Kind, text string) error {
		return &provider.Error{Op: "delete", Group: d.group, Instance: id, Kind: kind, Err: errors.New(text)}
	}
	if err != nil {
		e := awsapi.Classify("delete", d.group, awsapi.ActionDescribeInstances, err)
		e.Instance = id
		if e.Kind == provider.NotFound {
			return nil // EC2 forgets a terminated instance after about an hour
		}
		return e
	}
	for _, reservation := range answer.Reservations {
		for _, m := range reservation.Instances {
			if aws.ToString(m.InstanceId) != short {
				continue
			}
			switch stateOf(m) { // not by its tags: a detached machine has none
			case ec2types.InstanceStateNameTerminated, ec2types.InstanceStateNameShuttingDown:
				return nil
			}
			if groupOf(&m) != d.group {
				return fail(provider.NotFound, "the instance is not in the group")
			}
			return fail(provider.NotFound, "the instance has left the group and is "+string(stateOf(m)))
		}
	}
	// EC2 answers an unknown ID with an error; a missing entry proves nothing.
	return fail(provider.Transient, "EC2 did not say what became of it")
}

package asg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
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
	if why := unsupported(g); why != "" {
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
	if to < target {
		if err := mayLower(id, g, to); err != nil {
			return err
		}
	}
	_, err = call(ctx, p, actionSetDesired, p.scaling.SetDesiredCapacity, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String(string(id)),
		DesiredCapacity:      aws.Int32(int32(to)),
		HonorCooldown:        aws.Bool(false),
	}, once)
	if err != nil {
		return unsure(classify(op, id, actionSetDesired, err))
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
		if !counted(m.LifecycleState) {
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

// Delete terminates instances one by one, each with one decrement of the desired
// capacity. See provider.Provider.
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
		if !warm(m.LifecycleState) {
			lives[aws.ToString(m.InstanceId)] = m.LifecycleState
		}
	}
	lo, _, _ := p.bounds(g)
	d := &deletion{p: p, group: id, lives: lives, target: int(aws.ToInt32(g.DesiredCapacity)), min: lo, weighted: unsupported(g)}
	for _, life := range lives {
		if counted(life) && !leaving(life) {
			d.surplus++
		}
	}
	d.surplus -= d.target
	var errs []error
	for _, instance := range ids {
		if err := d.delete(ctx, instance); err != nil {
			errs = append(errs, err)
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
	case leaving(life):
		return nil
	case !counted(life):
		return fail(provider.Invalid, "return the instance to service first", "it is %s, which the desired capacity does not count", life)
	case d.weighted != "":
		return fail(provider.Invalid, "", "%s", d.weighted)
	case d.target <= d.min && d.surplus <= 0:
		return fail(provider.Invalid, "lower the group's MinSize, or its min in AUTOSCALER_AWS_GROUPS", "the target is %d, which is the group's minimum", d.target)
	}
	_, err := call(ctx, d.p, actionTerminate, d.p.scaling.TerminateInstanceInAutoScalingGroup,
		&autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: aws.String(short), ShouldDecrementDesiredCapacity: aws.Bool(d.surplus <= 0)}, once)
	if err == nil {
		if d.surplus > 0 {
			d.surplus--
		} else {
			d.target--
		}
		d.lives[short] = asgtypes.LifecycleStateTerminating
		return nil
	}
	e := unsure(classify("delete", d.group, actionTerminate, err))
	e.Instance = id
	if e.Kind == provider.NotFound {
		return d.absent(ctx, id, short)
	}
	if e.Kind == provider.Invalid && strings.Contains(strings.ToLower(err.Error()), "min") {
		e.Remedy = "lower the group's MinSize"
	}
	return e
}

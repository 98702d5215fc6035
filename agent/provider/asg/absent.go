package asg

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// absent judges an instance that its group does not list: one that is gone or
// going is a deletion that has already happened; one that lives outside the group
// is NotFound, and nothing is done to it.
func (d *deletion) absent(ctx context.Context, id cluster.InstanceID, short string) error {
	answer, err := call(ctx, d.p, actionDescribeInstances, d.p.compute.DescribeInstances,
		&ec2.DescribeInstancesInput{InstanceIds: []string{short}})
	fail := func(kind provider.Kind, text string) error {
		return &provider.Error{Op: "delete", Group: d.group, Instance: id, Kind: kind, Err: errors.New(text)}
	}
	if err != nil {
		e := classify("delete", d.group, actionDescribeInstances, err)
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
			switch stateOf(m) { // whatever its tags say: a detached one has none
			case ec2types.InstanceStateNameTerminated, ec2types.InstanceStateNameShuttingDown:
				return nil
			}
			if groupOf(m) != d.group {
				return fail(provider.NotFound, "the instance is not in the group")
			}
			return fail(provider.NotFound, "the instance has left the group and is "+string(stateOf(m)))
		}
	}
	// Of an ID that it does not know EC2 says so by an error; silence proves nothing.
	return fail(provider.Transient, "EC2 did not say what became of it")
}

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// ErrDryRun is in the tree of every error by which DryRun refuses a write.
var ErrDryRun = errors.New("dry run")

// DryRun reads through p and refuses every write, saying what it would have done.
// A refusal is an error on purpose: an outcome without one would make the next
// round count on machines that nobody asked for.
func DryRun(p Provider) Provider { return dryRun{p} }

type dryRun struct{ next Provider }

func (d dryRun) Groups(ctx context.Context) ([]cluster.NodeGroup, error) { return d.next.Groups(ctx) }

func (d dryRun) Resize(_ context.Context, id cluster.GroupID, from, to int) error {
	return &Error{Op: "resize", Group: id, Kind: Denied,
		Err: fmt.Errorf("%w: the target would have gone from %d to %d", ErrDryRun, from, to)}
}

func (d dryRun) Delete(_ context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	var errs []error
	for _, instance := range ids {
		errs = append(errs, &Error{Op: "delete", Group: id, Instance: instance, Kind: Denied,
			Err: fmt.Errorf("%w: the instance would have been terminated", ErrDryRun)})
	}
	return errors.Join(errs...)
}

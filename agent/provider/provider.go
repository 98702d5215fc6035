// Package provider is the contract between the scaler and a cloud: three methods,
// and errors that have kinds. One package below it speaks to one cloud each.
//
// A provider neither waits nor sleeps nor retries across rounds nor logs, holds no
// mutable mirror of the cloud (immutable facts such as instance types may be
// cached, and WithRepeated allows a little more), never drains and decides nothing. It
// refuses to lower a target without naming the instance that goes.
package provider

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Provider reads and changes the node groups of one cloud. Every sentence below is
// a case of providertest. All methods are safe for concurrent use and end soon
// after ctx does, with ctx's error wrapped.
type Provider interface {
	// Groups reads every node group that this agent owns, whole: target, bounds,
	// template, instances with phase, names and addresses, options and failures.
	// Order is not significant. Instances that the cloud still lists as terminated
	// are included with PhaseGone and Member false.
	//
	// One group's failure never hides another: what could be read is returned, a
	// group whose read failed or was cut short carries Stale, and err joins one
	// *Error per thing that failed. A nil slice with an error means that nothing at
	// all is known; it never means that there are no groups.
	// The result is the caller's: changing it changes nothing here.
	Groups(ctx context.Context) ([]cluster.NodeGroup, error)

	// Resize sets the group's target from from to to, as a compare-and-set: the
	// target is re-read first and a different value is a Conflict error that names
	// it. Setting what is already set is success. A to outside the group's bounds
	// is Invalid. A to below the number of the group's instances is refused as
	// Invalid: Resize never removes an instance.
	//
	// An error that leaves open whether the change was made, or may yet be, carries
	// Unsure; so it is with Delete.
	Resize(ctx context.Context, id cluster.GroupID, from, to int) error

	// Delete terminates the named instances of the group and lowers its target by
	// one for each; where there are more instances than the target (a cloud may keep
	// protected ones when somebody lowers it), the surplus goes first and lowers
	// nothing. It is idempotent: an instance that is already gone or going is
	// success and lowers nothing. An instance that is not in the group is NotFound
	// and nothing is done to it. Each failure is one *Error; the other instances are
	// still deleted.
	Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error
}

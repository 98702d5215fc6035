package provider

import (
	"context"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Witness is a Provider that can be asked for instances by their IDs, whatever group they
// are in. Every sentence is a case of providertest.
type Witness interface {
	// Instances reports for each instance whether it exists. One that lives exists, in a
	// group or in none, whatever its state. One that has ended is InstanceTerminated or
	// InstanceNotFound (InstanceUnclaimed where the cloud has no read by ID). An ID that
	// is malformed, or of a region or cloud that was not asked, is never said to have
	// ended: it is unknown, or left out where it is another cloud's.
	//
	// What could not be read is unknown, with the reason in Testimony.Why and one *Error
	// for each thing that failed; a failure never makes anything InstanceNotFound. The
	// keys are the IDs as they were given. Without IDs nothing is asked.
	//
	// InstanceNotFound says only that these credentials see no such instance: the caller
	// proves that they are of the right account by an instance that is known to live.
	Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error)
}

// Ask asks p for instances. They are unknown to a provider that is no Witness.
func Ask(ctx context.Context, p Provider, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	if w, ok := p.(Witness); ok {
		return w.Instances(ctx, ids...)
	}
	return Unknown("this provider cannot be asked for an instance by its ID", ids...), nil
}

// Unknown is the answer of a cloud that could not be asked.
func Unknown(why string, ids ...cluster.InstanceID) map[cluster.InstanceID]cluster.Testimony {
	out := make(map[cluster.InstanceID]cluster.Testimony, len(ids))
	for _, id := range ids {
		out[id] = cluster.Testimony{Why: why}
	}
	return out
}

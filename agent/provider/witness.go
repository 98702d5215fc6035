package provider

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Witness is a Provider that can be asked for instances by their IDs, whatever group they
// are in. Every sentence is a case of providertest.
type Witness interface {
	// Instances says of each instance whether it exists. One that lives exists, in a
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

// Ask asks p for instances. Of a provider that is no Witness nothing is known.
func Ask(ctx context.Context, p Provider, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	if w, ok := p.(Witness); ok {
		return w.Instances(ctx, ids...)
	}
	return Unknown("this provider cannot be asked for an instance by its ID", ids...), nil
}

// Unknown is the answer of a cloud that did not say anything.
func Unknown(why string, ids ...cluster.InstanceID) map[cluster.InstanceID]cluster.Testimony {
	out := make(map[cluster.InstanceID]cluster.Testimony, len(ids))
	for _, id := range ids {
		out[id] = cluster.Testimony{Why: why}
	}
	return out
}

// Instances asks the part.
func (d *deferred) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	p, err := d.get("ask for instances")
	if err != nil {
		return Unknown(err.Error(), ids...), err
	}
	return Ask(ctx, p, ids...)
}

func (t timeout) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return Ask(ctx, t.next, ids...)
}

func (c count) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	start := time.Now()
	out, err := Ask(ctx, c.next, ids...)
	c.observe("instances", time.Since(start), err)
	return out, err
}

// weight orders what several providers say of one instance: one that exists for any of
// them exists, and what one of them does not know nobody takes for gone.
var weight = map[cluster.Existence]int{cluster.InstanceExists: 4, cluster.ExistenceUnknown: 3, cluster.InstanceTerminated: 2,
	cluster.InstanceNotFound: 1, cluster.InstanceUnclaimed: 0}

// Instances asks every part, side by side: an ID's form names no provider. A part leaves
// out the IDs that are not of its cloud.
func (j *joined) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	if len(ids) == 0 {
		return map[cluster.InstanceID]cluster.Testimony{}, nil
	}
	type answer struct {
		said map[cluster.InstanceID]cluster.Testimony
		err  error
	}
	answers := make([]answer, len(j.parts))
	done := make(chan struct{})
	for i, p := range j.parts {
		go func() {
			said, err := Ask(ctx, p.cloud, slices.Clone(ids)...)
			answers[i] = answer{said, attribute(p.name, "ask for instances", err)}
			done <- struct{}{}
		}()
	}
	for range j.parts {
		<-done
	}
	out := map[cluster.InstanceID]cluster.Testimony{}
	var errs []error
	for i, p := range j.parts {
		errs = append(errs, answers[i].err)
		for _, id := range slices.Sorted(maps.Keys(answers[i].said)) {
			one := answers[i].said[id]
			one.Why = "provider " + p.name + ": " + one.Why
			if was, ok := out[id]; !ok || cmp.Compare(weight[one.Existence], weight[was.Existence]) > 0 {
				out[id] = one
			}
		}
	}
	for _, id := range ids {
		if _, ok := out[id]; !ok {
			out[id] = cluster.Testimony{Why: "no provider knows provider IDs of this form"}
		}
	}
	return out, errors.Join(errs...)
}

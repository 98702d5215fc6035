package wrap

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Instances implements provider.Witness.
func (d *deferred) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	p, err := d.get("ask for instances")
	if err != nil {
		return provider.Unknown(err.Error(), ids...), err
	}
	return provider.Ask(ctx, p, ids...)
}

func (t timeout) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return provider.Ask(ctx, t.next, ids...)
}

func (c count) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	start := time.Now()
	out, err := provider.Ask(ctx, c.next, ids...)
	c.observe("instances", time.Since(start), err)
	return out, err
}

// weight orders the testimonies of several providers on one instance: it exists if it
// exists for one of them, and it is unknown rather than gone if it is unknown to one.
var weight = map[cluster.Existence]int{cluster.InstanceExists: 4, cluster.ExistenceUnknown: 3, cluster.InstanceTerminated: 2,
	cluster.InstanceNotFound: 1, cluster.InstanceUnclaimed: 0}

// Instances asks every provider in parallel, since the form of an ID names none. Each
// leaves out the IDs of other clouds.
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
			said, err := provider.Ask(ctx, p.cloud, slices.Clone(ids)...)
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

package wrap

import (
	"context"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Deferred is a provider that could not be made yet: each call tries to make it, and
// fails with the reason. A cloud that is out of reach while the agent starts does not hold
// up the others.
func Deferred(make func() (provider.Provider, error)) provider.Provider { return &deferred{make: make} }

type deferred struct {
	make func() (provider.Provider, error)

	mu   sync.Mutex
	made provider.Provider
}

func (d *deferred) get(op string) (provider.Provider, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made != nil {
		return d.made, nil
	}
	p, err := d.make()
	switch {
	case err == nil:
		d.made = p
		return p, nil
	case len(provider.Errors(err)) > 0:
		return nil, err
	}
	return nil, &provider.Error{Op: op, Err: err}
}

func (d *deferred) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	p, err := d.get("read")
	if err != nil {
		return nil, err
	}
	return p.Groups(ctx)
}

func (d *deferred) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	p, err := d.get("resize")
	if err != nil {
		return err
	}
	return p.Resize(ctx, id, from, to)
}

func (d *deferred) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	p, err := d.get("delete")
	if err != nil {
		return err
	}
	return p.Delete(ctx, id, ids...)
}

package wrap

import (
	"context"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Timeout limits every call of p to d, so that a cloud that hangs costs one round and not
// the service. A call that is cut short returns the error of p.
func Timeout(p provider.Provider, d time.Duration) provider.Provider { return timeout{p, d} }

type timeout struct {
	next provider.Provider
	d    time.Duration
}

func (t timeout) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return t.next.Groups(ctx)
}

func (t timeout) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return t.next.Resize(ctx, id, from, to)
}

func (t timeout) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return t.next.Delete(ctx, id, ids...)
}

package wrap

import (
	"context"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Count calls observe after every call of p with the method ("groups", "resize",
// "delete", "instances"), its duration and its error. Metrics are fed from it.
// observe must be safe for concurrent use.
func Count(p provider.Provider, observe func(method string, took time.Duration, err error)) provider.Provider {
	return count{p, observe}
}

type count struct {
	next    provider.Provider
	observe func(string, time.Duration, error)
}

func (c count) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	start := time.Now()
	groups, err := c.next.Groups(ctx)
	c.observe("groups", time.Since(start), err)
	return groups, err
}

func (c count) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	start := time.Now()
	err := c.next.Resize(ctx, id, from, to)
	c.observe("resize", time.Since(start), err)
	return err
}

func (c count) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	start := time.Now()
	err := c.next.Delete(ctx, id, ids...)
	c.observe("delete", time.Since(start), err)
	return err
}

package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// Resize raises the target by the difference. See provider.Provider. The protocol has no
// compare-and-set: the target is read again right before the write, and writes of this
// process to one group wait for each other. Resize lowers no target: the plug-in's list
// of machines may be old.
func (p *Provider) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	const op = "resize"
	unlock, err := p.locks.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	g, target, err := p.one(ctx, op, id)
	if err != nil {
		return err
	}
	switch low, high := int(g.GetMinSize()), int(g.GetMaxSize()); {
	case to < low || to > high:
		return invalid(op, id, "change the group's bounds in the plug-in's configuration", "%d is outside %d..%d", to, low, high)
	case target == to:
		return nil
	case target != from:
		return &provider.Error{Op: op, Group: id, Kind: provider.Conflict, Err: fmt.Errorf("target is %d, not %d", target, from)}
	}
	if to < target {
		return invalid(op, id, "", "lowering from %d to %d could end a running machine: the plug-in's list may be older than its newest machines", target, to)
	}
	if _, err := p.plugin.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Delta: int32(to - target), Id: string(id)}); err != nil {
		return unsure(classify(op, id, err))
	}
	return nil
}

// one reads the bounds and the target of one group. Refresh comes first: most plug-ins
// answer from a cache that Refresh renews.
func (p *Provider) one(ctx context.Context, op string, id cluster.GroupID) (*protos.NodeGroup, int, error) {
	if err := p.refresh(ctx, op, id); err != nil {
		return nil, 0, err
	}
	list, err := p.list(ctx, op, id)
	if err != nil {
		return nil, 0, err
	}
	at := slices.IndexFunc(list, func(g *protos.NodeGroup) bool { return cluster.GroupID(g.GetId()) == id })
	if at < 0 || id == "" {
		return nil, 0, &provider.Error{Op: op, Group: id, Kind: provider.NotFound, Err: errors.New("the plug-in has no such node group")}
	}
	target, err := p.target(ctx, op, id)
	return list[at], target, err
}

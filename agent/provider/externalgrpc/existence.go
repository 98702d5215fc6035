package externalgrpc

import (
	"context"
	"errors"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

var _ provider.Witness = (*Provider)(nil)

// Instances implements provider.Witness. The protocol has no read by ID: an instance
// exists if a group lists it, or if the plug-in assigns a Node with its provider ID to a
// group. Any other instance is only known to be in no group. It may exist outside of all
// groups, so it is never reported as ended.
func (p *Provider) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	if len(ids) == 0 {
		return map[cluster.InstanceID]cluster.Testimony{}, nil
	}
	there, err := p.listed(ctx)
	if err != nil {
		return provider.Unknown(err.Error(), ids...), err
	}
	out := make(map[cluster.InstanceID]cluster.Testimony, len(ids))
	var errs []error
	for _, id := range ids {
		if group, ok := there[id]; ok {
			out[id] = cluster.Testimony{Existence: cluster.InstanceExists, Why: "group " + group + " lists it"}
			continue
		}
		group, err := p.groupOf(ctx, id)
		switch {
		case err != nil:
			out[id], errs = cluster.Testimony{Why: err.Error()}, append(errs, err)
		case group != "":
			out[id] = cluster.Testimony{Existence: cluster.InstanceExists, Why: "the plug-in assigns it to group " + group}
		default:
			out[id] = cluster.Testimony{Existence: cluster.InstanceUnclaimed, Why: "the plug-in lists it in no group"}
		}
	}
	return out, errors.Join(errs...)
}

// listed returns every instance of every group, with its group.
func (p *Provider) listed(ctx context.Context) (map[cluster.InstanceID]string, error) {
	const op = "ask for instances"
	if err := p.refresh(ctx, op, ""); err != nil {
		return nil, err
	}
	groups, err := p.list(ctx, op, "")
	if err != nil {
		return nil, err
	}
	lists, errs := make([][]*protos.Instance, len(groups)), make([]error, len(groups))
	turns := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, g := range groups {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			lists[i], errs[i] = p.instances(ctx, op, cluster.GroupID(g.GetId()))
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := map[cluster.InstanceID]string{}
	for i, g := range groups {
		for _, in := range lists[i] {
			out[cluster.InstanceID(in.GetId())] = g.GetId()
		}
	}
	return out, nil
}

// groupOf returns the group of a Node with this provider ID; "": it is in none. A plug-in
// without the method reports instances only in its lists.
func (p *Provider) groupOf(ctx context.Context, id cluster.InstanceID) (string, error) {
	answer, err := p.plugin.NodeGroupForNode(ctx, &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{ProviderID: string(id), Name: string(id)}})
	if err != nil {
		e := classify("ask for instances", "", err)
		e.Instance = id
		if unimplemented(err) || e.Kind == provider.NotFound { // some clouds of Cluster Autoscaler answer NOT_FOUND
			return "", nil
		}
		return "", e
	}
	return answer.GetNodeGroup().GetId(), nil
}

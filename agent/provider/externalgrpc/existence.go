package externalgrpc

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

var _ provider.Witness = (*Provider)(nil)

const methodForNode = "NodeGroupForNode"

// Instances implements provider.Witness as far as the protocol goes, which has no read by
// ID: an instance exists if any group lists it, or if the plug-in says of a Node with its
// provider ID that it belongs to a group. Of one that has neither it is only known that no
// group has it: it may live outside of all, so it is never said to have ended.
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
			out[id] = cluster.Testimony{Existence: cluster.InstanceExists, Why: "the plug-in says that it is of group " + group}
		default:
			out[id] = cluster.Testimony{Existence: cluster.InstanceUnclaimed, Why: "the plug-in lists it in no group"}
		}
	}
	return out, errors.Join(errs...)
}

// listed is every instance of every group, with its group.
func (p *Provider) listed(ctx context.Context) (map[cluster.InstanceID]string, error) {
	if _, err := p.client.call(ctx, methodRefresh, nil); err != nil && !unimplemented(err) {
		return nil, classify("ask for instances", "", err)
	}
	groups, err := p.list(ctx, "ask for instances")
	if err != nil {
		return nil, err
	}
	lists, errs := make([][]instance, len(groups)), make([]error, len(groups))
	turns := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, g := range groups {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			lists[i], errs[i] = read(ctx, p, "ask for instances", cluster.GroupID(g.id), methodNodes, appendText(nil, 1, g.id), readInstances)
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := map[cluster.InstanceID]string{}
	for i, g := range groups {
		for _, in := range lists[i] {
			out[cluster.InstanceID(in.id)] = g.id
		}
	}
	return out, nil
}

// groupOf asks which group a Node of this provider ID is of; empty: of none. A plug-in
// that does not have the method has only its lists to tell.
func (p *Provider) groupOf(ctx context.Context, id cluster.InstanceID) (string, error) {
	answer, err := p.client.call(ctx, methodForNode, appendMessage(nil, 1, node(string(id), string(id), nil)))
	if unimplemented(err) {
		return "", nil
	}
	if err != nil {
		e := classify("ask for instances", "", err)
		e.Instance = id
		if e.Kind == provider.NotFound {
			return "", nil // as some clouds of Cluster Autoscaler say it
		}
		return "", e
	}
	group, err := readForNode(answer)
	if err != nil {
		return "", &provider.Error{Op: "ask for instances", Instance: id, Kind: provider.Transient, Err: err}
	}
	return group, nil
}

// readForNode reads NodeGroupForNodeResponse: the ID of its group.
func readForNode(b []byte) (id string, err error) {
	err = walk(b, func(x field) error {
		if !x.is(1, protowire.BytesType) {
			return nil
		}
		return walk(x.bytes, func(y field) error {
			if y.is(1, protowire.BytesType) {
				id = string(y.bytes)
			}
			return nil
		})
	})
	return id, err
}

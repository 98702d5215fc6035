package externalgrpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// Delete makes the plug-in delete instances. See provider.Provider. Each instance has a
// call of its own: after a failed call with several it is unknown which are gone, and a
// second attempt would lower the target for these again.
func (p *Provider) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	const op = "delete"
	if len(ids) == 0 {
		return ctx.Err()
	}
	unlock, err := p.locks.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	g, target, err := p.one(ctx, op, id)
	if err != nil {
		return err
	}
	list, err := p.instances(ctx, op, id)
	if err != nil {
		return err
	}
	d := deletion{p: p, group: id, min: int(g.GetMinSize()), target: target, there: map[cluster.InstanceID]*protos.Instance{}}
	there := 0
	for _, i := range list {
		d.there[cluster.InstanceID(i.GetId())] = i
		if !isDeleting(i) && !p.told(cluster.InstanceID(i.GetId())) {
			there++
		}
	}
	if !p.settled(id, there-target) {
		return &provider.Error{Op: op, Group: id, Kind: provider.Conflict, Err: fmt.Errorf("the plug-in lists %d machines and a target of %d: its list may be older than the deletion by another agent, so it is read again for %s", there, target, toldFor)}
	}
	var errs []error
	for _, victim := range ids {
		if err := d.delete(ctx, victim); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// deletion is the state of one call of Delete.
type deletion struct {
	p      *Provider
	group  cluster.GroupID
	min    int
	target int
	there  map[cluster.InstanceID]*protos.Instance
}

func (d *deletion) delete(ctx context.Context, id cluster.InstanceID) error {
	i, listed := d.there[id]
	switch {
	case d.p.told(id), listed && isDeleting(i), !listed && d.p.was(id, d.group):
		return nil
	case !listed:
		return &provider.Error{Op: "delete", Group: d.group, Instance: id, Kind: provider.NotFound, Err: errors.New("the plug-in does not list it in the group")}
	case d.target <= d.min:
		return &provider.Error{Op: "delete", Group: d.group, Instance: id, Kind: provider.Invalid, Remedy: "lower the group's minimum in the plug-in's configuration",
			Err: fmt.Errorf("the target is %d, which is the group's minimum", d.target)}
	}
	name := string(id)
	if names := i.GetMachine().GetNodeNames(); len(names) > 0 {
		name = names[0]
	}
	request := &protos.NodeGroupDeleteNodesRequest{Nodes: []*protos.ExternalGrpcNode{{ProviderID: string(id), Name: name}}, Id: string(d.group)}
	if _, err := d.p.plugin.NodeGroupDeleteNodes(ctx, request); err != nil {
		e := unsure(classify("delete", d.group, err))
		e.Instance = id
		return e
	}
	d.target--
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	s, known := d.p.seen[id]
	if !known {
		s.first = d.p.now()
	}
	s.group, s.told, s.last = d.group, d.p.now(), d.p.now()
	d.p.seen[id] = s
	return nil
}

// settled tells whether the machines beyond a group's target are a real surplus. A list
// that is older than the target looks the same; then a machine that is already gone would
// be deleted once more, and the target would fall below the number of live machines.
func (p *Provider) settled(id cluster.GroupID, surplus int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if surplus <= 0 {
		delete(p.surplus, id)
		return true
	}
	since, known := p.surplus[id]
	if !known {
		p.surplus[id] = p.now()
	}
	return known && p.now().Sub(since) > toldFor
}

// was tells whether the plug-in has listed an instance in the group before.
func (p *Provider) was(id cluster.InstanceID, group cluster.GroupID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.seen[id]
	return ok && s.group == group
}

// told tells whether the plug-in accepted the deletion of an instance less than toldFor ago.
func (p *Provider) told(id cluster.InstanceID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seen[id]
	return !s.told.IsZero() && p.now().Sub(s.told) <= toldFor
}

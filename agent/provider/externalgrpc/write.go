package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// Resize raises the target by the difference. See provider.Provider. The protocol has no
// compare-and-set: the target is re-read right before the write, and writes of this
// process to one group wait for each other. It lowers nothing: a plug-in's list of
// machines is as old as the plug-in likes.
func (p *Provider) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	const op = "resize"
	unlock, err := p.lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	g, target, err := p.one(ctx, op, id)
	if err != nil {
		return err
	}
	switch {
	case to < g.min || to > g.max:
		return invalid(op, id, "change the group's bounds in the plug-in's configuration", "%d is outside %d..%d", to, g.min, g.max)
	case target == to:
		return nil
	case target != from:
		return &provider.Error{Op: op, Group: id, Kind: provider.Conflict, Err: fmt.Errorf("target is %d, not %d", target, from)}
	}
	if to < target {
		return invalid(op, id, "", "lowering from %d to %d could end a running machine: a plug-in lists what it read at some time before, and may not know all that live", target, to)
	}
	if _, err := p.client.call(ctx, methodIncrease, appendText(appendNumber(nil, 1, int64(to-target)), 2, g.id)); err != nil {
		return unsure(classify(op, id, err))
	}
	return nil
}

// one reads the bounds and the target of one group. Refresh comes first: most plug-ins
// answer from what they read at the last one.
func (p *Provider) one(ctx context.Context, op string, id cluster.GroupID) (nodeGroup, int, error) {
	if _, err := p.client.call(ctx, methodRefresh, nil); err != nil && !unimplemented(err) {
		return nodeGroup{}, 0, classify(op, id, err)
	}
	list, err := p.list(ctx, op)
	if err != nil {
		var e *provider.Error
		if errors.As(err, &e) {
			e.Group = id
		}
		return nodeGroup{}, 0, err
	}
	at := slices.IndexFunc(list, func(g nodeGroup) bool { return cluster.GroupID(g.id) == id })
	if at < 0 || id == "" {
		return nodeGroup{}, 0, &provider.Error{Op: op, Group: id, Kind: provider.NotFound, Err: errors.New("the plug-in has no such node group")}
	}
	target, err := read(ctx, p, op, id, methodTargetSize, appendText(nil, 1, string(id)), readTargetSize)
	return list[at], target, err
}

// told tells whether the plug-in took the order to end an instance a moment ago.
func (p *Provider) told(id cluster.InstanceID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seen[id]
	return !s.told.IsZero() && p.now().Sub(s.told) <= toldFor
}

// Delete has the plug-in end instances. See provider.Provider. Each goes in a call of
// its own: of a call with several that fails nobody could say which are gone, and the
// next attempt would lower the target for those again.
func (p *Provider) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	const op = "delete"
	if len(ids) == 0 {
		return ctx.Err()
	}
	unlock, err := p.lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	g, target, err := p.one(ctx, op, id)
	if err != nil {
		return err
	}
	list, err := read(ctx, p, op, id, methodNodes, appendText(nil, 1, g.id), readInstances)
	if err != nil {
		return err
	}
	d := deletion{p: p, group: g, target: target, there: map[cluster.InstanceID]instance{}}
	there := 0
	for _, i := range list {
		d.there[cluster.InstanceID(i.id)] = i
		if i.state != stateDeleting && !p.told(cluster.InstanceID(i.id)) {
			there++
		}
	}
	if !p.settled(id, there-target) {
		return &provider.Error{Op: op, Group: id, Kind: provider.Conflict, Err: fmt.Errorf("the plug-in lists %d machines and a target of %d: its list may be older than a deletion that another agent asked for, so it is looked at again for %s", there, target, toldFor)}
	}
	var errs []error
	for _, victim := range ids {
		if err := d.delete(ctx, victim); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// deletion is one Delete under way.
type deletion struct {
	p      *Provider
	group  nodeGroup
	target int
	there  map[cluster.InstanceID]instance
}

func (d *deletion) delete(ctx context.Context, id cluster.InstanceID) error {
	group := cluster.GroupID(d.group.id)
	i, listed := d.there[id]
	switch {
	case d.p.told(id), listed && i.state == stateDeleting, !listed && d.p.was(id, group):
		return nil
	case !listed:
		return &provider.Error{Op: "delete", Group: group, Instance: id, Kind: provider.NotFound, Err: errors.New("the plug-in does not list it in the group")}
	case d.target <= d.group.min:
		return &provider.Error{Op: "delete", Group: group, Instance: id, Kind: provider.Invalid, Remedy: "lower the group's minimum in the plug-in's configuration",
			Err: fmt.Errorf("the target is %d, which is the group's minimum", d.target)}
	}
	name := string(id)
	if len(i.facts.nodeNames) > 0 {
		name = i.facts.nodeNames[0]
	}
	request := appendText(appendMessage(nil, 1, node(string(id), name, nil)), 2, d.group.id)
	if _, err := d.p.client.call(ctx, methodDelete, request); err != nil {
		e := unsure(classify("delete", group, err))
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
	s.group, s.told, s.last = group, d.p.now(), d.p.now()
	d.p.seen[id] = s
	return nil
}

// settled tells whether the machines beyond a group's target are a true surplus: a list
// that is older than the target looks the same, and a machine that has ended would be
// ended once more, with the target lowered below those that live.
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

// was tells whether the plug-in listed an instance in the group once.
func (p *Provider) was(id cluster.InstanceID, group cluster.GroupID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.seen[id]
	return ok && s.group == group
}

package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Join makes one provider of several, by name. Groups are told apart by their IDs: one
// that two of them list is left out of both, with an error that names it. A cloud that
// cannot be read hides nothing of the others; its groups as they were last read are
// told with Stale, so that nobody takes their machines for gone.
func Join(parts map[string]Provider) Provider {
	if len(parts) == 1 {
		for _, p := range parts {
			return p
		}
	}
	return &joined{parts: parts, names: slices.Sorted(maps.Keys(parts)), last: map[string][]cluster.NodeGroup{}}
}

// joined remembers of every cloud what it last listed: who owns a group that is to be
// changed, and what is there while the cloud cannot be read.
type joined struct {
	parts map[string]Provider
	names []string

	mu   sync.Mutex
	last map[string][]cluster.NodeGroup
}

func (j *joined) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	lists, errs := make([][]cluster.NodeGroup, len(j.names)), make([]error, len(j.names))
	var wait sync.WaitGroup
	for i, name := range j.names {
		wait.Go(func() { lists[i], errs[i] = j.parts[name].Groups(ctx) })
	}
	wait.Wait()
	if !slices.ContainsFunc(lists, func(l []cluster.NodeGroup) bool { return l != nil }) && errors.Join(errs...) != nil {
		return nil, errors.Join(errs...)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	owner := map[cluster.GroupID]string{}
	out := []cluster.NodeGroup{}
	for i, name := range j.names {
		list := lists[i]
		switch {
		case list != nil:
			j.last[name] = copied(list)
		case errs[i] != nil:
			list = copied(j.last[name])
			for n := range list {
				list[n].Stale = fmt.Sprintf("provider %s cannot be read: %v", name, errs[i])
			}
		}
		for _, g := range list {
			if first, twice := owner[g.ID]; twice {
				errs = append(errs, &Error{Op: "read", Group: g.ID, Kind: Invalid, Err: fmt.Errorf("providers %s and %s both have a node group of this name", first, name),
					Remedy: "rename one of them: until then neither is scaled"})
				out = slices.DeleteFunc(out, func(o cluster.NodeGroup) bool { return o.ID == g.ID })
				continue
			}
			owner[g.ID] = name
			out = append(out, g)
		}
	}
	return out, errors.Join(errs...)
}

// copied keeps what is the caller's apart from what is remembered.
func copied(list []cluster.NodeGroup) []cluster.NodeGroup {
	out := slices.Clone(list)
	for i := range out {
		out[i].Instances = slices.Clone(out[i].Instances)
	}
	return out
}

// of finds the cloud that a group is in; a group that none has listed yet is looked for.
func (j *joined) of(ctx context.Context, op string, id cluster.GroupID) (Provider, error) {
	for look := range 2 {
		var owners []string
		j.mu.Lock()
		for _, name := range j.names {
			if slices.ContainsFunc(j.last[name], func(g cluster.NodeGroup) bool { return g.ID == id }) {
				owners = append(owners, name)
			}
		}
		j.mu.Unlock()
		switch {
		case len(owners) == 1:
			return j.parts[owners[0]], nil
		case len(owners) > 1:
			return nil, &Error{Op: op, Group: id, Kind: Invalid, Err: fmt.Errorf("providers %v have a node group of this name", owners)}
		case look == 0:
			if _, err := j.Groups(ctx); ctx.Err() != nil {
				return nil, &Error{Op: op, Group: id, Err: err}
			}
		}
	}
	return nil, &Error{Op: op, Group: id, Kind: NotFound, Err: errors.New("no provider has such a node group")}
}

func (j *joined) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	p, err := j.of(ctx, "resize", id)
	if err != nil {
		return err
	}
	return p.Resize(ctx, id, from, to)
}

func (j *joined) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	p, err := j.of(ctx, "delete", id)
	if err != nil {
		return err
	}
	return p.Delete(ctx, id, ids...)
}

package externalgrpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// atOnce is the number of groups that are read at the same time.
const atOnce = 8

// Groups implements provider.Provider: one Refresh, one list of groups, and for each
// group its target, its instances, its template, its options and its price. Narrowed by
// provider.WithOnly it asks about the named groups alone.
func (p *Provider) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if err := ctx.Err(); err != nil {
		return nil, &provider.Error{Op: "read", Err: err}
	}
	at := p.now()
	if err := p.refresh(ctx, "read", ""); err != nil {
		return nil, err
	}
	list, err := p.list(ctx, "read", "")
	if err != nil {
		return nil, err
	}
	if only := provider.Only(ctx); only != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(g *protos.NodeGroup) bool { return !slices.Contains(only, cluster.GroupID(g.GetId())) })
	}
	inventory, err := readSection(p.section())
	if err != nil {
		inventory = nil // the reader of groups.yaml has refused it and reported the error
	}
	out := make([]cluster.NodeGroup, len(list))
	errs := make([]error, len(list), len(list)+1)
	turns := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, g := range list {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			out[i], errs[i] = p.group(ctx, g, inventory, at)
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, &provider.Error{Op: "read", Err: err}
	}
	p.forget(at)
	out, mistakes := withoutConflicts(out)
	return out, errors.Join(append(errs, mistakes)...)
}

// refresh lets the plug-in renew its cache.
func (p *Provider) refresh(ctx context.Context, op string, id cluster.GroupID) error {
	if _, err := p.plugin.Refresh(ctx, &protos.RefreshRequest{}); err != nil && !unimplemented(err) {
		return classify(op, id, err)
	}
	return nil
}

// list returns the groups with their bounds.
func (p *Provider) list(ctx context.Context, op string, id cluster.GroupID) ([]*protos.NodeGroup, error) {
	answer, err := p.plugin.NodeGroups(ctx, &protos.NodeGroupsRequest{})
	if err != nil {
		return nil, classify(op, id, err)
	}
	return answer.GetNodeGroups(), nil
}

// target returns the target of a group.
func (p *Provider) target(ctx context.Context, op string, id cluster.GroupID) (int, error) {
	answer, err := p.plugin.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: string(id)})
	if err != nil {
		return 0, classify(op, id, err)
	}
	return int(answer.GetTargetSize()), nil
}

// instances returns the instances of a group.
func (p *Provider) instances(ctx context.Context, op string, id cluster.GroupID) ([]*protos.Instance, error) {
	answer, err := p.plugin.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: string(id)})
	if err != nil {
		return nil, classify(op, id, err)
	}
	return answer.GetInstances(), nil
}

// group reads one group. A failed call makes the facts of its kind stale.
func (p *Provider) group(ctx context.Context, g *protos.NodeGroup, inventory map[string]facts, at time.Time) (cluster.NodeGroup, error) {
	id := cluster.GroupID(g.GetId())
	out := cluster.NodeGroup{ID: id, Min: int(g.GetMinSize()), Max: int(g.GetMaxSize()), ReadAt: at}
	var errs []error
	fail := func(err error) {
		errs = append(errs, err)
		if out.Stale == "" {
			out.Stale = err.Error()
		}
	}
	if id == "" || out.Min < 0 || out.Max < out.Min {
		fail(invalid("read", id, "correct the plug-in's configuration", "the plug-in lists a group %q with bounds %d..%d", id, out.Min, out.Max))
		return out, errors.Join(errs...)
	}
	target, err := p.target(ctx, "read", id)
	if err == nil && target < 0 {
		err = invalid("read", id, "correct the plug-in", "the plug-in reports a target of %d", target)
	}
	if err != nil {
		fail(err)
	}
	out.Target = target
	instances, err := p.instances(ctx, "read", id)
	if err != nil {
		fail(err)
	}
	if err := p.describe(ctx, &out); err != nil {
		errs = append(errs, err)
		out.TemplateStale = err.Error()
	}
	p.fill(&out, instances, inventory, at)
	return out, errors.Join(errs...)
}

// withoutConflicts leaves out groups that are listed twice, and makes two groups stale that
// list the same instance: a deletion from one would be a deletion from the other.
func withoutConflicts(list []cluster.NodeGroup) ([]cluster.NodeGroup, error) {
	var errs []error
	count := map[cluster.GroupID]int{}
	owner := map[cluster.InstanceID]int{}
	for n := range list {
		g := &list[n]
		count[g.ID]++
		for _, i := range g.Instances {
			first, twice := owner[i.ID]
			if !twice {
				owner[i.ID] = n
				continue
			}
			err := invalid("read", g.ID, "correct the plug-in", "instance %s is in group %s as well", i.ID, list[first].ID)
			errs = append(errs, err)
			for _, s := range []*cluster.NodeGroup{g, &list[first]} {
				s.Stale = or(s.Stale, err.Error())
			}
		}
	}
	for id, n := range count {
		if n > 1 {
			errs = append(errs, invalid("read", id, "correct the plug-in", "the plug-in lists %d groups with this ID", n))
		}
	}
	return slices.DeleteFunc(list, func(g cluster.NodeGroup) bool { return g.ID == "" || count[g.ID] > 1 }), errors.Join(errs...)
}

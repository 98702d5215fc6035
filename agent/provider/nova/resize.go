package nova

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// Resize makes the servers that are missing. See provider.Provider. The servers are
// counted right before, and writes of this process to one group wait for each other;
// the agents of several control planes write only while they lead.
//
// If only some of several servers are created, the error has their number, and the next
// read counts them.
func (p *Provider) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	const op = "resize"
	unlock, err := p.locks.Lock(ctx, op, id)
	if err != nil {
		return err
	}
	defer unlock()
	sec, g, s, err := p.find(op, id)
	if err != nil {
		return err
	}
	servers, err := s.owned(ctx, sec.Cluster)
	if err != nil {
		return openstack.Classify(op, id, err)
	}
	if s.lags(g, servers) {
		return &provider.Error{Op: op, Group: id, Kind: provider.Conflict, Err: errors.New("the list of servers does not show the newest servers yet")}
	}
	target, inZone := 0, map[string]int{}
	for i := range servers {
		one := &servers[i]
		if one.Metadata[metaGroup] != g.Name || one.leaving() {
			continue
		}
		target++
		inZone[one.Metadata[metaZone]]++
		if one.failed() {
			if f := one.failure(); f.Cause == cluster.CauseCapacity {
				s.note(groupPlacement{g.Name, one.Metadata[metaFlavor], one.Metadata[metaZone]}, f.At)
			}
		}
	}
	switch {
	case to < g.Min || to > g.Max:
		return invalid(op, id, "change min and max of the group in groups.yaml", "%d is outside %d..%d", to, g.Min, g.Max)
	case target == to:
		return nil
	case target != from:
		return &provider.Error{Op: op, Group: id, Kind: provider.Conflict, Err: fmt.Errorf("target is %d, not %d", target, from)}
	case to < target:
		return invalid(op, id, "", "%d is below its %d servers, and Resize never removes one", to, target)
	}
	if err := p.create(ctx, s, sec.Cluster, g, to-target, inZone); err != nil {
		return fmt.Errorf("%w", err)
	}
	return nil
}

// create makes n servers, some at a time, and stops asking when one is refused.
func (p *Provider) create(ctx context.Context, s *site, of string, g *section.Group, n int, inZone map[string]int) error {
	id := cluster.GroupID(g.Name)
	order, err := p.order(ctx, s, of, g)
	if err != nil {
		return openstack.Classify("resize", id, err)
	}
	placements := make([]placement, n)
	for i := range placements {
		placements[i], _ = s.choose(g, inZone)
		inZone[placements[i].zone]++
	}
	if err := s.room(ctx, placements); err != nil {
		return openstack.Classify("resize", id, err)
	}
	s.sweep(ctx, of, g)
	errs := make([]error, n)
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		stop bool
	)
	turn := make(chan struct{}, p.cfg.ParallelCreates)
	for i, w := range placements {
		turn <- struct{}{}
		mu.Lock()
		over := stop
		mu.Unlock()
		if over || ctx.Err() != nil {
			<-turn
			errs[i] = errNotAsked
			continue
		}
		wait.Go(func() {
			defer func() { <-turn }()
			if errs[i] = p.createOne(ctx, s, order, w); errs[i] != nil {
				mu.Lock()
				stop = true
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return short(id, n, errs, ctx.Err())
}

var errNotAsked = errors.New("not asked for")

// short is the error of a Resize that made fewer servers than it should: the first
// refusal, with how many came.
func short(id cluster.GroupID, n int, errs []error, ended error) error {
	made := 0
	var cause error
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case errors.Is(err, errNotAsked):
		case cause == nil:
			cause = err
		}
	}
	if made == n {
		return nil
	}
	if cause == nil {
		cause = ended
	}
	e := openstack.Classify("resize", id, cause)
	e.Unsure = slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, errNotAsked) && unsure(err) })
	if made > 0 {
		e.Err = fmt.Errorf("%d of %d servers were made: %w", made, n, e.Err)
	}
	return e
}

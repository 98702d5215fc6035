package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// atOnce is how many groups are read at the same time.
const atOnce = 8

// Groups implements provider.Provider: one Refresh, one list of groups, and for each
// group its target, its instances, its template, its options and its price.
func (p *Provider) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if err := ctx.Err(); err != nil {
		return nil, &provider.Error{Op: "read", Err: err}
	}
	at := p.now()
	if _, err := p.client.call(ctx, methodRefresh, nil); err != nil && !unimplemented(err) {
		return nil, classify("read", "", err)
	}
	list, err := p.list(ctx, "read")
	if err != nil {
		return nil, err
	}
	inventory, err := readSection(p.section())
	if err != nil {
		inventory = nil // the file's reader has refused it, and says so
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
	out, mistakes := apart(out)
	return out, errors.Join(append(errs, mistakes)...)
}

func unimplemented(err error) bool {
	var s *status
	return errors.As(err, &s) && s.code == codeUnimplemented
}

func (p *Provider) list(ctx context.Context, op string) ([]nodeGroup, error) {
	return read(ctx, p, op, "", methodNodeGroups, nil, readNodeGroups)
}

// group reads one group. What fails makes that kind of facts stale, with an error.
func (p *Provider) group(ctx context.Context, g nodeGroup, inventory map[string]facts, at time.Time) (cluster.NodeGroup, error) {
	id := cluster.GroupID(g.id)
	out := cluster.NodeGroup{ID: id, Min: g.min, Max: g.max, ReadAt: at}
	var errs []error
	fail := func(err error) {
		errs = append(errs, err)
		if out.Stale == "" {
			out.Stale = err.Error()
		}
	}
	if g.id == "" || g.min < 0 || g.max < g.min {
		fail(invalid("read", id, "mend the plug-in's configuration", "the plug-in lists a group %q with bounds %d..%d", g.id, g.min, g.max))
		return out, errors.Join(errs...)
	}
	asked := appendText(nil, 1, g.id)
	target, err := read(ctx, p, "read", id, methodTargetSize, asked, readTargetSize)
	if err == nil && target < 0 {
		err = invalid("read", id, "mend the plug-in", "the plug-in tells a target of %d", target)
	}
	if err != nil {
		fail(err)
	}
	out.Target = target
	instances, err := read(ctx, p, "read", id, methodNodes, asked, readInstances)
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

// sightLag is how long before its first sight here an instance may have been launched:
// a machine that asks for a certificate at once is seen only when that is looked into.
const sightLag = 10 * time.Second

// fill turns the plug-in's instances into the contract's.
func (p *Provider) fill(g *cluster.NodeGroup, list []instance, inventory map[string]facts, at time.Time) {
	warn := func(format string, args ...any) { g.Warnings = append(g.Warnings, fmt.Sprintf(format, args...)) }
	typ := g.Template.Labels["node.kubernetes.io/instance-type"]
	known := map[string]bool{}
	for _, i := range list {
		if i.id == "" || known[i.id] {
			warn("the plug-in lists an instance twice or without an ID (%q): it was left out", i.id)
			continue
		}
		known[i.id] = true
		s := p.see(g.ID, i, at)
		f, own := inventory[i.id]
		if !own {
			f = i.facts
		} else if f.created.IsZero() {
			f.created = s.first.Add(-sightLag) // a request that is older than that is held, which is safe
		}
		if f.failedAt.IsZero() {
			f.failedAt = s.failed
		}
		in := cluster.Instance{ID: cluster.InstanceID(i.id), Phase: phaseOf(i), Created: f.created, Type: or(f.typ, typ), Zone: f.zone, Member: true}
		if !s.told.IsZero() && in.Phase != cluster.PhaseDeleting {
			in.Phase = cluster.PhaseDeleting
		}
		for _, n := range f.nodeNames {
			in.NodeNames = append(in.NodeNames, strings.ToLower(n))
		}
		in.Names = slices.Clone(in.NodeNames)
		for _, n := range f.names {
			if n = strings.ToLower(n); !slices.Contains(in.Names, n) {
				in.Names = append(in.Names, n)
			}
		}
		for _, a := range f.addresses {
			ip, err := netip.ParseAddr(a)
			if err != nil || ip.Zone() != "" {
				warn("instance %s: the plug-in tells an address %q, which is none", i.id, a)
				continue
			}
			in.Addresses = append(in.Addresses, ip.Unmap())
		}
		if in.Phase == cluster.PhaseFailed {
			in.Failure = &cluster.Failure{Cause: causeOf(i), Text: failureText(i), Zone: f.zone, At: f.failedAt}
			g.Failures = append(g.Failures, *in.Failure)
		}
		g.Instances = append(g.Instances, in)
	}
	slices.SortStableFunc(g.Failures, func(a, b cluster.Failure) int { return b.At.Compare(a.At) })
}

func failureText(i instance) string {
	if i.message == "" {
		return i.code
	}
	return i.code + ": " + i.message
}

// phaseOf reads a state. One that is unspecified is taken for running, as Cluster
// Autoscaler takes it, and an error counts only while the instance is being made: a
// machine that runs is told by its Node.
func phaseOf(i instance) cluster.Phase {
	switch {
	case i.state == stateDeleting:
		return cluster.PhaseDeleting
	case i.state == stateCreating && i.code != "":
		return cluster.PhaseFailed
	case i.state == stateCreating:
		return cluster.PhasePending
	case i.state == stateRunning, i.state == stateUnspecified:
		return cluster.PhaseRunning
	}
	return cluster.PhaseUnknown
}

// see takes down that an instance is listed.
func (p *Provider) see(group cluster.GroupID, i instance, at time.Time) sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := cluster.InstanceID(i.id)
	s, ok := p.seen[id]
	if !ok {
		s.first = at
	}
	if i.code == "" {
		s.failed = time.Time{}
	} else if s.failed.IsZero() {
		s.failed = at
	}
	if !s.told.IsZero() && at.Sub(s.told) > toldFor && i.state != stateDeleting {
		s.told = time.Time{} // it was told, and did not do it
	}
	s.group, s.last = group, at
	p.seen[id] = s
	return s
}

// forget drops what has not been listed for long.
func (p *Provider) forget(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.seen {
		if at.Sub(s.last) > seenFor {
			delete(p.seen, id)
		}
	}
}

// apart leaves out groups whose name stands twice, and makes those stale that both claim
// an instance: whoever deleted from one would delete from the other.
func apart(list []cluster.NodeGroup) ([]cluster.NodeGroup, error) {
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
			err := invalid("read", g.ID, "mend the plug-in", "instance %s is in group %s as well", i.ID, list[first].ID)
			errs = append(errs, err)
			for _, s := range []*cluster.NodeGroup{g, &list[first]} {
				s.Stale = or(s.Stale, err.Error())
			}
		}
	}
	for id, n := range count {
		if n > 1 {
			errs = append(errs, invalid("read", id, "mend the plug-in", "the plug-in lists %d groups of this name", n))
		}
	}
	return slices.DeleteFunc(list, func(g cluster.NodeGroup) bool { return g.ID == "" || count[g.ID] > 1 }), errors.Join(errs...)
}

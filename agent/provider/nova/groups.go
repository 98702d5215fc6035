package nova

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// Groups reads all groups. See provider.Provider. It lists the servers of each cloud
// twice (those that build or failed, those with the cluster's tag) and asks by ID after
// servers that are no longer listed; flavors and images are read when their facts are
// old.
func (p *Provider) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	s, err := p.settings()
	if err != nil {
		return nil, err
	}
	lists, errs, blind := make([][]cluster.NodeGroup, len(s.Clouds)), make([]error, len(s.Clouds)), make([]bool, len(s.Clouds))
	var wait sync.WaitGroup
	for i, c := range s.Clouds {
		mine := slices.DeleteFunc(slices.Clone(s.Groups), func(g section.Group) bool { return g.Cloud != c.Name })
		wait.Go(func() { lists[i], blind[i], errs[i] = p.readCloud(ctx, s.Cluster, c, mine) })
	}
	wait.Wait()
	if err := ctx.Err(); err != nil || len(s.Groups) > 0 && !slices.Contains(blind, false) {
		return nil, errors.Join(append(errs, err)...)
	}
	out := []cluster.NodeGroup{}
	for _, list := range lists {
		out = append(out, list...)
	}
	return out, errors.Join(errs...)
}

// readCloud reads the groups of one cloud. blind is true if nothing at all could be read:
// the groups are returned with Stale, so that no caller takes their machines for gone.
func (p *Provider) readCloud(ctx context.Context, of string, c section.Cloud, groups []section.Group) (out []cluster.NodeGroup, blind bool, err error) {
	if len(groups) == 0 {
		return nil, true, nil // no group is in this cloud
	}
	var errs []error
	at := p.now()
	s, err := p.site(c)
	var servers []server
	if err == nil {
		servers, err = s.owned(ctx, of)
	}
	if err != nil {
		for _, g := range groups {
			e := openstack.Classify("read", cluster.GroupID(g.Name), err)
			errs = append(errs, e)
			out = append(out, cluster.NodeGroup{ID: e.Group, Min: g.Min, Max: g.Max, Price: g.Price, Stale: e.Error(), TemplateStale: e.Error(), ReadAt: at, Template: cluster.Template{Unknown: e.Error()}})
		}
		return out, true, errors.Join(errs...)
	}
	servers, doubt := s.missed(ctx, of, servers)
	names := map[string]string{}
	if list, err := s.allFlavors(ctx); err == nil {
		for _, f := range list {
			names[f.ID] = f.Name
		}
	}
	for i := range groups {
		g, err := p.readGroup(ctx, s, &groups[i], servers, names)
		g.ReadAt = at
		if err != nil {
			g.TemplateStale = err.Error()
			errs = append(errs, err)
		}
		if doubt != nil {
			e := openstack.Classify("read", g.ID, doubt)
			g.Stale = e.Error()
			errs = append(errs, e)
		}
		out = append(out, g)
	}
	if len(out) > 0 {
		out[0].Warnings = append(out[0].Warnings, strays(groups, servers)...)
	}
	return out, false, errors.Join(errs...)
}

// readGroup puts one group together. The error is why its template cannot be read now.
func (p *Provider) readGroup(ctx context.Context, s *site, g *section.Group, servers []server, names map[string]string) (cluster.NodeGroup, error) {
	out := cluster.NodeGroup{ID: cluster.GroupID(g.Name), Min: g.Min, Max: g.Max, Price: g.Price, Quota: s.quotaName(), Declared: true}
	out.Pool, out.PoolMax = g.Pool()
	failed := 0
	for i := range servers {
		one := &servers[i]
		if one.Metadata[metaGroup] != g.Name {
			continue
		}
		in := s.instance(one, names)
		if in.Member {
			out.Target++
		}
		if in.Failure != nil {
			failed++
			p.learn(s, g, one, in)
		}
		out.Instances = append(out.Instances, in)
	}
	s.mu.Lock()
	for _, d := range s.gone {
		if d.server.Metadata[metaGroup] == g.Name {
			in := s.instance(&d.server, names)
			in.Phase, in.Member, in.Failure = cluster.PhaseGone, false, nil
			out.Instances = append(out.Instances, in)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(out.Instances, func(a, b cluster.Instance) int { return strings.Compare(string(a.ID), string(b.ID)) })
	shareSources(out.Instances)
	var err *provider.Error
	out.Template, out.Warnings, err = p.template(ctx, s, g)
	// A server that failed stands in the way of the minimum until it is deleted, and a
	// group is not shrunk below its minimum: the minimum gives way.
	if alive := out.Target - failed; failed > 0 && alive < g.Min {
		out.Min = alive
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d of its servers failed, which leaves the group below its minimum of %d: the agent deletes them and then makes new ones", failed, g.Min))
	}
	if err != nil && err.Kind != provider.Invalid && err.Kind != provider.NotFound {
		return out, err
	}
	return out, nil
}

// learn remembers a placement for which Nova found no host. A failure that another flavor
// or zone may repair is returned without a time: it is no reason for a backoff of the group.
func (p *Provider) learn(s *site, g *section.Group, one *server, in cluster.Instance) {
	if in.Failure.Cause != cluster.CauseCapacity {
		return
	}
	s.note(groupPlacement{g.Name, one.Metadata[metaFlavor], one.Metadata[metaZone]}, in.Failure.At)
	if next, ok := s.choose(g, nil); ok && len(placementsOf(g)) > 1 {
		in.Failure.Text += fmt.Sprintf("; %s is tried next", next)
		in.Failure.At = time.Time{}
	}
}

// quotaName is different for groups of different clouds: each has its own quotas.
func (s *site) quotaName() string {
	if s.cloud.Cloud == "" && s.cloud.Region == "" {
		return ""
	}
	return s.cloud.Cloud + "/" + s.cloud.Region
}

// strays are servers of this cluster in groups that the section does not list.
func strays(groups []section.Group, servers []server) []string {
	count := map[string]int{}
	for i := range servers {
		name := servers[i].Metadata[metaGroup]
		if !servers[i].leaving() && !slices.ContainsFunc(groups, func(g section.Group) bool { return g.Name == name }) {
			count[name]++
		}
	}
	var out []string
	for name, n := range count {
		out = append(out, fmt.Sprintf("%d servers belong to the group %q, which groups.yaml does not have for this cloud, so the agent does not scale them: add the group again, or delete the servers", n, name))
	}
	slices.Sort(out)
	return out
}

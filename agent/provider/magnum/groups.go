package magnum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// reading is one node group while it is read.
type reading struct {
	nodeGroup
	byName  bool            // AUTOSCALER_MAGNUM_GROUPS names it
	kept    *kept           // it was not read by itself; nil: it was
	others  []string        // names of the cluster's other groups
	err     *provider.Error // it could not be read by itself
	members membership
}

// Groups reads all groups. See provider.Provider. It makes one request for the cluster,
// one for the list, one per group (the list lies about bounds), one per thousand servers
// of the project, and one per group to Heat (more the first time); flavors are asked for
// every ten minutes. Of groups at rest those per group are left out as far as
// provider.WithRepeated allows.
func (p *Provider) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	api, err := p.api(ctx)
	if err != nil {
		return nil, openstack.Classify("read", "", err)
	}
	at := p.now()
	c, err := p.cluster(ctx, api, "read")
	if err != nil {
		return nil, err
	}
	list, listed, _, err := p.discover(ctx, api, c)
	if err != nil {
		return nil, err
	}
	if open := p.open(); !slices.ContainsFunc(list, func(r reading) bool { return r.UUID == open }) {
		p.forget(open)
	}
	all, cause := p.inventory(ctx)
	p.readMembers(ctx, c, list, all, cause)

	whole := make([]*nodeGroup, 0, len(list))
	for i := range list {
		if list[i].err == nil {
			whole = append(whole, &list[i].nodeGroup)
		}
	}
	v := p.look(at, c, listed, whole...)
	out := make([]cluster.NodeGroup, 0, len(list))
	var errs []error
	for i := range list {
		g, problems := p.group(ctx, c, &list[i], v)
		g.ReadAt = at
		out = append(out, g)
		errs = append(errs, problems...)
	}
	return out, errors.Join(errs...)
}

// readMembers finds the servers of every group; cause is why there is no inventory.
func (p *Provider) readMembers(ctx context.Context, c *magnumCluster, list []reading, all []servers.Server, cause error) {
	var wait sync.WaitGroup
	for i := range list {
		r := &list[i]
		if r.err != nil {
			continue
		}
		if cause != nil {
			r.members.err = openstack.Classify("list the servers of", cluster.GroupID(r.Name), cause)
			continue
		}
		wait.Go(func() {
			r.members = p.membersOf(ctx, c, r, all)
			p.bury(ctx, r.UUID, &r.members)
		})
	}
	wait.Wait()
}

// group builds one group from its reads.
func (p *Provider) group(ctx context.Context, c *magnumCluster, r *reading, v view) (cluster.NodeGroup, []error) {
	g := cluster.NodeGroup{ID: cluster.GroupID(r.Name)}
	var errs []error
	stale := func(e *provider.Error) {
		errs = append(errs, e)
		if g.Stale == "" {
			g.Stale = e.Error()
		}
	}
	if r.err != nil {
		g.Target, g.TemplateStale, g.FailuresStale = r.NodeCount, r.err.Error(), r.err.Error()
		stale(r.err)
		return g, errs
	}
	h := parseHints(r.Labels)
	g.Options, g.Warnings = h.options, h.warnings
	var warnings []string
	g.Min, g.Max, warnings = p.bounds(&r.nodeGroup)
	g.Warnings = append(g.Warnings, warnings...)
	t, warnings, e := p.template(ctx, &r.nodeGroup, h)
	g.Template, g.Warnings = t, append(g.Warnings, warnings...)
	if e != nil {
		errs = append(errs, e)
		g.TemplateStale = e.Error()
	}
	if r.members.err != nil {
		stale(r.members.err)
	}
	p.population(c, r, v, &g)
	if r.members.err == nil && r.members.by == none && g.Target > 0 && r.members.unproven > 0 && v.busy == "" {
		stale(&provider.Error{Op: "read", Group: g.ID, Kind: provider.Invalid, Err: untold(r)})
	}
	g.Paused, g.Busy = shut(c, &r.nodeGroup), v.busy
	g.Failures = failures(r)
	if v.lost != "" {
		g.Warnings = append(g.Warnings, v.lost)
	}
	if !p.removesByName(c, &r.nodeGroup) {
		g.Warnings = append(g.Warnings, ignoresNames)
	}
	slices.Sort(g.Warnings)
	return g, errs
}

const ignoresNames = "the driver of this cluster ignores which node is to be removed (magnum-capi-helm does), so nothing is removed: let the provider clusterapi scale it down from its management cluster, or set AUTOSCALER_MAGNUM_REMOVES_BY_NAME=yes where the driver is known to honour names"

// population fills in target and instances.
func (p *Provider) population(c *magnumCluster, r *reading, v view, g *cluster.NodeGroup) {
	types := p.types()
	for _, s := range r.members.servers {
		g.Instances = append(g.Instances, p.instance(s, v, types))
	}
	for _, uuid := range r.members.gone {
		g.Instances = append(g.Instances, cluster.Instance{ID: providerID(uuid), Phase: cluster.PhaseGone})
	}
	slices.SortFunc(g.Instances, func(a, b cluster.Instance) int { return strings.Compare(string(a.ID), string(b.ID)) })
	g.Target = v.target(&r.nodeGroup)
	if p.delivered(r, v) {
		g.Target = min(g.Target, r.members.living(v))
	}
	if found := r.members.living(v); r.members.err == nil && found < g.Target && strings.HasSuffix(r.Status, "_COMPLETE") && v.busy == "" {
		g.Warnings = append(g.Warnings, fmt.Sprintf("Magnum counts %d nodes and %d servers are there", g.Target, found))
	}
}

// living is how many servers of the group are there and not on their way out; one in
// ERROR is there.
func (m membership) living(v view) int {
	n := 0
	for _, s := range m.servers {
		if phase := phaseOf(s); phase != cluster.PhaseGone && phase != cluster.PhaseDeleting && !v.going(openstack.UUID(s.ID)) {
			n++
		}
	}
	return n
}

// delivered reports whether no operation is under way and that Magnum will not bring the
// nodes that it counts and that are not there: it tries once. The nodes that are there
// are the target then, so that asking for more asks Magnum again.
func (p *Provider) delivered(r *reading, v view) bool {
	if r.members.err != nil || v.asked != nil && v.asked.group == r.UUID || strings.HasSuffix(r.Status, inProgress) {
		return false
	}
	return r.members.by == heat || r.members.sure && strings.HasSuffix(r.Status, failedSuffix)
}

// bounds are the group's own, narrowed by those that the configuration gives for it.
// Magnum itself refuses a node count outside its own bounds.
func (p *Provider) bounds(g *nodeGroup) (lo, hi int, warnings []string) {
	lo = g.MinNodeCount
	n, byName := nameFor(p.names, g)
	switch {
	case g.MaxNodeCount != nil:
		hi = *g.MaxNodeCount
	case byName && n.max >= 0:
		hi = n.max
	default:
		return g.NodeCount, g.NodeCount, []string{"it has no max_node_count, so it is left as it is: openstack coe nodegroup update " + g.Name + " replace max_node_count=10, or name it as min:max:name in AUTOSCALER_MAGNUM_GROUPS"}
	}
	if !byName || n.min < 0 {
		return lo, hi, nil
	}
	wantLo, wantHi := max(lo, n.min), min(hi, n.max)
	switch {
	case wantLo > wantHi:
		return lo, hi, []string{fmt.Sprintf("AUTOSCALER_MAGNUM_GROUPS gives %d:%d, the group itself allows %d:%d: no size fits both, the group's own bounds hold", n.min, n.max, lo, hi)}
	case n.min < lo || n.max > hi:
		return wantLo, wantHi, []string{fmt.Sprintf("AUTOSCALER_MAGNUM_GROUPS gives %d:%d, the group itself allows %d:%d; the narrower bounds hold", n.min, n.max, lo, hi)}
	}
	return wantLo, wantHi, nil
}

// failures are Magnum's own account of the group's last operation, while it stands as
// failed: the next one that works takes it away.
func failures(r *reading) []cluster.Failure {
	if !strings.HasSuffix(r.Status, failedSuffix) {
		return nil
	}
	text := openstack.Message([]byte(r.StatusReason))
	cause := openstack.CauseOf(text)
	if why := openstack.Message([]byte(r.members.why)); why != "" && (text == "" || cause == cluster.CauseOther) {
		text, cause = why, openstack.CauseOf(why)
	}
	if text == "" {
		text = "Magnum does not say why"
	}
	return []cluster.Failure{{Cause: cause, Text: r.Status + ": " + text, At: later(r.UpdatedAt, r.CreatedAt)}}
}

package magnum

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/containerinfra/v1/nodegroups"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// discover lists the node groups that are ours by the fields of the list (names, roles;
// its bounds are wrong), reads each by itself, and drops those of a role that have no
// maximum, which it names in skipped. A group that could not be read has only its
// name, and an error. list is what Magnum lists, also what is not ours.
func (p *Provider) discover(ctx context.Context, api *gophercloud.ServiceClient, c *magnumCluster) (out []reading, list []nodeGroup, skipped []string, err error) {
	if list, err = p.list(ctx, api, c); err != nil {
		return nil, nil, nil, openstack.Classify("read", "", err)
	}
	for _, g := range list {
		_, byName := nameFor(p.names, &g)
		if g.Role != masterRole && g.Status != "DELETE_COMPLETE" && (byName || slices.Contains(p.roles, g.Role)) {
			out = append(out, reading{nodeGroup: g, byName: byName})
		}
	}
	for i := range out {
		out[i].others = others(list, out[i].Name)
	}
	at, rest := p.now(), p.atRest(c, list)
	p.dropKept(rest, list)
	var wait sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range out {
		if k := p.keptOf(ctx, &out[i].nodeGroup); rest && k != nil {
			out[i].nodeGroup, out[i].kept = k.whole, k
			continue
		}
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			g, err := group(ctx, api, c, out[i].UUID)
			if err != nil {
				out[i].err = openstack.Classify("read", cluster.GroupID(out[i].Name), err)
				return
			}
			if rest {
				p.keep(at, &out[i].nodeGroup, g)
			}
			out[i].nodeGroup = *g
		})
	}
	wait.Wait()
	out = slices.DeleteFunc(out, func(r reading) bool {
		// Gone between the list and the read.
		if r.err != nil && r.err.Kind == provider.NotFound {
			return true
		}
		if r.err == nil && !r.byName && r.MaxNodeCount == nil {
			skipped = append(skipped, r.Name)
			return true
		}
		return false
	})
	return out, list, skipped, nil
}

func (p *Provider) list(ctx context.Context, api *gophercloud.ServiceClient, c *magnumCluster) ([]nodeGroup, error) {
	pages, err := nodegroups.List(api, c.UUID, nil).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	list, err := nodegroups.ExtractNodeGroups(pages)
	if err == nil && !slices.ContainsFunc(list, func(g nodeGroup) bool { return g.Role == masterRole }) {
		return nil, errHollow // every cluster has master nodes
	}
	return list, err
}

// group reads one group whole.
func group(ctx context.Context, api *gophercloud.ServiceClient, c *magnumCluster, ident string) (*nodeGroup, error) {
	g, err := nodegroups.Get(ctx, api, c.UUID, url.PathEscape(ident)).Extract()
	if err == nil && (g == nil || g.UUID == "") {
		return nil, errHollow
	}
	return g, err
}

// others are the names of the groups but one.
func others(list []nodeGroup, name string) []string {
	var out []string
	for _, g := range list {
		if g.Name != name {
			out = append(out, g.Name)
		}
	}
	return out
}

// one reads a single group by its name; it is NotFound where it is not ours.
func (p *Provider) one(ctx context.Context, api *gophercloud.ServiceClient, c *magnumCluster, op string, id cluster.GroupID) (*nodeGroup, error) {
	if id == "" || strings.ContainsAny(string(id), "/?#") {
		return nil, fail(op, id, provider.NotFound, "", "no such node group in cluster %s", p.cfg.Cluster)
	}
	g, err := group(ctx, api, c, string(id))
	if err != nil {
		return nil, openstack.Classify(op, id, err)
	}
	_, byName := nameFor(p.names, g)
	if g.Role == masterRole || g.Name != string(id) || !byName && (!slices.Contains(p.roles, g.Role) || g.MaxNodeCount == nil) {
		return nil, fail(op, id, provider.NotFound, "", "the agent does not manage this node group")
	}
	return g, nil
}

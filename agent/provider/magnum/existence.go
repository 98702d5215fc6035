package magnum

import (
	"context"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

var _ provider.Witness = (*Provider)(nil)

// Instances implements provider.Witness: a node of a Magnum cluster is a server of Nova,
// whatever Magnum and Heat still count.
func (p *Provider) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	strange := map[cluster.InstanceID]cluster.Testimony{}
	servers := map[cluster.InstanceID]string{}
	for _, id := range ids {
		uuid, ok := parseProviderID(id)
		rest, ours := strings.CutPrefix(string(id), "openstack://")
		region, _, _ := strings.Cut(rest, "/")
		switch {
		case !ours:
		case !ok:
			strange[id] = cluster.Testimony{Why: "the provider ID names no server: it has no UUID"}
		case strings.Contains(rest, "/") && region != "" && p.session.Region() != "" && region != p.session.Region():
			strange[id] = cluster.Testimony{Why: "the provider ID names region " + region + ", and the agent asks region " + p.session.Region()}
		default:
			servers[id] = uuid
		}
	}
	out, err := openstack.AskSite(ctx, servers, func(ctx context.Context) (*gophercloud.ServiceClient, error) {
		return p.session.Service(ctx, "compute", "")
	})
	for id, one := range strange {
		out[id] = one
	}
	return out, err
}

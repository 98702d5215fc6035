package nova

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

var _ provider.Witness = (*Provider)(nil)

// Instances implements provider.Witness by GET /servers/UUID in every cloud of the
// section; an ID with a region is asked for in that region alone. A server exists if any
// cloud has it, with our metadata or without, and has ended only if none does and all
// have said so.
func (p *Provider) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	out := map[cluster.InstanceID]cluster.Testimony{}
	uuids := map[cluster.InstanceID]string{}
	for _, id := range ids {
		if !strings.HasPrefix(string(id), "openstack://") {
			continue
		}
		if uuids[id] = serverID(id); uuids[id] == "" {
			delete(uuids, id)
			out[id] = cluster.Testimony{Why: "the provider ID names no server: it has no UUID"}
		}
	}
	if len(uuids) == 0 {
		return out, nil
	}
	sec, err := p.settings()
	if err != nil {
		return merge(out, provider.Unknown(err.Error(), keys(uuids)...)), err
	}
	for id := range uuids {
		out[id] = cluster.Testimony{Why: fmt.Sprintf("none of the clouds of section nova is in region %q", regionIn(id))}
	}
	var errs []error
	asked := map[cluster.InstanceID]bool{}
	for _, c := range sec.Clouds {
		s, err := p.site(c)
		if err != nil {
			errs = append(errs, openstack.Classify("ask for instances", "", err))
			said := provider.Unknown(err.Error(), keys(uuids)...)
			for id, one := range said {
				out[id] = surest(out[id], one, asked[id])
				asked[id] = true
			}
			continue
		}
		here := map[cluster.InstanceID]string{}
		for id, uuid := range uuids {
			if r := regionIn(id); r == "" || s.region() == "" || r == s.region() {
				here[id] = uuid
			}
		}
		said, err := openstack.AskSite(ctx, here, func(ctx context.Context) (*gophercloud.ServiceClient, error) {
			c, _, err := s.nova(ctx)
			return c, err
		})
		errs = append(errs, err)
		for id, one := range said {
			out[id] = surest(out[id], one, asked[id])
			asked[id] = true
		}
	}
	return out, errors.Join(errs...)
}

// surest joins the testimonies of two clouds on one server; before reports whether was is
// one of them.
func surest(was, now cluster.Testimony, before bool) cluster.Testimony {
	order := map[cluster.Existence]int{cluster.InstanceExists: 3, cluster.ExistenceUnknown: 2, cluster.InstanceTerminated: 1}
	if !before || order[now.Existence] > order[was.Existence] {
		return now
	}
	return was
}

// regionIn is the region that a provider ID names; empty: none.
func regionIn(id cluster.InstanceID) string {
	rest := strings.TrimPrefix(string(id), "openstack://")
	return rest[:max(strings.LastIndexByte(rest, '/'), 0)]
}

func keys(m map[cluster.InstanceID]string) []cluster.InstanceID {
	out := make([]cluster.InstanceID, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	return out
}

func merge(a, b map[cluster.InstanceID]cluster.Testimony) map[cluster.InstanceID]cluster.Testimony {
	for id, one := range b {
		a[id] = one
	}
	return a
}

package nova

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// Delete deletes servers by name, with the ports and floating IPs that were made for
// them; their boot volumes go with them. See provider.Provider: the target is the number
// of servers, so it falls by itself.
//
// A server that never ran is deleted even where the group is at its minimum: it is no
// machine.
func (p *Provider) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	const op = "delete"
	if len(ids) == 0 {
		return ctx.Err()
	}
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
	d := &deletion{site: s, cluster: sec.Cluster, group: g, servers: map[string]*server{}, done: map[string]string{}, others: p.others(sec, s)}
	for i := range servers {
		if one := &servers[i]; one.Metadata[metaGroup] == g.Name {
			d.servers[one.ID] = one
			if !one.leaving() {
				d.target++
			}
		}
	}
	var errs []error
	for _, instance := range ids {
		if err := d.delete(ctx, instance); err != nil {
			errs = append(errs, err)
		}
	}
	if err := s.clean(ctx, sec.Cluster, g, d.done); err != nil {
		e := openstack.Classify("remove the ports of deleted servers", id, err)
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// deletion is one Delete under way.
type deletion struct {
	site    *site
	cluster string
	group   *section.Group
	servers map[string]*server // of the group
	target  int
	done    map[string]string // servers that are gone or going, with their names
	others  []*site           // the other clouds
}

// others are the sites of all clouds but one, without those that cannot be reached.
func (p *Provider) others(sec section.Section, but *site) (out []*site) {
	for _, c := range sec.Clouds {
		if s, err := p.site(c); err == nil && s != but {
			out = append(out, s)
		}
	}
	return out
}

func (d *deletion) delete(ctx context.Context, id cluster.InstanceID) error {
	fail := func(kind provider.Kind, remedy, format string, args ...any) error {
		return &provider.Error{Op: "delete", Group: cluster.GroupID(d.group.Name), Instance: id, Kind: kind, Remedy: remedy, Err: fmt.Errorf(format, args...)}
	}
	uuid := serverID(id)
	if uuid == "" {
		return fail(provider.NotFound, "", "not a provider ID of OpenStack")
	}
	one := d.servers[uuid]
	switch {
	case one == nil:
		return d.absent(ctx, id, uuid)
	case one.leaving() || d.done[uuid] != "":
		d.done[uuid] = one.Name
		return nil
	case !one.failed() && d.target <= d.group.Min:
		return fail(provider.Invalid, "lower the group's min in groups.yaml", "the target is %d, which is the group's minimum", d.target)
	}
	err := d.site.deleteServer(ctx, uuid)
	if err == nil || missing(err) {
		d.done[uuid] = one.Name
		d.target--
		return nil
	}
	e := openstack.Classify("delete", cluster.GroupID(d.group.Name), err)
	e.Instance, e.Unsure = id, unsure(err)
	if statusOf(err) == http.StatusConflict {
		e.Remedy = "see `openstack server show " + uuid + "`: it may be locked"
	}
	return e
}

func (s *site) deleteServer(ctx context.Context, uuid string) error {
	c, _, err := s.nova(ctx)
	if err != nil {
		return err
	}
	err = servers.Delete(ctx, c, uuid).ExtractErr()
	if err == nil || missing(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.made, uuid)
	}
	return err
}

// absent judges a server that the group does not list: one that Nova does not know is a
// deletion that has happened already; any other is not in the group, and nothing is done
// to it.
func (d *deletion) absent(ctx context.Context, id cluster.InstanceID, uuid string) error {
	one, err := d.site.one(ctx, uuid)
	fail := func(kind provider.Kind, text string) error {
		return &provider.Error{Op: "delete", Group: cluster.GroupID(d.group.Name), Instance: id, Kind: kind, Err: errors.New(text)}
	}
	switch {
	case missing(err):
		for _, s := range d.others {
			if _, err := s.one(ctx, uuid); err == nil {
				return fail(provider.NotFound, "the server is in another cloud")
			}
		}
		d.done[uuid] = d.site.nameOf(uuid)
		return nil
	case err != nil:
		e := openstack.Classify("delete", cluster.GroupID(d.group.Name), err)
		e.Instance = id
		return e
	case one.Metadata[metaCluster] != d.cluster || one.Metadata[metaGroup] != d.group.Name:
		return fail(provider.NotFound, "the server is not in the group")
	case one.leaving():
		d.done[uuid] = one.Name
		return nil
	}
	return fail(provider.Transient, "the list of servers does not show it, and Nova knows it")
}

// nameOf is the name of a server that is gone; empty: it is not remembered.
func (s *site) nameOf(uuid string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, ok := s.seen[uuid]; ok {
		return one.Name
	}
	return s.gone[uuid].server.Name
}

package nova

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsecurity"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// orphanAge is how old a port of ours without a server must be before it is removed: a
// request for its server may still be under way in Nova.
const orphanAge = 10 * time.Minute

// mark is the description by which ports and floating IPs are known for ours.
func mark(of string, g *section.Group) string { return "autoscaler-agent " + of + " " + g.Name }

// makePorts makes the ports of one server, and its floating IP at the first of them.
// What it made is taken back when it fails; nothing is made for a group whose ports are
// Nova's business.
func (s *site) makePorts(ctx context.Context, o *order, name string) (ids []string, err error) {
	if !o.group.OwnPorts() {
		return nil, nil
	}
	defer func() {
		if err != nil {
			later, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
			defer cancel()
			s.dropPorts(later, ids)
			ids = nil
		}
	}()
	c, err := s.service(ctx, "network")
	if err != nil {
		return nil, err
	}
	for i := range o.group.Networks {
		made, err := ports.Create(ctx, c, o.port(i, name)).Extract()
		if err == nil && made.ID == "" {
			err = errHollow
		}
		if err != nil {
			return ids, err
		}
		ids = append(ids, made.ID)
	}
	if o.floating == "" {
		return ids, nil
	}
	_, err = floatingips.Create(ctx, c, floatingips.CreateOpts{FloatingNetworkID: o.floating, PortID: ids[0], Description: mark(o.cluster, o.group)}).Extract()
	return ids, err
}

// port is the request for the port of a server on the group's network i.
func (o *order) port(i int, server string) ports.CreateOptsBuilder {
	n := o.group.Networks[i]
	opts := ports.CreateOpts{Name: portName(server, i), NetworkID: o.networks[i], Description: mark(o.cluster, o.group)}
	var groups []string
	for _, wanted := range slices.Concat(o.group.SecurityGroups, n.SecurityGroups) {
		groups = append(groups, o.security[wanted])
	}
	if len(groups) > 0 && (n.PortSecurity == nil || *n.PortSecurity) {
		opts.SecurityGroups = &groups
	}
	if n.Subnet != "" {
		opts.FixedIPs = []ports.IP{{SubnetID: n.Subnet}}
	}
	for _, a := range n.AllowedAddresses {
		opts.AllowedAddressPairs = append(opts.AllowedAddressPairs, ports.AddressPair{IPAddress: a})
	}
	return portsecurity.PortCreateOptsExt{CreateOptsBuilder: opts, PortSecurityEnabled: n.PortSecurity}
}

// portName is the name of a server's port on the group's network i.
func portName(server string, i int) string { return fmt.Sprintf("%s-%d", server, i) }

// dropPorts removes ports that this process has just made, with the floating IPs on
// them. What does not go is found by a later sweep.
func (s *site) dropPorts(ctx context.Context, ids []string) {
	for _, id := range ids {
		s.dropFloating(ctx, floatingips.ListOpts{PortID: id}, nil)
		_ = s.removePort(ctx, id)
	}
}

// removePort removes a port; one that is gone already is removed.
func (s *site) removePort(ctx context.Context, id string) error {
	c, err := s.service(ctx, "network")
	if err != nil {
		return err
	}
	err = ports.Delete(ctx, c, id).ExtractErr()
	if missing(err) {
		return nil
	}
	return err
}

// ports lists the ports of a group.
func (s *site) ports(ctx context.Context, of string, g *section.Group) ([]ports.Port, error) {
	c, err := s.service(ctx, "network")
	if err != nil {
		return nil, err
	}
	list, err := openstack.List[ports.Port](ctx, ports.List(c, ports.ListOpts{Description: mark(of, g)}), "ports")
	// A Neutron that does not filter by description answers with everything.
	return slices.DeleteFunc(list, func(p ports.Port) bool { return p.Description != mark(of, g) }), err
}

// clean removes the ports and floating IPs of servers that were deleted, given with
// their names, and those of ours that are left of servers that never came. A server that
// found no host has never taken its ports: they are known by its name.
func (s *site) clean(ctx context.Context, of string, g *section.Group, deleted map[string]string) error {
	if !g.OwnPorts() {
		return nil
	}
	list, err := s.ports(ctx, of, g)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, name := range deleted {
		for i := range g.Networks {
			names[portName(name, i)] = name != ""
		}
	}
	var problem error
	for _, p := range list {
		orphan := p.DeviceID == "" && (names[p.Name] || !p.CreatedAt.IsZero() && s.now().Sub(p.CreatedAt) > orphanAge)
		if _, gone := deleted[p.DeviceID]; !orphan && !gone {
			continue
		}
		s.dropFloating(ctx, floatingips.ListOpts{PortID: p.ID}, func(f floatingips.FloatingIP) bool { return f.Description == mark(of, g) })
		if err := s.removePort(ctx, p.ID); err != nil {
			problem = err
		}
	}
	if g.FloatingIP != "" {
		s.dropFloating(ctx, floatingips.ListOpts{Description: mark(of, g)}, func(f floatingips.FloatingIP) bool { return f.Description == mark(of, g) && f.PortID == "" })
	}
	return problem
}

// sweep is clean without a deletion: what it cannot do the next one does.
func (s *site) sweep(ctx context.Context, of string, g *section.Group) { _ = s.clean(ctx, of, g, nil) }

// dropFloating removes the floating IPs that opts finds and that suit; nil: those of the
// port that opts names.
func (s *site) dropFloating(ctx context.Context, opts floatingips.ListOpts, suits func(floatingips.FloatingIP) bool) {
	c, err := s.service(ctx, "network")
	if err != nil {
		return
	}
	list, err := openstack.List[floatingips.FloatingIP](ctx, floatingips.List(c, opts), "floatingips")
	if err != nil {
		return
	}
	for _, f := range list {
		if suits == nil && f.PortID == opts.PortID || suits != nil && suits(f) {
			_ = floatingips.Delete(ctx, c, f.ID).ExtractErr()
		}
	}
}

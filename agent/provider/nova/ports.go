package nova

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// orphanAge is how old a port of ours without a server must be before it is removed: a
// request for its server may still be under way in Nova.
const orphanAge = 10 * time.Minute

// mark is the description by which ports and floating IPs are known for ours.
func mark(of string, g *Group) string { return "autoscaler-agent " + of + " " + g.Name }

// makePorts makes the ports of one server, and its floating IP at the first of them.
// What it made is taken back when it fails; nothing is made for a group whose ports are
// Nova's business.
func (s *site) makePorts(ctx context.Context, o *order, name string) (ports []string, err error) {
	if !o.group.ports() {
		return nil, nil
	}
	defer func() {
		if err != nil {
			later, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
			defer cancel()
			s.dropPorts(later, ports)
			ports = nil
		}
	}()
	c, err := s.service(ctx, "network")
	if err != nil {
		return nil, err
	}
	for i, n := range o.group.Networks {
		port := map[string]any{"name": portName(name, i), "network_id": o.networks[i], "description": mark(o.cluster, o.group)}
		if n.PortSecurity != nil {
			port["port_security_enabled"] = *n.PortSecurity
		}
		groups := []string{}
		for _, wanted := range slices.Concat(o.group.SecurityGroups, n.SecurityGroups) {
			groups = append(groups, o.security[wanted])
		}
		if len(groups) > 0 && (n.PortSecurity == nil || *n.PortSecurity) {
			port["security_groups"] = groups
		}
		if n.Subnet != "" {
			port["fixed_ips"] = []any{map[string]string{"subnet_id": n.Subnet}}
		}
		var pairs []any
		for _, a := range n.AllowedAddresses {
			pairs = append(pairs, map[string]string{"ip_address": a})
		}
		if len(pairs) > 0 {
			port["allowed_address_pairs"] = pairs
		}
		var made struct {
			Port struct {
				ID string `json:"id"`
			} `json:"port"`
		}
		if _, err = c.Post(ctx, c.ServiceURL("ports"), map[string]any{"port": port}, &made, &gophercloud.RequestOpts{OkCodes: []int{201}}); err != nil {
			return ports, err
		}
		ports = append(ports, made.Port.ID)
	}
	if o.floating == "" {
		return ports, nil
	}
	_, err = c.Post(ctx, c.ServiceURL("floatingips"), map[string]any{"floatingip": map[string]any{
		"floating_network_id": o.floating, "port_id": ports[0], "description": mark(o.cluster, o.group)}}, nil, &gophercloud.RequestOpts{OkCodes: []int{201}})
	return ports, err
}

// portName is the name of a server's port on the group's network i.
func portName(server string, i int) string { return fmt.Sprintf("%s-%d", server, i) }

// dropPorts removes ports that this process has just made, with the floating IPs on
// them. What does not go is found by a later sweep.
func (s *site) dropPorts(ctx context.Context, ids []string) {
	for _, id := range ids {
		s.dropFloating(ctx, url.Values{"port_id": {id}}, nil)
		_ = s.remove(ctx, "ports", id)
	}
}

func (s *site) remove(ctx context.Context, what, id string) error {
	c, err := s.service(ctx, "network")
	if err != nil {
		return err
	}
	_, err = c.Delete(ctx, c.ServiceURL(what, id), &gophercloud.RequestOpts{OkCodes: []int{202, 204}})
	if missing(err) {
		return nil
	}
	return err
}

// port is what we read of one of Neutron's.
type port struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Device  string    `json:"device_id"`
	Created time.Time `json:"created_at"`
	Mark    string    `json:"description"`
}

func (s *site) ports(ctx context.Context, of string, g *Group) ([]port, error) {
	var doc struct {
		Ports []port `json:"ports"`
	}
	err := s.get(ctx, "network", "ports", url.Values{"description": {mark(of, g)}, "fields": {"id", "name", "device_id", "created_at", "description"}}, &doc)
	// A Neutron that does not filter by description answers with everything.
	return slices.DeleteFunc(doc.Ports, func(p port) bool { return p.Mark != mark(of, g) }), err
}

// clean removes the ports and floating IPs of servers that were deleted, given with
// their names, and those of ours that are left of servers that never came. A server that
// found no host has never taken its ports: they are known by its name.
func (s *site) clean(ctx context.Context, of string, g *Group, deleted map[string]string) error {
	if !g.ports() {
		return nil
	}
	ports, err := s.ports(ctx, of, g)
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
	for _, p := range ports {
		orphan := p.Device == "" && (names[p.Name] || !p.Created.IsZero() && s.now().Sub(p.Created) > orphanAge)
		if _, gone := deleted[p.Device]; !orphan && !gone {
			continue
		}
		s.dropFloating(ctx, url.Values{"port_id": {p.ID}}, func(f floating) bool { return f.Mark == mark(of, g) })
		if err := s.remove(ctx, "ports", p.ID); err != nil {
			problem = err
		}
	}
	if g.FloatingIP != "" {
		s.dropFloating(ctx, url.Values{"description": {mark(of, g)}}, func(f floating) bool { return f.Mark == mark(of, g) && f.Port == "" })
	}
	return problem
}

// sweep is clean without a deletion: what it cannot do the next one does.
func (s *site) sweep(ctx context.Context, of string, g *Group) { _ = s.clean(ctx, of, g, nil) }

// floating is what we read of a floating IP.
type floating struct {
	ID   string `json:"id"`
	Port string `json:"port_id"`
	Mark string `json:"description"`
}

// dropFloating removes floating IPs that a query finds and that suit; nil: all of them.
func (s *site) dropFloating(ctx context.Context, query url.Values, suits func(floating) bool) {
	var doc struct {
		List []floating `json:"floatingips"`
	}
	if s.get(ctx, "network", "floatingips", query, &doc) != nil {
		return
	}
	for _, f := range doc.List {
		if suits == nil && f.Port == query.Get("port_id") || suits != nil && suits(f) {
			_ = s.remove(ctx, "floatingips", f.ID)
		}
	}
}

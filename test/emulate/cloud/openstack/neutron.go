package openstack

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// neutron answers the networking API: networks, subnets, security groups, ports and
// floating IPs.
func (r *Region) neutron(q *call) {
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	what := q.Method + " " + parts[0]
	switch {
	case what == "GET networks":
		answerList(q, "network", parts, r.networks, func(n *Network) map[string]any {
			return map[string]any{"id": n.ID, "name": n.Name, "status": "ACTIVE", "admin_state_up": true, "subnets": []string{n.SubnetID}, "router:external": n.External, "shared": n.External, "tags": []string{}}
		})
	case what == "GET subnets":
		answerList(q, "subnet", parts, r.networks, func(n *Network) map[string]any {
			return map[string]any{"id": n.SubnetID, "name": n.SubnetName, "network_id": n.ID, "cidr": n.CIDR, "ip_version": 4, "tags": []string{}}
		})
	case what == "GET extensions":
		answerList(q, "extension", parts[:1], []string{}, nil)
	case parts[0] == "security-groups":
		r.serveGroups(q, parts)
	case parts[0] == "security-group-rules":
		r.serveRules(q, parts)
	case parts[0] == "ports":
		r.servePorts(q, parts)
	case parts[0] == "floatingips":
		r.serveFloating(q, parts)
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}

// answerList answers one resource by ID, or those that every field of the query fits.
func answerList[T any](q *call, name string, parts []string, all []T, describe func(T) map[string]any) {
	list := []any{}
	for _, one := range all {
		d := describe(one)
		if len(parts) == 2 {
			if d["id"] == parts[1] {
				q.answer(http.StatusOK, map[string]any{name: d})
				return
			}
			continue
		}
		if q.suits(d) {
			list = append(list, d)
		}
	}
	if len(parts) == 2 {
		q.fail(http.StatusNotFound, strings.ToUpper(name[:1])+name[1:]+" "+parts[1]+" could not be found.")
		return
	}
	q.answer(http.StatusOK, map[string]any{name + "s": list})
}

// suits compares a resource with the query, as Neutron does: by equality, tags by
// all of them; a name that it does not know is an error there and never fits here.
func (q *call) suits(d map[string]any) bool {
	for field, values := range q.URL.Query() {
		switch field {
		case "limit", "marker", "fields", "sort", "sort_key", "sort_dir", "page_reverse":
			continue
		case "tags":
			has, _ := d["tags"].([]string)
			for _, tag := range strings.Split(values[0], ",") {
				if !slices.Contains(has, tag) {
					return false
				}
			}
			continue
		}
		if !slices.ContainsFunc(values, func(v string) bool { return fmt.Sprint(d[field]) == v || d[field] == nil && v == "" }) {
			return false
		}
	}
	return true
}

func (q *call) projects(all []*Port) []*Port {
	return slices.DeleteFunc(slices.Clone(all), func(p *Port) bool {
		return p.Project != q.token.login.ProjectID && !q.token.login.Admin
	})
}

func describePort(p *Port) map[string]any {
	ips, pairs := []any{}, []any{}
	for _, a := range p.Addresses {
		ips = append(ips, map[string]any{"ip_address": a, "subnet_id": p.NetworkID})
	}
	for _, a := range p.AllowedPairs {
		pairs = append(pairs, map[string]any{"ip_address": a, "mac_address": p.MAC})
	}
	status := "DOWN"
	if p.DeviceID != "" {
		status = "ACTIVE"
	}
	return map[string]any{"id": p.ID, "name": p.Name, "description": p.Description, "network_id": p.NetworkID, "device_id": p.DeviceID, "device_owner": p.DeviceOwner,
		"mac_address": p.MAC, "fixed_ips": ips, "security_groups": append([]string{}, p.SecurityGroups...), "allowed_address_pairs": pairs, "status": status,
		"port_security_enabled": p.PortSecurity, "tags": append([]string{}, p.Tags...), "tenant_id": p.Project, "project_id": p.Project, "admin_state_up": true,
		"created_at": p.Created.UTC().Format(seconds), "updated_at": p.Created.UTC().Format(seconds)}
}

func (r *Region) servePorts(q *call, parts []string) {
	var p *Port
	if len(parts) > 1 {
		if p = r.port(parts[1]); p == nil {
			q.fail(http.StatusNotFound, "Port "+parts[1]+" could not be found.")
			return
		}
	}
	switch {
	case q.Method == http.MethodPost && p == nil:
		r.createPort(q)
	case q.Method == http.MethodDelete && p != nil:
		r.dropPort(p)
		q.w.WriteHeader(http.StatusNoContent)
	case q.Method == http.MethodPut && len(parts) == 3 && parts[2] == "tags":
		var body struct {
			Tags []string `json:"tags"`
		}
		if q.decode(&body) {
			p.Tags = body.Tags
			q.answer(http.StatusOK, body)
		}
	case q.Method == http.MethodGet:
		answerList(q, "port", parts, q.projects(r.ports), describePort)
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}

func (r *Region) createPort(q *call) {
	var body struct {
		Port struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Network     string   `json:"network_id"`
			Groups      []string `json:"security_groups"`
			Security    *bool    `json:"port_security_enabled"`
			Pairs       []struct {
				IP string `json:"ip_address"`
			} `json:"allowed_address_pairs"`
			Fixed []struct {
				Subnet string `json:"subnet_id"`
			} `json:"fixed_ips"`
		} `json:"port"`
	}
	if !q.decode(&body) {
		return
	}
	in, project := body.Port, q.token.login.ProjectID
	n := r.network(in.Network)
	if n == nil {
		q.fail(http.StatusNotFound, "Network "+in.Network+" could not be found.")
		return
	}
	if r.quota.Ports >= 0 && r.used(project).Ports >= r.quota.Ports {
		q.fail(http.StatusConflict, "Quota exceeded for resources: ['port'].")
		return
	}
	for _, g := range in.Groups {
		if r.groups[g] == "" {
			q.fail(http.StatusNotFound, "Security group "+g+" does not exist")
			return
		}
	}
	for _, f := range in.Fixed {
		if f.Subnet != "" && f.Subnet != n.SubnetID {
			q.fail(http.StatusBadRequest, "Invalid input for operation: Failed to create port on network "+n.ID+", because fixed_ips included invalid subnet "+f.Subnet+".")
			return
		}
	}
	p := r.newPort(n, project)
	p.Name, p.Description = in.Name, in.Description
	if in.Groups != nil {
		p.SecurityGroups = in.Groups
	}
	if in.Security != nil {
		p.PortSecurity = *in.Security
		if !p.PortSecurity {
			if len(in.Groups) > 0 || len(in.Pairs) > 0 {
				r.ports = r.ports[:len(r.ports)-1]
				q.fail(http.StatusConflict, "Port Security must be enabled in order to have allowed address pairs on a port.")
				return
			}
			p.SecurityGroups = nil
		}
	}
	for _, pair := range in.Pairs {
		p.AllowedPairs = append(p.AllowedPairs, pair.IP)
	}
	q.answer(http.StatusCreated, map[string]any{"port": describePort(p)})
}

func describeFloating(f *FloatingIP) map[string]any {
	status := "DOWN"
	if f.PortID != "" {
		status = "ACTIVE"
	}
	return map[string]any{"id": f.ID, "floating_ip_address": f.Address, "floating_network_id": f.NetworkID, "port_id": nullable(f.PortID), "description": f.Description,
		"status": status, "tenant_id": f.Project, "project_id": f.Project, "tags": append([]string{}, f.Tags...), "router_id": nil, "fixed_ip_address": nil}
}

func (r *Region) serveFloating(q *call, parts []string) {
	var at = -1
	if len(parts) > 1 {
		at = slices.IndexFunc(r.floating, func(f *FloatingIP) bool { return f.ID == parts[1] })
		if at < 0 {
			q.fail(http.StatusNotFound, "Floatingip "+parts[1]+" could not be found.")
			return
		}
	}
	switch {
	case q.Method == http.MethodPost && at < 0:
		r.createFloating(q)
	case q.Method == http.MethodDelete && at >= 0:
		r.floating = slices.Delete(r.floating, at, at+1)
		q.w.WriteHeader(http.StatusNoContent)
	case q.Method == http.MethodGet:
		answerList(q, "floatingip", parts, r.floating, describeFloating)
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}

func (r *Region) createFloating(q *call) {
	var body struct {
		FloatingIP struct {
			Network     string `json:"floating_network_id"`
			Port        string `json:"port_id"`
			Description string `json:"description"`
		} `json:"floatingip"`
	}
	if !q.decode(&body) {
		return
	}
	in, project := body.FloatingIP, q.token.login.ProjectID
	n := r.network(in.Network)
	switch {
	case n == nil:
		q.fail(http.StatusNotFound, "Network "+in.Network+" could not be found.")
	case !n.External:
		q.fail(http.StatusBadRequest, "Bad floatingip request: Network "+n.ID+" is not a valid external network.")
	case in.Port != "" && r.port(in.Port) == nil:
		q.fail(http.StatusNotFound, "Port "+in.Port+" could not be found.")
	case r.quota.FloatingIPs >= 0 && r.used(project).FloatingIPs >= r.quota.FloatingIPs:
		q.fail(http.StatusConflict, "Quota exceeded for resources: ['floatingip'].")
	default:
		f := &FloatingIP{ID: newID(), Address: n.address()[0], Description: in.Description, NetworkID: n.ID, PortID: in.Port, Project: project}
		r.floating = append(r.floating, f)
		q.answer(http.StatusCreated, map[string]any{"floatingip": describeFloating(f)})
	}
}

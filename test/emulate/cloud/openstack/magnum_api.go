package openstack

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// serve answers Magnum's API of the cloud's first region.
func (m *magnum) serve(r *Region, q *call) {
	if q.path == "" || q.path == "/" || q.path == "/v1" || q.path == "/v1/" {
		q.answer(http.StatusOK, map[string]any{"versions": []any{map[string]any{"id": "v1", "status": "CURRENT", "min_version": "1.1",
			"max_version": m.version(m.highest), "links": []any{map[string]any{"rel": "self", "href": r.url("/container-infra/v1/")}}}}})
		return
	}
	version, ok := m.negotiate(q)
	if !ok {
		return
	}
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	if parts[0] != "clusters" {
		q.fail(http.StatusNotFound, "The resource could not be found.")
		return
	}
	if len(parts) == 1 && q.Method == http.MethodGet {
		m.list(r, q)
		return
	}
	c := m.mine(r, q, parts[1])
	if c == nil {
		return
	}
	what := q.Method + " " + strings.Join(parts[min(len(parts), 2):min(len(parts), 3)], "/")
	switch {
	case len(parts) == 2 && q.Method == http.MethodGet:
		q.answer(http.StatusOK, m.describe(c))
	case q.Method == http.MethodPost && len(parts) == 4 && parts[2] == "actions" && parts[3] == "resize":
		if m.since(q, version, 7) {
			m.resize(q, c, version)
		}
	case what == "GET nodegroups":
		if m.since(q, version, 9) {
			m.groups(q, c, parts[3:])
		}
	default:
		q.fail(http.StatusMethodNotAllowed, "This emulated Magnum does not do "+q.Method+" "+q.path+".")
	}
}

func (m *magnum) version(minor int) string { return "1." + strconv.Itoa(minor) }

// negotiate reads the microversion of a request, 1.1 where it names none; one that is
// not there is answered 406.
func (m *magnum) negotiate(q *call) (minor int, ok bool) {
	least, most := "container-infra 1.1", "container-infra "+m.version(m.highest)
	q.w.header.Set("OpenStack-API-Minimum-Version", least)
	q.w.header.Set("OpenStack-API-Maximum-Version", most)
	asked := q.Header.Get("OpenStack-API-Version")
	if asked == "" {
		asked = least
	}
	service, version, _ := strings.Cut(asked, " ")
	if service != "container-infra" {
		q.fail(http.StatusNotAcceptable, "Invalid service type for OpenStack-API-Version header")
		return 0, false
	}
	if version == "latest" {
		version = m.version(m.highest)
	}
	v, err := parseVersion(version)
	if err != nil || v[0] != 1 || v[1] < 1 || v[1] > m.highest {
		q.answer(http.StatusNotAcceptable, map[string]any{"errors": []any{map[string]any{"code": "magnum.microversion-unsupported", "title": "Requested microversion is unsupported",
			"min_version": "1.1", "max_version": m.version(m.highest), "links": []any{}}}})
		return 0, false
	}
	q.w.header.Set("OpenStack-API-Version", "container-infra "+version)
	return v[1], true
}

// since refuses a call that is younger than the request's microversion, as Magnum does:
// without a word, and without the range of versions.
func (m *magnum) since(q *call, version, least int) bool {
	if version < least {
		for _, name := range []string{"OpenStack-API-Minimum-Version", "OpenStack-API-Maximum-Version", "OpenStack-API-Version"} {
			q.w.header.Del(name)
		}
		q.answer(http.StatusNotAcceptable, map[string]any{"errors": []any{map[string]any{"request_id": "", "code": "", "status": 406, "title": "", "detail": "", "links": []any{}}}})
	}
	return version >= least
}

// mine finds a cluster that the caller may see. Magnum knows clusters by UUID and by
// name, and refuses a name that several have.
func (m *magnum) mine(r *Region, q *call, ident string) *MagnumCluster {
	var found []*MagnumCluster
	for _, c := range m.clusters {
		if (c.UUID == ident || c.Name == ident) && r == m.cloud.Region && (q.token.login.ProjectID == demoProjectID || q.token.login.Admin) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		q.fail(http.StatusNotFound, "Cluster "+ident+" could not be found.")
		return nil
	case 1:
		return found[0]
	}
	q.fail(http.StatusConflict, "Multiple clusters exist with same name. Please use the cluster uuid instead.")
	return nil
}

func (m *magnum) list(r *Region, q *call) {
	list := []any{}
	for _, c := range m.clusters {
		if r == m.cloud.Region && q.token.login.ProjectID == demoProjectID {
			list = append(list, m.describe(c))
		}
	}
	q.answer(http.StatusOK, map[string]any{"clusters": list})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// describe is a cluster as it is shown. Its node count is the sum of all worker groups.
func (m *magnum) describe(c *MagnumCluster) map[string]any {
	count, addresses := 0, []string{}
	for _, g := range c.groups {
		count += g.Count
		addresses = append(addresses, g.Addresses...)
	}
	masters := []string{}
	for _, s := range c.masters {
		for _, a := range m.cloud.Region.addresses(s) {
			if !strings.Contains(a.IP, ":") {
				masters = append(masters, a.IP)
			}
		}
	}
	labels := c.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return map[string]any{
		"uuid": c.UUID, "name": c.Name, "status": c.Status, "status_reason": nullable(c.StatusReason), "stack_id": c.StackID,
		"keypair": KeyName, "node_count": count, "master_count": len(c.masters), "node_addresses": addresses, "master_addresses": masters,
		"labels": labels, "api_address": "https://192.0.2.1:6443", "cluster_template_id": "c0ffee00-0000-4000-8000-000000000001",
		"created_at": stamp(c.Created), "updated_at": stamp(c.Updated), "project_id": demoProjectID, "user_id": "de30de30de304de38de3de30de30de30",
		"flavor_id": "m1.medium", "master_flavor_id": "m1.medium", "docker_volume_size": nil, "create_timeout": 60, "coe_version": "v1.36.0",
		"container_version": nil, "discovery_url": nil, "floating_ip_enabled": false, "master_lb_enabled": false, "fixed_network": nil,
		"fixed_subnet": nil, "health_status": "HEALTHY", "health_status_reason": map[string]any{}, "faults": map[string]any{}, "links": []any{},
	}
}

// groups answers the list, which says 0 and none for bounds whatever they are, or one
// group whole.
func (m *magnum) groups(q *call, c *MagnumCluster, ident []string) {
	if len(ident) == 0 {
		list := []any{m.master(c)}
		for _, g := range c.groups {
			if role := q.URL.Query().Get("role"); role == "" || role == g.Role {
				list = append(list, m.short(g))
			}
		}
		if role := q.URL.Query().Get("role"); role != "" && role != "master" {
			list = list[1:]
		}
		q.answer(http.StatusOK, map[string]any{"nodegroups": list})
		return
	}
	if slices.Contains([]string{masterGroup, masterUUID(c)}, ident[0]) {
		q.answer(http.StatusOK, m.master(c))
		return
	}
	g := c.group(ident[0])
	switch {
	case g == nil:
		q.fail(http.StatusNotFound, "Nodegroup "+ident[0]+" could not be found.")
	case g.broken:
		q.fail(http.StatusInternalServerError, "(pymysql.err.OperationalError) (2013, 'Lost connection to MySQL server during query')")
	default:
		out := m.short(g)
		labels := g.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		var most any
		if g.Max >= 0 {
			most = g.Max
		}
		for k, v := range map[string]any{
			"id": 1, "min_node_count": g.Min, "max_node_count": most, "labels": labels, "node_addresses": append([]string{}, g.Addresses...),
			"cluster_id": c.UUID, "project_id": demoProjectID, "docker_volume_size": nil, "status_reason": nullable(g.StatusReason),
			"created_at": stamp(g.Created), "updated_at": stamp(g.Updated), "version": nil, "links": []any{},
			"labels_added": map[string]any{}, "labels_overridden": map[string]any{}, "labels_skipped": map[string]any{},
		} {
			out[k] = v
		}
		q.answer(http.StatusOK, out)
	}
}

const masterGroup = "default-master"

func masterUUID(c *MagnumCluster) string { return "aaaaaaaa" + c.UUID[8:] }

func (m *magnum) short(g *nodeGroup) map[string]any {
	return map[string]any{"uuid": g.UUID, "name": g.Name, "flavor_id": g.Flavor, "image_id": g.Image, "node_count": g.Count, "role": g.Role,
		"is_default": g.Default, "stack_id": g.StackID, "status": g.Status, "min_node_count": 0, "max_node_count": nil}
}

func (m *magnum) master(c *MagnumCluster) map[string]any {
	return map[string]any{"uuid": masterUUID(c), "name": masterGroup, "flavor_id": "m1.medium", "image_id": ImageID, "node_count": 1, "role": "master",
		"is_default": true, "stack_id": c.StackID, "status": "CREATE_COMPLETE", "min_node_count": 1, "max_node_count": nil}
}

// resize is Magnum's: what it can see to be wrong is refused, and all else is accepted
// before anybody knows whether it works.
func (m *magnum) resize(q *call, c *MagnumCluster, version int) {
	var body struct {
		Count  *int     `json:"node_count"`
		Remove []string `json:"nodes_to_remove"`
		Group  string   `json:"nodegroup"`
	}
	if !q.decode(&body) {
		return
	}
	if body.Count == nil || *body.Count < 0 {
		q.fail(http.StatusBadRequest, "Invalid input for field/attribute node_count. Value should be greater or equal to 0")
		return
	}
	if version < 10 && *body.Count == 0 {
		q.fail(http.StatusBadRequest, "Resizing a nodegroup to zero is not supported in the provided microversion.")
		return
	}
	g := c.group(body.Group)
	if body.Group == "" {
		if at := slices.IndexFunc(c.groups, func(g *nodeGroup) bool { return g.Default }); at >= 0 {
			g = c.groups[at]
		}
	}
	switch {
	case body.Group == masterGroup || body.Group == masterUUID(c):
		q.fail(http.StatusBadRequest, "Resizing a master nodegroup is not supported.")
	case g == nil:
		q.fail(http.StatusNotFound, "Nodegroup "+body.Group+" could not be found.")
	case *body.Count < g.Min || g.Max > 0 && *body.Count > g.Max: // a maximum of 0 is none to Magnum's resize
		q.fail(http.StatusBadRequest, fmt.Sprintf("Resizing %s outside the allowed range: min_node_count = %d, max_node_count = %d", g.Name, g.Min, g.Max))
	default:
		if m.conductorDelay <= 0 {
			m.conduct(c, g, *body.Count, body.Remove)
			q.answer(http.StatusAccepted, map[string]any{"uuid": c.UUID})
			return
		}
		m.accepted++
		take := func() {
			m.accepted--
			m.conduct(c, g, *body.Count, body.Remove)
		}
		m.cloud.after(m.conductorDelay, func() {
			if m.taking {
				m.held = append(m.held, take)
				return
			}
			take()
		})
		q.answer(http.StatusAccepted, map[string]any{"uuid": c.UUID})
	}
}

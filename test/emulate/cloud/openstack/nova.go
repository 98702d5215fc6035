package openstack

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// novaVersions answers version documents and reads the microversion of a request.
func (r *Region) novaVersions(q *call) bool {
	doc := map[string]any{"id": "v2.1", "status": "CURRENT", "version": r.cloud.opts.MaxMicroversion, "min_version": "2.1", "updated": "2013-07-23T11:33:21Z",
		"links": []any{map[string]any{"rel": "self", "href": r.url("/compute/v2.1/")}}}
	old := map[string]any{"id": "v2.0", "status": "SUPPORTED", "version": "", "min_version": "", "updated": "2011-01-21T11:33:21Z",
		"links": []any{map[string]any{"rel": "self", "href": r.url("/compute/v2/")}}}
	switch q.path {
	case "", "/":
		q.answer(http.StatusOK, map[string]any{"versions": []any{old, doc}})
		return true
	case "/v2.1", "/v2.1/":
		q.answer(http.StatusOK, map[string]any{"version": doc})
		return true
	}
	q.version = [2]int{2, 1}
	asked := q.Header.Get("X-OpenStack-Nova-API-Version")
	if text, ok := strings.CutPrefix(q.Header.Get("OpenStack-API-Version"), "compute "); ok {
		asked = text
	}
	highest, _ := parseVersion(r.cloud.opts.MaxMicroversion)
	switch {
	case asked == "":
	case asked == "latest":
		q.version = highest
	default:
		v, err := parseVersion(asked)
		if err != nil {
			q.fail(http.StatusBadRequest, fmt.Sprintf("API Version String %s is of invalid format. Must be of format MajorNum.MinorNum.", asked))
			return true
		}
		if v[0] != 2 || v[1] < 1 || v[1] > highest[1] {
			q.answer(http.StatusNotAcceptable, map[string]any{"computeFault": map[string]any{"code": 406,
				"message": fmt.Sprintf("Version %s is not supported by the API. Minimum is 2.1 and maximum is %s.", asked, r.cloud.opts.MaxMicroversion)}})
			return true
		}
		q.version = v
	}
	text := fmt.Sprintf("%d.%d", q.version[0], q.version[1])
	q.w.header.Set("OpenStack-API-Version", "compute "+text)
	q.w.header.Set("X-OpenStack-Nova-API-Version", text)
	return false
}

func parseVersion(s string) (v [2]int, err error) {
	major, minor, ok := strings.Cut(s, ".")
	if !ok {
		return v, fmt.Errorf("%q is no version", s)
	}
	if v[0], err = strconv.Atoi(major); err == nil {
		v[1], err = strconv.Atoi(minor)
	}
	return v, err
}

// since tells whether the request's microversion is 2.minor or later.
func (q *call) since(minor int) bool { return q.version[1] >= minor }

// nova answers the compute API.
func (r *Region) nova(q *call) {
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	what := q.Method + " " + parts[0]
	switch {
	case what == "GET servers" && (len(parts) == 1 || len(parts) == 2 && parts[1] == "detail"):
		r.listServers(q, len(parts) == 2)
	case what == "POST servers" && len(parts) == 1:
		r.createServer(q)
	case what == "GET servers" && len(parts) == 2:
		if s := r.mine(q, parts[1]); s != nil {
			q.answer(http.StatusOK, map[string]any{"server": r.describe(q, s)})
		}
	case what == "POST servers" && len(parts) == 3 && parts[2] == "action":
		r.serverAction(q, parts[1])
	case what == "DELETE servers" && len(parts) == 2:
		if s := r.mine(q, parts[1]); s != nil {
			if r.stuck[s.ID] {
				q.fail(http.StatusConflict, "Instance "+s.ID+" is locked")
				return
			}
			r.remove(s)
			q.w.WriteHeader(http.StatusNoContent)
		}
	case what == "GET flavors":
		r.listFlavors(q, parts)
	case what == "GET limits":
		r.limits(q)
	case parts[0] == "os-server-groups":
		r.serverGroups(q, parts)
	case what == "GET os-availability-zone":
		var zones []any
		for _, z := range r.zones {
			zones = append(zones, map[string]any{"zoneName": z, "zoneState": map[string]any{"available": true}, "hosts": nil})
		}
		q.answer(http.StatusOK, map[string]any{"availabilityZoneInfo": zones})
	case parts[0] == "os-keypairs":
		r.serveKeys(q, parts)
	default:
		q.fail(http.StatusNotFound, "The resource could not be found.")
	}
}

// mine finds a server that the caller may see, or answers 404.
func (r *Region) mine(q *call, id string) *Server {
	s := r.server(id)
	if q.Method == http.MethodGet && r.frozen != nil {
		s = nil
		for _, old := range r.frozen {
			if old.ID == id {
				s = old
			}
		}
	}
	if s == nil || s.Project != q.token.login.ProjectID && !q.token.login.Admin {
		q.fail(http.StatusNotFound, "Instance "+id+" could not be found.")
		return nil
	}
	return s
}

// listFilters are those that somebody without an administrator's role may use.
var listFilters = []string{"name", "status", "flavor", "image", "ip", "ip6", "changes-since", "tags", "tags-any", "not-tags", "not-tags-any",
	"limit", "marker", "sort_key", "sort_dir", "all_tenants", "reservation_id", "availability_zone", "key_name", "project_id"}

func (r *Region) listServers(q *call, detail bool) {
	query := q.URL.Query()
	keep := func(*Server) bool { return true }
	and := func(f func(*Server) bool) {
		before := keep
		keep = func(s *Server) bool { return before(s) && f(s) }
	}
	if query.Get("all_tenants") == "" || !q.token.login.Admin {
		and(func(s *Server) bool { return s.Project == q.token.login.ProjectID })
	}
	for name, values := range query {
		if !slices.Contains(listFilters, name) {
			continue // Nova drops a filter that it does not know or that is an administrator's
		}
		switch name {
		case "name":
			re, err := regexp.Compile(values[0])
			if err != nil {
				q.fail(http.StatusBadRequest, "Invalid input for query parameters name.")
				return
			}
			and(func(s *Server) bool { return re.MatchString(s.Name) })
		case "status":
			and(func(s *Server) bool {
				return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, s.Status) })
			})
		case "flavor":
			and(func(s *Server) bool { return s.Flavor.ID == values[0] })
		case "tags", "tags-any", "not-tags", "not-tags-any":
			if !q.since(26) {
				continue
			}
			wanted := strings.Split(values[0], ",")
			has := func(s *Server) func(string) bool {
				return func(tag string) bool { return slices.Contains(s.Tags, tag) }
			}
			and(func(s *Server) bool {
				any, all := slices.ContainsFunc(wanted, has(s)), !slices.ContainsFunc(wanted, func(t string) bool { return !has(s)(t) })
				return map[string]bool{"tags": all, "tags-any": any, "not-tags": !all, "not-tags-any": !any}[name]
			})
		}
	}
	r.page(q, query, detail, keep)
}

// page answers one page of servers, the newest first, as Nova sorts.
func (r *Region) page(q *call, query url.Values, detail bool, keep func(*Server) bool) {
	limit := r.cloud.opts.PageLimit
	if n, err := strconv.Atoi(query.Get("limit")); err == nil && n > 0 {
		limit = min(limit, n)
	}
	shown := slices.Clone(r.shown())
	slices.Reverse(shown)
	if marker := query.Get("marker"); marker != "" { // Nova looks it up by its ID, whether the filters let it pass by now or not
		at := slices.IndexFunc(shown, func(s *Server) bool { return s.ID == marker })
		if at < 0 {
			q.fail(http.StatusBadRequest, "marker ["+marker+"] not found")
			return
		}
		shown = shown[at+1:]
	}
	all := slices.DeleteFunc(shown, func(s *Server) bool { return !keep(s) })
	more := len(all) > limit
	all = all[:min(len(all), limit)]
	list := make([]any, 0, len(all))
	for _, s := range all {
		if detail {
			d := r.describe(q, s)
			delete(d, "fault") // that of a server which found no host is not in lists: it is in a cell of its own
			list = append(list, d)
		} else {
			list = append(list, map[string]any{"id": s.ID, "name": s.Name, "links": []any{}})
		}
	}
	out := map[string]any{"servers": list}
	if more {
		query.Set("marker", all[len(all)-1].ID)
		out["servers_links"] = []any{map[string]any{"rel": "next", "href": r.url("/compute/v2.1" + q.path + "?" + query.Encode())}}
	}
	q.answer(http.StatusOK, out)
}

const seconds = "2006-01-02T15:04:05Z"

// describe is a server as its microversion shows it.
func (r *Region) describe(q *call, s *Server) map[string]any {
	addresses := map[string][]any{}
	for _, a := range r.addresses(s) {
		version := 4
		if strings.Contains(a.IP, ":") {
			version = 6
		}
		addresses[a.Network] = append(addresses[a.Network], map[string]any{"addr": a.IP, "version": version, "OS-EXT-IPS:type": a.Type, "OS-EXT-IPS-MAC:mac_addr": a.MAC})
	}
	var image any = ""
	if s.ImageID != "" {
		image = map[string]any{"id": s.ImageID, "links": []any{}}
	}
	volumes := []any{}
	for _, id := range s.Volumes {
		volumes = append(volumes, map[string]any{"id": id, "delete_on_termination": true})
	}
	zone := s.Zone
	if s.Launched.IsZero() && s.TaskState == "scheduling" {
		zone = ""
	}
	out := map[string]any{
		"id": s.ID, "name": s.Name, "status": s.Status, "tenant_id": s.Project, "user_id": s.User, "hostId": "", "metadata": s.Metadata,
		"created": s.Created.UTC().Format(seconds), "updated": s.Updated.UTC().Format(seconds), "addresses": addresses, "image": image,
		"key_name": nullable(s.KeyName), "accessIPv4": "", "accessIPv6": "", "config_drive": "", "OS-DCF:diskConfig": "MANUAL",
		"OS-EXT-STS:task_state": nullable(s.TaskState), "OS-EXT-STS:vm_state": vmState(s), "OS-EXT-STS:power_state": 1,
		"OS-EXT-AZ:availability_zone": zone, "OS-SRV-USG:launched_at": nil, "OS-SRV-USG:terminated_at": nil,
		"os-extended-volumes:volumes_attached": volumes, "links": []any{}, "security_groups": named(s.SecurityGroups),
	}
	if !s.Launched.IsZero() {
		out["OS-SRV-USG:launched_at"] = s.Launched.UTC().Format("2006-01-02T15:04:05.000000")
	}
	if q.since(47) {
		specs := s.Flavor.ExtraSpecs
		if specs == nil {
			specs = map[string]string{}
		}
		out["flavor"] = map[string]any{"original_name": s.Flavor.Name, "vcpus": s.Flavor.VCPUs, "ram": s.Flavor.RAM, "disk": s.Flavor.Disk,
			"ephemeral": s.Flavor.Ephemeral, "swap": 0, "extra_specs": specs}
	} else {
		out["flavor"] = map[string]any{"id": s.Flavor.ID, "links": []any{}}
	}
	if q.since(26) {
		out["tags"] = append([]string{}, s.Tags...)
	}
	if q.since(90) || q.since(3) && q.token.login.Admin {
		out["OS-EXT-SRV-ATTR:hostname"] = hostname(s.Name)
	}
	if q.since(3) && q.token.login.Admin {
		out["OS-EXT-SRV-ATTR:user_data"] = encode(s.UserData)
	}
	if s.Fault != nil && s.Status == "ERROR" {
		out["fault"] = map[string]any{"code": s.Fault.Code, "message": s.Fault.Message, "created": s.Fault.At.UTC().Format(seconds)}
	}
	return out
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func named(names []string) []any {
	out := []any{}
	for _, n := range names {
		out = append(out, map[string]any{"name": n})
	}
	return out
}

func vmState(s *Server) string {
	return map[string]string{"BUILD": "building", "ACTIVE": "active", "SHUTOFF": "stopped", "ERROR": "error"}[s.Status]
}

// hostname is what Nova makes of a server's name.
func hostname(name string) string {
	name = strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(name))
	return strings.Trim(regexp.MustCompile(`[^a-z0-9.-]`).ReplaceAllString(name, ""), ".-")
}

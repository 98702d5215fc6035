package openstack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The patterns that Nova's schemas hold metadata keys and tags to.
var (
	metadataKey = regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`)
	tagPattern  = regexp.MustCompile(`^[^,/]{1,60}$`)
)

type createBody struct {
	Server map[string]json.RawMessage `json:"server"`
	Hints  *struct {
		Group string `json:"group"`
	} `json:"os:scheduler_hints"`
	OldHints *struct {
		Group string `json:"group"`
	} `json:"OS-SCH-HNT:scheduler_hints"`
}

type createServer struct {
	Name     string            `json:"name"`
	Flavor   string            `json:"flavorRef"`
	Image    string            `json:"imageRef"`
	Key      string            `json:"key_name"`
	Zone     string            `json:"availability_zone"`
	UserData string            `json:"user_data"`
	Metadata map[string]string `json:"metadata"`
	Tags     []string          `json:"tags"`
	Drive    bool              `json:"config_drive"`
	Min, Max int
	Groups   []struct {
		Name string `json:"name"`
	} `json:"security_groups"`
	Networks json.RawMessage `json:"networks"`
	Devices  []struct {
		BootIndex   *int   `json:"boot_index"`
		UUID        string `json:"uuid"`
		Source      string `json:"source_type"`
		Destination string `json:"destination_type"`
		Size        int    `json:"volume_size"`
		Type        string `json:"volume_type"`
		Delete      bool   `json:"delete_on_termination"`
	} `json:"block_device_mapping_v2"`
}

// fields are those of a server that this package plays, each with the minor
// microversion that brought it.
var fields = map[string]int{"name": 1, "flavorRef": 1, "imageRef": 1, "key_name": 1, "availability_zone": 1, "user_data": 1, "metadata": 1,
	"tags": 52, "config_drive": 1, "min_count": 1, "max_count": 1, "security_groups": 1, "networks": 1, "block_device_mapping_v2": 1, "description": 19, "hostname": 90}

type nic struct {
	UUID, Port, Fixed string
}

func (n *nic) UnmarshalJSON(raw []byte) error {
	var m struct {
		UUID  string `json:"uuid"`
		Port  string `json:"port"`
		Fixed string `json:"fixed_ip"`
	}
	err := json.Unmarshal(raw, &m)
	*n = nic(m)
	return err
}

func (r *Region) createServer(q *call) {
	var body createBody
	if !q.decode(&body) {
		return
	}
	bad := func(format string, args ...any) {
		q.fail(http.StatusBadRequest, fmt.Sprintf(format, args...))
	}
	for name := range body.Server {
		if since, ok := fields[name]; !ok || !q.since(since) {
			bad("Invalid input for field/attribute server. Additional properties are not allowed ('%s' was unexpected)", name)
			return
		}
	}
	raw, _ := json.Marshal(body.Server)
	var in createServer
	if err := json.Unmarshal(raw, &in); err != nil {
		bad("Invalid input for field/attribute server. %v", err)
		return
	}
	if why := in.wrong(q); why != "" {
		bad("%s", why)
		return
	}
	flavor := r.flavor(in.Flavor)
	switch {
	case flavor == nil:
		bad("Flavor %s could not be found.", in.Flavor)
		return
	case in.Image != "" && r.image(in.Image) == nil:
		bad("Image %s could not be found.", in.Image)
		return
	case in.Key != "" && r.keys[in.Key] == "":
		bad("Invalid key_name provided.")
		return
	case in.Zone != "" && !slices.Contains(r.zones, in.Zone):
		bad("The requested availability zone is not available")
		return
	}
	s := &Server{Name: in.Name, Project: q.token.login.ProjectID, User: q.token.login.UserID, Flavor: *flavor, ImageID: in.Image, Zone: in.Zone,
		KeyName: in.Key, Metadata: in.Metadata, Tags: in.Tags, ConfigDrive: in.Drive, token: q.token.id}
	s.UserData, _ = base64.StdEncoding.DecodeString(in.UserData)
	if s.Metadata == nil {
		s.Metadata = map[string]string{}
	}
	if !r.named(q, &in, s) {
		return
	}
	if !r.devices(q, &in, s) || !r.serverGroup(q, body, s) || !r.withinQuota(q, flavor) || !r.nics(q, &in, s) {
		return
	}
	r.launch(s)
	for _, v := range r.volumes {
		if slices.Contains(s.Volumes, v.ID) {
			v.ServerID = s.ID
		}
	}
	for _, g := range r.anti {
		if g.ID == s.GroupID {
			g.Members = append(g.Members, s.ID)
		}
	}
	q.w.header.Set("Location", r.url("/compute/v2.1/servers/"+s.ID))
	q.answer(http.StatusAccepted, map[string]any{"server": map[string]any{"id": s.ID, "links": []any{}, "OS-DCF:diskConfig": "MANUAL",
		"security_groups": named(s.SecurityGroups), "adminPass": "secret"}})
}

// named gives a server its security groups.
func (r *Region) named(q *call, in *createServer, s *Server) bool {
	for _, g := range in.Groups {
		id, ok := r.securityGroup(g.Name)
		if !ok {
			q.fail(http.StatusBadRequest, "Security group "+g.Name+" not found.")
			return false
		}
		s.SecurityGroups = append(s.SecurityGroups, r.groups[id])
	}
	if len(s.SecurityGroups) == 0 {
		s.SecurityGroups = []string{"default"}
	}
	return true
}

// wrong tells what Nova's schema refuses.
func (in *createServer) wrong(q *call) string {
	for key, value := range in.Metadata {
		if !metadataKey.MatchString(key) {
			return fmt.Sprintf("Invalid input for field/attribute metadata. Value: %v. Additional properties are not allowed ('%s' was unexpected)", in.Metadata, key)
		}
		if len(value) > 255 {
			return fmt.Sprintf("Invalid input for field/attribute %s. Value: %s. '%s' is too long", key, value, value)
		}
	}
	for _, tag := range in.Tags {
		if !tagPattern.MatchString(tag) {
			return fmt.Sprintf("Invalid input for field/attribute %s. Value: %s. '%s' does not match '^[^,/]*$'", tag, tag, tag)
		}
	}
	_, err := base64.StdEncoding.DecodeString(in.UserData)
	switch {
	case in.Name == "" || len(in.Name) > 255:
		return "Invalid input for field/attribute name. Value: " + in.Name
	case err != nil:
		return "Invalid input for field/attribute user_data. Value is not 'base64'"
	case len(in.UserData) > 65535:
		return "Invalid input for field/attribute user_data. Value is too long"
	case len(in.Networks) == 0 && q.since(37):
		return "Invalid input for field/attribute server. 'networks' is a required property"
	case len(in.Tags) > 50:
		return "Invalid input for field/attribute tags. Value is too long"
	}
	for _, d := range in.Devices {
		if d.Type != "" && !q.since(67) {
			return "Invalid input for field/attribute 0. Additional properties are not allowed ('volume_type' was unexpected)"
		}
	}
	return ""
}

// devices makes the volumes of a server.
func (r *Region) devices(q *call, in *createServer, s *Server) bool {
	for _, d := range in.Devices {
		switch {
		case d.Source == "image" && d.Destination == "volume":
			if r.image(d.UUID) == nil {
				q.fail(http.StatusBadRequest, "Block Device Mapping is Invalid: failed to get image "+d.UUID+".")
				return false
			}
			if d.Size < r.image(d.UUID).MinDisk {
				q.fail(http.StatusBadRequest, fmt.Sprintf("Volume is smaller than the minimum size specified in image metadata. Volume size is %d bytes, minimum size is %d bytes.", d.Size<<30, r.image(d.UUID).MinDisk<<30))
				return false
			}
			v := &Volume{ID: newID(), SizeGiB: d.Size, Type: d.Type, DeleteOnTermination: d.Delete}
			r.volumes = append(r.volumes, v)
			s.Volumes, s.ImageID = append(s.Volumes, v.ID), ""
		default:
			q.fail(http.StatusBadRequest, "Block Device Mapping is Invalid: this cloud plays volumes that are made of images only.")
			return false
		}
	}
	if len(in.Devices) == 0 && in.Image == "" {
		q.fail(http.StatusBadRequest, "Invalid imageRef provided.")
		return false
	}
	if len(s.Volumes) == 0 && s.Flavor.Disk == 0 {
		q.fail(http.StatusForbidden, "Only volume-backed servers are allowed for flavors with zero disk.")
		return false
	}
	return true
}

func (r *Region) serverGroup(q *call, body createBody, s *Server) bool {
	for _, h := range []*struct {
		Group string `json:"group"`
	}{body.Hints, body.OldHints} {
		if h != nil && h.Group != "" {
			s.GroupID = h.Group
		}
	}
	if s.GroupID != "" && !slices.ContainsFunc(r.anti, func(g *ServerGroup) bool { return g.ID == s.GroupID }) {
		q.fail(http.StatusBadRequest, "Instance group "+s.GroupID+" could not be found.")
		return false
	}
	return true
}

// used counts what a project has.
func (r *Region) used(project string) Quota {
	var u Quota
	for _, s := range r.servers {
		if s.Project == project {
			u.Instances, u.Cores, u.RAM = u.Instances+1, u.Cores+s.Flavor.VCPUs, u.RAM+s.Flavor.RAM
		}
	}
	for _, p := range r.ports {
		if p.Project == project {
			u.Ports++
		}
	}
	for _, f := range r.floating {
		if f.Project == project {
			u.FloatingIPs++
		}
	}
	return u
}

func (r *Region) withinQuota(q *call, f *Flavor) bool {
	u := r.used(q.token.login.ProjectID)
	for _, one := range []struct {
		name              string
		want, used, limit int
	}{{"instances", 1, u.Instances, r.quota.Instances}, {"cores", f.VCPUs, u.Cores, r.quota.Cores}, {"ram", f.RAM, u.RAM, r.quota.RAM}} {
		if one.limit >= 0 && one.used+one.want > one.limit {
			q.fail(http.StatusForbidden, fmt.Sprintf("Quota exceeded for %s: Requested %d, but already used %d of %d %s", one.name, one.want, one.used, one.limit, one.name))
			return false
		}
	}
	return true
}

// nics gives a server its ports.
func (r *Region) nics(q *call, in *createServer, s *Server) bool {
	var list []nic
	var word string
	if json.Unmarshal(in.Networks, &word) == nil {
		switch word {
		case "none":
			return true
		case "auto":
			list = []nic{{UUID: r.networks[0].ID}}
		}
	} else if err := json.Unmarshal(in.Networks, &list); err != nil && len(in.Networks) > 0 {
		q.fail(http.StatusBadRequest, "Invalid input for field/attribute networks. "+err.Error())
		return false
	}
	if len(list) == 0 {
		list = []nic{{UUID: r.networks[0].ID}}
	}
	made := len(r.ports)
	for _, n := range list {
		if n.Port != "" {
			p := r.port(n.Port)
			switch {
			case p == nil:
				q.fail(http.StatusBadRequest, "Port "+n.Port+" could not be found.")
				return false
			case p.DeviceID != "":
				q.fail(http.StatusConflict, "Port "+n.Port+" is still in use.")
				return false
			}
			s.ports = append(s.ports, p.ID)
			continue
		}
		network := r.network(n.UUID)
		if network == nil {
			q.fail(http.StatusBadRequest, "Network "+n.UUID+" could not be found.")
			return false
		}
		if r.quota.Ports >= 0 && r.used(s.Project).Ports >= r.quota.Ports {
			r.ports = r.ports[:made]
			q.fail(http.StatusForbidden, "Maximum number of ports exceeded")
			return false
		}
		p := r.newPort(network, s.Project)
		p.byNova, p.SecurityGroups = true, nil
		for _, name := range s.SecurityGroups {
			id, _ := r.securityGroup(name)
			p.SecurityGroups = append(p.SecurityGroups, id)
		}
		s.ports = append(s.ports, p.ID)
	}
	return true
}

func encode(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return base64.StdEncoding.EncodeToString(b)
}

func (r *Region) listFlavors(q *call, parts []string) {
	detail := len(parts) == 2 && parts[1] == "detail"
	if len(parts) == 2 && !detail {
		f := r.flavor(parts[1])
		if f == nil {
			q.fail(http.StatusNotFound, "Flavor "+parts[1]+" could not be found.")
			return
		}
		q.answer(http.StatusOK, map[string]any{"flavor": describeFlavor(q, f)})
		return
	}
	if len(parts) == 3 && parts[2] == "os-extra_specs" {
		f := r.flavor(parts[1])
		if f == nil {
			q.fail(http.StatusNotFound, "Flavor "+parts[1]+" could not be found.")
			return
		}
		specs := f.ExtraSpecs
		if specs == nil {
			specs = map[string]string{}
		}
		q.answer(http.StatusOK, map[string]any{"extra_specs": specs})
		return
	}
	list := []any{}
	for _, f := range r.flavors {
		if detail {
			list = append(list, describeFlavor(q, f))
		} else {
			list = append(list, map[string]any{"id": f.ID, "name": f.Name})
		}
	}
	q.answer(http.StatusOK, map[string]any{"flavors": list})
}

func describeFlavor(q *call, f *Flavor) map[string]any {
	out := map[string]any{"id": f.ID, "name": f.Name, "vcpus": f.VCPUs, "ram": f.RAM, "disk": f.Disk, "OS-FLV-EXT-DATA:ephemeral": f.Ephemeral,
		"swap": "", "rxtx_factor": 1.0, "os-flavor-access:is_public": true, "OS-FLV-DISABLED:disabled": false, "links": []any{}}
	if q.since(75) {
		out["swap"] = 0
	}
	if q.since(61) {
		out["extra_specs"] = map[string]string{}
		if f.ExtraSpecs != nil {
			out["extra_specs"] = f.ExtraSpecs
		}
	}
	return out
}

func (r *Region) limits(q *call) {
	u := r.used(q.token.login.ProjectID)
	q.answer(http.StatusOK, map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": map[string]any{
		"maxTotalInstances": r.quota.Instances, "totalInstancesUsed": u.Instances, "maxTotalCores": r.quota.Cores, "totalCoresUsed": u.Cores,
		"maxTotalRAMSize": r.quota.RAM, "totalRAMUsed": u.RAM, "maxServerMeta": 128, "maxServerGroups": 10, "maxServerGroupMembers": 10, "maxTotalKeypairs": 100,
		"totalServerGroupsUsed": len(r.anti),
	}}})
}

func (r *Region) serverGroups(q *call, parts []string) {
	describe := func(g *ServerGroup) map[string]any {
		out := map[string]any{"id": g.ID, "name": g.Name, "members": append([]string{}, g.Members...)}
		if q.since(64) {
			out["policy"], out["rules"] = g.Policy, map[string]any{}
		} else {
			out["policies"], out["metadata"] = []string{g.Policy}, map[string]any{}
		}
		return out
	}
	at := -1
	if len(parts) == 2 {
		at = slices.IndexFunc(r.anti, func(g *ServerGroup) bool { return g.ID == parts[1] })
		if at < 0 {
			q.fail(http.StatusNotFound, "Instance group "+parts[1]+" could not be found.")
			return
		}
	}
	switch {
	case q.Method == http.MethodGet && at >= 0:
		q.answer(http.StatusOK, map[string]any{"server_group": describe(r.anti[at])})
	case q.Method == http.MethodGet:
		list := []any{}
		for _, g := range r.anti {
			if g.Project == q.token.login.ProjectID {
				list = append(list, describe(g))
			}
		}
		q.answer(http.StatusOK, map[string]any{"server_groups": list})
	case q.Method == http.MethodDelete && at >= 0:
		r.anti = slices.Delete(r.anti, at, at+1)
		q.w.WriteHeader(http.StatusNoContent)
	case q.Method == http.MethodPost:
		var body struct {
			Group struct {
				Name     string   `json:"name"`
				Policy   string   `json:"policy"`
				Policies []string `json:"policies"`
			} `json:"server_group"`
		}
		if !q.decode(&body) {
			return
		}
		policy := body.Group.Policy
		if !q.since(64) {
			policy = strings.Join(body.Group.Policies, ",")
		}
		if !slices.Contains([]string{"affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"}, policy) {
			q.fail(http.StatusBadRequest, fmt.Sprintf("Invalid input for field/attribute policy. Value: %s. '%s' is not one of ['anti-affinity', 'affinity', 'soft-anti-affinity', 'soft-affinity']", policy, policy))
			return
		}
		g := &ServerGroup{ID: newID(), Name: body.Group.Name, Policy: policy, Project: q.token.login.ProjectID}
		r.anti = append(r.anti, g)
		q.answer(http.StatusOK, map[string]any{"server_group": describe(g)})
	}
}

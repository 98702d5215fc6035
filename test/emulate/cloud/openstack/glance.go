package openstack

import (
	"encoding/json"
	"net/http"
	"strings"
)

// glance answers the image API: images by ID and by name.
func (r *Region) glance(q *call) {
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	if q.Method != http.MethodGet || parts[0] != "images" {
		q.fail(http.StatusNotFound, "The resource could not be found.")
		return
	}
	describe := func(i *Image) map[string]any {
		out := map[string]any{"id": i.ID, "name": i.Name, "status": i.Status, "min_disk": i.MinDisk, "min_ram": 0, "size": 1 << 29, "visibility": "public",
			"created_at": i.Created.UTC().Format(seconds), "updated_at": i.Created.UTC().Format(seconds), "tags": []string{}, "disk_format": "qcow2", "container_format": "bare"}
		for name, value := range i.Properties {
			out[name] = value
		}
		return out
	}
	if len(parts) == 2 {
		if i := r.image(parts[1]); i != nil {
			q.answer(http.StatusOK, describe(i))
			return
		}
		q.fail(http.StatusNotFound, "No image found with ID "+parts[1])
		return
	}
	list := []any{}
	for _, i := range r.images {
		if d := describe(i); q.suits(d) {
			list = append(list, d)
		}
	}
	q.answer(http.StatusOK, map[string]any{"images": list, "first": "/v2/images", "schema": "/v2/schemas/images"})
}

// cinder answers what of the volume API shows that nothing is left behind.
func (r *Region) cinder(q *call) {
	if q.Method != http.MethodGet || !strings.Contains(q.path, "volumes") {
		q.fail(http.StatusNotFound, "The resource could not be found.")
		return
	}
	list := []any{}
	for _, v := range r.volumes {
		attached := []any{}
		if v.ServerID != "" {
			attached = append(attached, map[string]any{"server_id": v.ServerID, "volume_id": v.ID})
		}
		list = append(list, map[string]any{"id": v.ID, "size": v.SizeGiB, "volume_type": v.Type, "status": "in-use", "attachments": attached, "metadata": map[string]string{}, "name": ""})
	}
	q.answer(http.StatusOK, map[string]any{"volumes": list})
}

// metadata answers what a server asks at 169.254.169.254, by its ID:
// /metadata/ID/openstack/latest/meta_data.json and the like.
func (c *Cloud) metadata(q *call) {
	id, path, _ := strings.Cut(q.path, "/")
	for _, r := range c.regions {
		s := r.server(id)
		if s == nil {
			continue
		}
		plain := func(text string) { q.w.body.WriteString(text) }
		fixed := ""
		for _, a := range r.addresses(s) {
			if a.Type == "fixed" && fixed == "" {
				fixed = a.IP
			}
		}
		switch path {
		case "openstack/latest/meta_data.json":
			doc := map[string]any{"uuid": s.ID, "name": s.Name, "hostname": hostname(s.Name), "availability_zone": s.Zone, "project_id": s.Project, "meta": s.Metadata, "launch_index": 0, "devices": []any{},
				"public_keys": map[string]string{s.KeyName: "ssh-ed25519 AAAA ops"}, "keys": []any{map[string]any{"name": s.KeyName, "type": "ssh", "data": "ssh-ed25519 AAAA ops"}}}
			raw, _ := json.Marshal(doc)
			q.w.body.Write(raw)
		case "openstack/latest/user_data", "latest/user-data":
			plain(string(s.UserData))
		case "latest/meta-data/instance-type":
			plain(s.Flavor.Name)
		case "latest/meta-data/hostname", "latest/meta-data/local-hostname":
			plain(hostname(s.Name))
		case "latest/meta-data/placement/availability-zone":
			plain(s.Zone)
		case "latest/meta-data/local-ipv4":
			plain(fixed)
		default:
			q.fail(http.StatusNotFound, "Not Found")
		}
		return
	}
	q.fail(http.StatusNotFound, "Not Found")
}

// MetadataURL is where a server's metadata service answers: what the server itself
// finds at http://169.254.169.254.
func (c *Cloud) MetadataURL(server string) string { return c.address + "/metadata/" + server }

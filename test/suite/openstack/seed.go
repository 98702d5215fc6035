package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// outside is the external network.
const outside = "public"

// Seed is what the tests find in the stack.
type Seed struct {
	ApplicationID, ApplicationSecret string // of user demo
	Project                          string // demo's ID
	admin, demo                      *client
}

// client asks as one user.
type client struct {
	stack         *Stack
	user, project string
	token         string
}

// login gets a token by password.
func (c *client) login(ctx context.Context) error {
	domain := map[string]any{"id": "default"}
	body := map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{"name": c.user, "password": password, "domain": domain}}},
		"scope":    map[string]any{"project": map[string]any{"name": c.project, "domain": domain}}}}
	header, err := c.do(ctx, "POST", c.stack.url("keystone", "/v3/auth/tokens"), body, nil)
	if err == nil {
		c.token = header.Get("X-Subject-Token")
	}
	return err
}

// do makes one request. Any status from 300 on is an error with the answer's words.
func (c *client) do(ctx context.Context, method, url string, body, into any) (http.Header, error) {
	var reader io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		reader, kind = bytes.NewReader(b), "application/octet-stream"
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	q, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", kind)
	q.Header.Set("X-Auth-Token", c.token)
	version := "compute 2.79"
	for service, other := range map[string]string{"magnum": "container-infra 1.10", "cinder": "volume 3.70"} {
		if strings.HasPrefix(url, c.stack.url(service, "/")) {
			version = other
		}
	}
	q.Header.Set("OpenStack-API-Version", version)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, strings.TrimSpace(string(text)))
	}
	if into != nil {
		err = json.Unmarshal(text, into)
	}
	return answer.Header, err
}

// object is a JSON object; id is that of the object under a name.
type object = map[string]any

func id(tree object, name string) string {
	inner, _ := tree[name].(object)
	s, _ := inner["id"].(string)
	return s
}

// fillKeystone makes the catalog, the project demo and its user.
func (s *Stack) fillKeystone(ctx context.Context) error {
	admin := &client{stack: s, user: "admin", project: "admin"}
	s.seed.admin = admin
	if err := s.until(ctx, "Keystone lets the administrator in", func() error { return admin.login(ctx) }); err != nil {
		return err
	}
	post := func(path string, body object) (out object, err error) {
		_, err = admin.do(ctx, "POST", s.url("keystone", "/v3"+path), body, &out)
		return out, err
	}
	for typ, url := range map[string]string{"compute": s.url("nova", "/v2.1"), "placement": s.url("placement", ""), "image": s.url("glance", ""), "network": s.url("neutron", ""), "volumev3": s.url("cinder", "/v3/%(project_id)s"), "container-infra": s.url("magnum", "/v1")} {
		service, err := post("/services", object{"service": object{"type": typ, "name": typ}})
		if err != nil {
			return err
		}
		for _, face := range []string{"public", "internal", "admin"} {
			if _, err := post("/endpoints", object{"endpoint": object{"interface": face, "region_id": regionName, "service_id": id(service, "service"), "url": url}}); err != nil {
				return err
			}
		}
	}
	project, err := post("/projects", object{"project": object{"name": "demo", "domain_id": "default"}})
	if err != nil {
		return err
	}
	user, err := post("/users", object{"user": object{"name": "demo", "domain_id": "default", "password": password}})
	if err != nil {
		return err
	}
	var roles struct {
		Roles []struct{ ID, Name string }
	}
	if _, err := admin.do(ctx, "GET", s.url("keystone", "/v3/roles"), nil, &roles); err != nil {
		return err
	}
	byName := map[string]string{}
	for _, role := range roles.Roles {
		byName[role.Name] = role.ID
		if role.Name == "member" || role.Name == "reader" {
			path := "/v3/projects/" + id(project, "project") + "/users/" + id(user, "user") + "/roles/" + role.ID
			if _, err := admin.do(ctx, "PUT", s.url("keystone", path), nil, nil); err != nil {
				return err
			}
		}
	}
	if err := s.fillMagnum(byName, post); err != nil {
		return err
	}
	return s.enter(ctx)
}

// enter logs demo in and makes an application credential.
func (s *Stack) enter(ctx context.Context) error {
	demo := &client{stack: s, user: "demo", project: "demo"}
	s.seed.demo = demo
	if err := demo.login(ctx); err != nil {
		return err
	}
	var list struct {
		Users, Projects []struct{ ID string }
	}
	for _, what := range []string{"users", "projects"} {
		if _, err := s.seed.admin.do(ctx, "GET", s.url("keystone", "/v3/"+what+"?name=demo"), nil, &list); err != nil {
			return err
		}
	}
	s.seed.Project = list.Projects[0].ID
	var made struct {
		Credential struct{ ID, Secret string } `json:"application_credential"`
	}
	_, err := demo.do(ctx, "POST", s.url("keystone", "/v3/users/"+list.Users[0].ID+"/application_credentials"),
		object{"application_credential": object{"name": fmt.Sprintf("autoscaler-agent-%d", time.Now().UnixNano())}}, &made)
	s.seed.ApplicationID, s.seed.ApplicationSecret = made.Credential.ID, made.Credential.Secret
	return err
}

// fill makes flavors, an image, a network and a key, gives demo a quota, and waits for
// the host.
func (s *Stack) fill(ctx context.Context) error {
	admin, demo := s.seed.admin, s.seed.demo
	for _, f := range []object{{"name": "m1.small", "vcpus": 1, "ram": 512, "disk": 1}, {"name": "m1.medium", "vcpus": 2, "ram": 2048, "disk": 10}, {"name": "too.big", "vcpus": 2000, "ram": 2048, "disk": 10}} {
		if _, err := admin.do(ctx, "POST", s.url("nova", "/v2.1/flavors"), object{"flavor": f}, nil); err != nil {
			return err
		}
	}
	var image object
	if _, err := admin.do(ctx, "POST", s.url("glance", "/v2/images"), object{"name": "worker", "disk_format": "raw", "container_format": "bare", "visibility": "public", "os_distro": "fedora-coreos"}, &image); err != nil {
		return err
	}
	if _, err := admin.do(ctx, "PUT", s.url("glance", fmt.Sprintf("/v2/images/%v/file", image["id"])), bytes.Repeat([]byte("disk"), 256), nil); err != nil {
		return err
	}
	var network object
	if _, err := demo.do(ctx, "POST", s.url("neutron", "/v2.0/networks"), object{"network": object{"name": "workers"}}, &network); err != nil {
		return err
	}
	if _, err := demo.do(ctx, "POST", s.url("neutron", "/v2.0/subnets"), object{"subnet": object{"network_id": id(network, "network"), "ip_version": 4, "cidr": "10.0.0.0/16"}}, nil); err != nil {
		return err
	}
	// Magnum wants one that is external, whatever its driver makes of it.
	external := object{"name": outside, "router:external": true, "provider:network_type": "flat", "provider:physical_network": outside}
	if _, err := admin.do(ctx, "POST", s.url("neutron", "/v2.0/networks"), object{"network": external}, nil); err != nil {
		return err
	}
	if _, err := demo.do(ctx, "POST", s.url("nova", "/v2.1/os-keypairs"), object{"keypair": object{"name": "ops"}}, nil); err != nil {
		return err
	}
	if err := s.Quota(ctx, 100); err != nil {
		return err
	}
	if err := s.fillCinder(ctx); err != nil {
		return err
	}
	return s.until(ctx, "the compute host is up", func() error {
		var list struct {
			Hypervisors []struct{ State string }
		}
		// Not /detail: that asks every host by message and waits long for a dead one.
		if _, err := admin.do(ctx, "GET", s.url("nova", "/v2.1/os-hypervisors"), nil, &list); err != nil {
			return err
		}
		if len(list.Hypervisors) == 0 || list.Hypervisors[0].State != "up" {
			return fmt.Errorf("%d hosts", len(list.Hypervisors))
		}
		return s.ended()
	})
}

// Quota sets how many servers demo may have.
func (s *Stack) Quota(ctx context.Context, instances int) error {
	_, err := s.seed.admin.do(ctx, "PUT", s.url("nova", "/v2.1/os-quota-sets/"+s.seed.Project), object{"quota_set": object{
		"instances": instances, "cores": 10000, "ram": -1, "server_groups": 50, "server_group_members": 100}}, nil)
	return err
}

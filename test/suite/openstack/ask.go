package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
)

// Server is what the tests look at of one of Nova's servers.
type Server struct {
	ID, Name, Status string
	Task             string `json:"OS-EXT-STS:task_state"`
	Metadata         map[string]string
	Tags             []string
	Addresses        map[string][]struct{ Addr string }
}

// Going tells a server that is on its way out: the compute host takes its task away a
// moment before it is gone.
func (s Server) Going() bool { return s.Task == "deleting" || s.Status == "DELETED" }

// Env are the variables by which a client finds the stack as user demo.
func (s *Stack) Env() map[string]string {
	return map[string]string{"OS_AUTH_URL": s.Front.address + "/keystone/v3", "OS_APPLICATION_CREDENTIAL_ID": s.seed.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET": s.seed.ApplicationSecret,
		"OS_REGION_NAME": regionName, "OS_CLOUD": "", "OS_CLIENT_CONFIG_FILE": "", "OS_USERNAME": "", "OS_PASSWORD": ""}
}

// PersonEnv are the variables by which the openstack command finds the stack, with the
// password of user demo.
func (s *Stack) PersonEnv() []string {
	return []string{"OS_AUTH_URL=" + s.Front.address + "/keystone/v3", "OS_USERNAME=demo", "OS_PASSWORD=" + password, "OS_PROJECT_NAME=demo",
		"OS_USER_DOMAIN_ID=default", "OS_PROJECT_DOMAIN_ID=default", "OS_REGION_NAME=" + regionName, "OS_IDENTITY_API_VERSION=3"}
}

// Servers lists all of demo's, as the administrator sees them.
func (s *Stack) Servers(ctx context.Context) ([]Server, error) {
	var doc struct{ Servers []Server }
	query := url.Values{"all_tenants": {"1"}, "project_id": {s.seed.Project}}
	err := s.ask(ctx, s.seed.admin, "GET", s.url("nova", "/v2.1/servers/detail?"+query.Encode()), nil, &doc)
	return doc.Servers, err
}

// ask repeats a request once with a new token: tokens end when an account is disabled.
func (s *Stack) ask(ctx context.Context, c *client, method, url string, body, into any) error {
	_, err := c.do(ctx, method, url, body, into)
	if err != nil && c.login(ctx) == nil {
		_, err = c.do(ctx, method, url, body, into)
	}
	return err
}

// CreateServer makes a server as demo, past the agent.
func (s *Stack) CreateServer(ctx context.Context, name string, metadata map[string]string, tags []string) (string, error) {
	ids := map[string]string{}
	for what, at := range map[string]string{"flavors": s.url("nova", "/v2.1/flavors"), "images": s.url("glance", "/v2/images"), "networks": s.url("neutron", "/v2.0/networks")} {
		var doc map[string]any
		if err := s.ask(ctx, s.seed.demo, "GET", at, nil, &doc); err != nil {
			return "", err
		}
		list, _ := doc[what].([]any)
		for _, one := range list {
			if o := one.(object); o["name"] == map[string]string{"flavors": "m1.small", "images": "worker", "networks": "workers"}[what] {
				ids[what] = fmt.Sprint(o["id"])
			}
		}
	}
	body := object{"server": object{"name": name, "flavorRef": ids["flavors"], "imageRef": ids["images"], "networks": []any{object{"uuid": ids["networks"]}}, "metadata": metadata, "tags": append([]string{}, tags...)}}
	var made object
	err := s.ask(ctx, s.seed.demo, "POST", s.url("nova", "/v2.1/servers"), body, &made)
	return id(made, "server"), err
}

// DeleteServer deletes one as the administrator; one that is gone is no matter.
func (s *Stack) DeleteServer(ctx context.Context, id string) {
	_, _ = s.seed.admin.do(ctx, "DELETE", s.url("nova", "/v2.1/servers/"+id), nil, nil)
}

// EnableDemo lets demo in, or lets its tokens and its application credential end, and
// waits until the services know it: until they refuse a token that they took last of all.
func (s *Stack) EnableDemo(ctx context.Context, on bool) error {
	var list struct{ Users []struct{ ID string } }
	if err := s.ask(ctx, s.seed.admin, "GET", s.url("keystone", "/v3/users?name=demo"), nil, &list); err != nil {
		return err
	}
	set := func() error {
		return s.ask(ctx, s.seed.admin, "PATCH", s.url("keystone", "/v3/users/"+list.Users[0].ID), object{"user": object{"enabled": on}}, nil)
	}
	if on {
		return set()
	}
	services := []string{s.url("nova", "/v2.1/flavors"), s.url("neutron", "/v2.0/networks"), s.url("glance", "/v2/images"), s.url("magnum", "/v1/clusters")}
	last := *s.seed.demo
	for _, at := range services {
		if err := s.ask(ctx, &last, "GET", at, nil, nil); err != nil {
			return err
		}
	}
	if err := set(); err != nil {
		return err
	}
	return s.until(ctx, "the services refuse demo", func() error {
		for _, at := range services {
			if _, err := last.do(ctx, "GET", at, nil, nil); err == nil {
				return fmt.Errorf("%s still answers", at)
			}
		}
		return nil
	})
}

// CloseHost lets Nova's scheduler find no valid host, or takes that back: the only host
// there is takes no more servers.
func (s *Stack) CloseHost(ctx context.Context, on bool) error {
	var list struct{ Services []struct{ ID, Binary string } }
	if err := s.ask(ctx, s.seed.admin, "GET", s.url("nova", "/v2.1/os-services"), nil, &list); err != nil {
		return err
	}
	state := map[bool]string{true: "disabled", false: "enabled"}[on]
	for _, one := range list.Services {
		if one.Binary == "nova-compute" {
			return s.ask(ctx, s.seed.admin, "PUT", s.url("nova", "/v2.1/os-services/"+one.ID), object{"status": state}, nil)
		}
	}
	return errors.New("there is no compute service")
}

// Busy counts what is under way in Nova: servers with a metadata value that build, go or
// change, and requests for servers of anybody that no host has yet. It looks into Nova's
// database: asked as often as a wait needs, the API would have more work with the question
// than with the servers.
func (s *Stack) Busy(ctx context.Context, metadata string) (string, error) {
	return s.query(ctx, `SELECT (SELECT COUNT(*) FROM nova_api.build_requests) + (SELECT COUNT(DISTINCT i.uuid) FROM nova.instances i
		JOIN nova.instance_metadata m ON m.instance_uuid = i.uuid WHERE m.value = '`+metadata+`' AND i.deleted = 0 AND (i.task_state IS NOT NULL OR i.vm_state IN ('building', 'deleted')))`)
}

// BusyCluster counts what is under way in one of Magnum's clusters, by its database.
func (s *Stack) BusyCluster(ctx context.Context, name string) (string, error) {
	return s.query(ctx, `SELECT (SELECT COUNT(*) FROM magnum.cluster WHERE name = '`+name+`' AND COALESCE(status, '_IN_PROGRESS') LIKE '%IN_PROGRESS')
		+ (SELECT COUNT(*) FROM magnum.nodegroup g JOIN magnum.cluster c ON c.uuid = g.cluster_id WHERE c.name = '`+name+`' AND g.status LIKE '%IN_PROGRESS')`)
}

// query returns what the database answers.
func (s *Stack) query(ctx context.Context, text string) (string, error) {
	cmd := exec.CommandContext(ctx, "mariadb", "--no-defaults", "-S", s.socket(), "--batch", "--skip-column-names", "-e", text)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	answer := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("mariadb: %w: %s", err, answer)
	}
	return answer, err
}

// Left lists demo's servers, and every port and volume there is.
func (s *Stack) Left(ctx context.Context) ([]string, error) {
	servers, err := s.Servers(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, one := range servers {
		out = append(out, "server "+one.Name+" "+one.Status+" "+one.Task)
	}
	var doc struct {
		Ports []struct{ ID, Name string }
	}
	if err := s.ask(ctx, s.seed.admin, "GET", s.url("neutron", "/v2.0/ports"), nil, &doc); err != nil {
		return nil, err
	}
	for _, p := range doc.Ports {
		out = append(out, "port "+p.ID+" "+p.Name)
	}
	volumes, err := s.Volumes(ctx)
	for _, v := range volumes {
		out = append(out, "volume "+v)
	}
	return out, err
}

// HideImage makes Glance refuse the workers' image to everybody, or takes that back.
func (s *Stack) HideImage(ctx context.Context, on bool) error {
	var list struct{ Images []struct{ ID, Name string } }
	if err := s.ask(ctx, s.seed.admin, "GET", s.url("glance", "/v2/images"), nil, &list); err != nil {
		return err
	}
	action := map[bool]string{true: "deactivate", false: "reactivate"}[on]
	for _, one := range list.Images {
		if one.Name == "worker" {
			return s.ask(ctx, s.seed.admin, "POST", s.url("glance", "/v2/images/"+one.ID+"/actions/"+action), nil, nil)
		}
	}
	return errors.New("there is no image worker")
}

package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	openstackapi "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestNovaLogins: every way to give credentials logs in and makes a server, two clouds of
// clouds.yaml at once among them; what is wrong is refused with a remedy.
func TestNovaLogins(t *testing.T) {
	w := newNova(t, openstack.Options{})
	dir := t.TempDir()
	file := func(name, format string, args ...any) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cloudsYAML := file("clouds.yaml", `clouds:
  east:
    region_name: RegionOne
    auth_type: v3applicationcredential
    auth: {auth_url: %[1]s, application_credential_id: %[2]s, application_credential_secret: %[3]s}
  left: # of another login
    region_name: RegionOne
    auth: {auth_url: %[1]s, application_credential_id: %[2]s, application_credential_secret: %[3]s, username: %[4]s, password: %[5]s,
      project_id: 0a0a, project_name: %[6]s, domain_id: default, user_domain_name: Default}
  west:
    region_name: RegionTwo
    auth: {auth_url: %[1]s, username: %[4]s, password: %[5]s, project_name: %[6]s, user_domain_name: Default, project_domain_name: Default}
`, w.AuthURL(), openstack.ApplicationID, openstack.ApplicationSecret, openstack.DemoUser, openstack.DemoPassword, openstack.DemoProject)
	cloudConfig := file("cloud-config", "[Global]\nauth-url=%s\napplication-credential-id=%s\napplication-credential-secret=%s # of demo\nregion = RegionOne ; main site\n",
		w.AuthURL(), openstack.ApplicationID, openstack.ApplicationSecret)
	names := []string{"OS_CLOUD", "OS_CLIENT_CONFIG_FILE", "OS_AUTH_URL", "OS_REGION_NAME", "OS_APPLICATION_CREDENTIAL_ID", "OS_APPLICATION_CREDENTIAL_SECRET",
		"OS_USERNAME", "OS_PASSWORD", "OS_PROJECT_NAME", "OS_USER_DOMAIN_NAME", "OS_PROJECT_DOMAIN_NAME"}
	one := []any{map[string]any{"name": "one", "region": "RegionOne"}, map[string]any{"name": "two", "region": "RegionTwo"}}
	both := []any{map[string]any{"name": "one", "cloud": "east"}, map[string]any{"name": "two", "cloud": "west"}}
	for name, c := range map[string]struct {
		access openstackapi.Config
		env    map[string]string
		clouds []any
		kind   provider.Kind
		fails  bool
	}{
		"OS_APPLICATION_CREDENTIAL_ID": {env: map[string]string{"OS_AUTH_URL": w.AuthURL(), "OS_APPLICATION_CREDENTIAL_ID": openstack.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET": openstack.ApplicationSecret}, clouds: one},
		"OS_USERNAME": {env: map[string]string{"OS_AUTH_URL": w.AuthURL(), "OS_USERNAME": openstack.DemoUser, "OS_PASSWORD": openstack.DemoPassword, "OS_PROJECT_NAME": openstack.DemoProject,
			"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"}, clouds: one},
		"OS_CLOUD":                          {env: map[string]string{"OS_CLOUD": "west", "OS_CLIENT_CONFIG_FILE": cloudsYAML}, clouds: one},
		"AUTOSCALER_OPENSTACK_CLOUD":        {access: openstackapi.Config{Cloud: "east"}, env: map[string]string{"OS_CLIENT_CONFIG_FILE": cloudsYAML}, clouds: one},
		"AUTOSCALER_OPENSTACK_CLOUD_CONFIG": {access: openstackapi.Config{CloudConfig: cloudConfig}, clouds: one},
		"an application credential beside the scope and the password of another login": {access: openstackapi.Config{Cloud: "left"}, env: map[string]string{"OS_CLIENT_CONFIG_FILE": cloudsYAML}, clouds: one},
		"two clouds":     {env: map[string]string{"OS_CLIENT_CONFIG_FILE": cloudsYAML}, clouds: both},
		"a wrong secret": {env: map[string]string{"OS_AUTH_URL": w.AuthURL(), "OS_APPLICATION_CREDENTIAL_ID": openstack.ApplicationID, "OS_APPLICATION_CREDENTIAL_SECRET": "x"}, clouds: one, fails: true, kind: provider.Denied},
		"no such region": {access: openstackapi.Config{CloudConfig: cloudConfig}, clouds: []any{map[string]any{"name": "one", "region": "Nowhere"}, map[string]any{"name": "two"}}, fails: true, kind: provider.Invalid},
		"no credentials": {clouds: one, fails: true, kind: provider.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range names {
				t.Setenv(n, c.env[n])
			}
			w.extra["clouds"], w.extra["cluster"] = c.clouds, fmt.Sprintf("c%d", len(w.all()))
			c.access.Timeout = 5 * time.Second
			p, err := nova.New(nova.Config{ParallelCreates: 1}, c.access, w.section, reservation, nova.WithTokens(tokens))
			if err != nil {
				t.Fatal(err)
			}
			if c.fails {
				_, err := p.Groups(t.Context())
				wantErr(t, err, c.kind)
				for _, e := range provider.Errors(err) {
					if e.Remedy == "" {
						t.Errorf("no remedy: %v", e)
					}
				}
				return
			}
			if err := p.Resize(t.Context(), others, 0, 1); err != nil {
				t.Error(err)
			}
			if g := readGroup(t, p, others); g.Target != 1 || g.Instances[0].Zone == "" {
				t.Errorf("%+v", g)
			}
		})
	}
}

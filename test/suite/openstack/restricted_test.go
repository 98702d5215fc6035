package openstack_test

import (
	"context"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	api "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/openstack"
)

// restricted: a credential with the access rules that openstack-rules prints is enough for the
// agent's whole work on Nova, and real Keystone and the services let it do nothing else.
func restricted(t *testing.T, s *openstack.Stack) {
	c, err := s.Restrict(t.Context(), nova.AccessRules(false))
	if err != nil {
		t.Fatal(err)
	}
	worksWith(t, s, c)
	nothingElse(t, s, c)
	consoleRule(t, s, c)
}

// become lets the provider find a credential in its environment.
func become(t *testing.T, c openstack.Credential) {
	t.Helper()
	t.Setenv("OS_APPLICATION_CREDENTIAL_ID", c.ID)
	t.Setenv("OS_APPLICATION_CREDENTIAL_SECRET", c.Secret)
}

// worksWith plays a growth and its end with a credential, and wants every call among the
// access rules, and every rule but those of floating addresses, which want a router, in use.
func worksWith(t *testing.T, s *openstack.Stack, c openstack.Credential) {
	t.Helper()
	become(t, c)
	var mu sync.Mutex
	used := map[string]bool{}
	s.Watch(func(r *http.Request, _ []byte, status int) {
		mu.Lock()
		defer mu.Unlock()
		// Whoever asks is told the versions of Nova's API.
		allowed := strings.HasPrefix(r.URL.Path, "/keystone/") || r.URL.Path == "/nova/v2.1/"
		for _, rule := range nova.AccessRules(false) {
			if matches(rule, r) {
				allowed, used[rule.Method+" "+rule.Path] = true, true
			}
		}
		if status == http.StatusUnauthorized || !allowed {
			t.Errorf("%s %s: %d, within the rules %t", r.Method, r.URL.Path, status, allowed)
		}
	})
	defer s.Watch(nil)
	w, p := newWorld(t, s, func(g map[string]any) { withPorts(g); g["securityGroups"] = []any{"default"} })
	grow(t, p, 2)
	w.settle(t)
	g := readGroup(t, p)
	if g.Target != 2 || len(w.Alive(providertest.Workers)) != 2 {
		for _, i := range g.Instances {
			t.Errorf("%s: %s: %+v", i.ID, i.Phase, i.Failure)
		}
		t.FailNow()
	}
	if err := p.Delete(t.Context(), providertest.Workers, w.Alive(providertest.Workers)...); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	for _, i := range readGroup(t, p).Instances {
		if i.Phase != cluster.PhaseGone {
			t.Errorf("%+v", i)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, rule := range nova.AccessRules(false) {
		if call := rule.Method + " " + rule.Path; !used[call] && !strings.Contains(call, "floatingips") {
			t.Logf("the growth made no use of %s", call)
		}
	}
}

// matches tells whether an access rule is for a call at the front.
func matches(rule api.AccessRule, r *http.Request) bool {
	service := map[string]string{"compute": "/nova", "image": "/glance", "network": "/neutron"}[rule.Service]
	at, ok := strings.CutPrefix(r.URL.Path, service)
	same, err := path.Match(rule.Path, at)
	return ok && err == nil && same && rule.Method == r.Method
}

// nothingElse tries what a thief of the credential would.
func nothingElse(t *testing.T, s *openstack.Stack, c openstack.Credential) {
	t.Helper()
	server, err := s.CreateServer(t.Context(), "bystander", map[string]string{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.DeleteServer(context.Background(), server) })
	found := func(service, at, list string) string {
		id, err := s.Found(t.Context(), service, at, list)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	image, network := found("glance", "/v2/images", "images"), found("neutron", "/v2.0/networks", "networks")
	group := found("neutron", "/v2.0/security-groups", "security_groups")
	calls := []string{
		"POST nova /v2.1/servers/" + server + "/action", "PUT nova /v2.1/servers/" + server, "POST nova /v2.1/servers/" + server + "/metadata", "PUT nova /v2.1/servers/" + server + "/tags",
		"POST nova /v2.1/servers/" + server + "/os-interface", "POST nova /v2.1/servers/" + server + "/os-volume_attachments", "GET nova /v2.1/servers/" + server + "/os-instance-actions",
		"GET nova /v2.1/servers/" + server + "/os-security-groups", "POST nova /v2.1/servers/" + server + "/remote-consoles", "GET nova /v2.1/servers", "GET nova /v2.1/flavors", "POST nova /v2.1/flavors",
		"GET nova /v2.1/os-keypairs", "POST nova /v2.1/os-keypairs", "DELETE nova /v2.1/os-keypairs/ops", "GET nova /v2.1/os-hypervisors", "GET nova /v2.1/os-services", "PUT nova /v2.1/os-quota-sets/x",
		"DELETE nova /v2.1/os-server-groups/x", "GET nova /v2.1/os-availability-zone", "GET nova /v2.1/os-simple-tenant-usage",
		// The same by other spellings.
		"POST nova /v2.1/servers/" + server + "%2Faction", "POST nova //v2.1/servers/" + server + "/action", "POST nova /v2.1//servers/" + server + "/action", "POST nova /v2.1/servers/./" + server + "/action",
		"POST nova /v2.1/servers/detail/../" + server + "/action", "DELETE nova /v2.1/servers/x/../../os-keypairs/ops", "PATCH nova /v2.1/servers/" + server,
		"POST neutron /v2.0/networks", "DELETE neutron /v2.0/networks/" + network, "PUT neutron /v2.0/networks/" + network, "GET neutron /v2.0/subnets", "GET neutron /v2.0/routers", "POST neutron /v2.0/security-groups",
		"DELETE neutron /v2.0/security-groups/" + group, "POST neutron /v2.0/security-group-rules", "PUT neutron /v2.0/ports/x", "PUT neutron /v2.0/floatingips/x", "GET neutron /v2.0/agents", "GET neutron /v2.0/networks/" + network,
		"DELETE glance /v2/images/" + image, "PATCH glance /v2/images/" + image, "POST glance /v2/images", "PUT glance /v2/images/" + image + "/file", "GET glance /v2/images/" + image + "/file", "POST glance /v2/images/" + image + "/members",
		"GET cinder /v3/" + s.Project() + "/volumes", "POST cinder /v3/" + s.Project() + "/volumes", "GET magnum /v1/clusters", "POST magnum /v1/clusters", "GET placement /resource_providers",
	}
	for _, call := range calls {
		f := strings.Fields(call)
		status, err := s.Try(t.Context(), c, f[0], f[1], f[2])
		if err != nil || status != http.StatusUnauthorized {
			t.Errorf("%s: %d %v, want 401", call, status, err)
		}
	}
	// Keystone itself asks no access rules, but its policy: no other credential, no other user.
	for _, call := range []string{"POST keystone /v3/users/x/application_credentials", "GET keystone /v3/users", "POST keystone /v3/ec2tokens", "POST keystone /v3/OS-TRUST/trusts"} {
		f := strings.Fields(call)
		if status, err := s.Try(t.Context(), c, f[0], f[1], f[2]); err != nil || status < 400 || status >= 500 {
			t.Errorf("%s: %d %v, want a refusal", call, status, err)
		}
	}
	if status, err := s.Try(t.Context(), c, "GET", "nova", "/v2.1/servers/"+server); err != nil || status != http.StatusOK {
		t.Errorf("what the rules allow: %d %v", status, err)
	}
	t.Logf("%d calls beside the rules, all refused", len(calls)+4)
}

// consoleRule: consoles are read with the rule that --console adds, and not without.
func consoleRule(t *testing.T, s *openstack.Stack, c openstack.Credential) {
	t.Helper()
	server, err := s.CreateServer(t.Context(), "speaks", map[string]string{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.DeleteServer(context.Background(), server) })
	if _, err := s.Active(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	become(t, c)
	access := api.Config{Timeout: time.Minute}
	if text, err := nova.ReadConsole(t.Context(), access, "", server); err == nil || !strings.Contains(err.Error(), "401") && provider.KindOf(err) != provider.Denied {
		t.Errorf("the console without its rule: %q, %v", text, err)
	}
	more, err := s.Restrict(t.Context(), nova.AccessRules(true))
	if err != nil {
		t.Fatal(err)
	}
	become(t, more)
	if text, err := nova.ReadConsole(t.Context(), access, "", server); err != nil || text == "" {
		t.Errorf("the console with its rule: %q, %v", text, err)
	}
}

package openstack

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

func environment(list ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return func(name string) string { return m[name] }
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCredentialsAreFound(t *testing.T) {
	cloudsFile := write(t, "clouds.yaml", `clouds:
  mine:
    auth_type: v3applicationcredential
    auth: {auth_url: "https://keystone/v3", application_credential_id: acid, application_credential_secret: s}
    region_name: RegionOne
    interface: internal
`)
	// As Magnum writes it on its master nodes (seed 000).
	magnum := write(t, "cloud-config", `[Global]
auth-url=https://keystone/v3
user-id="uid"
password="p\"w=1"
trust-id=tid
region=IU
[LoadBalancer]
use-octavia=False
`)
	comments := write(t, "cloud-config", "\ufeff; the service's\n"+`[Global]
auth-url = https://keystone/v3 ; version 3
username = svc ; service user
password = "p#w;d" # quoted
tenant-name = two \
lines
domain-name="De\"fault"
region = RegionOne # main site
tls-insecure ; without a value
kubelet-only = 1
[LoadBalancer "a;b"]
region = other
[global]
os-endpoint-type = internalURL
`)
	sends := write(t, "cloud-config", "[Global]\nuse-clouds=true\nclouds-file="+cloudsFile+"\ncloud=mine\n")
	for _, c := range []struct {
		name   string
		config Config
		env    func(string) string
		check  func(access) bool
	}{
		{"clouds.yaml by AUTOSCALER_OPENSTACK_CLOUD", Config{Cloud: "mine"}, environment("OS_CLIENT_CONFIG_FILE", cloudsFile), func(a access) bool {
			return a.auth.ApplicationCredentialID == "acid" && a.endpoint.Region == "RegionOne" && a.endpoint.Availability == gophercloud.AvailabilityInternal
		}},
		{"clouds.yaml by OS_CLOUD, region of the configuration", Config{Region: "Two"}, environment("OS_CLIENT_CONFIG_FILE", cloudsFile, "OS_CLOUD", "mine"), func(a access) bool {
			return a.auth.ApplicationCredentialSecret == "s" && a.endpoint.Region == "Two"
		}},
		{"an application credential in OS_*", Config{}, environment("OS_AUTH_URL", "https://k", "OS_APPLICATION_CREDENTIAL_ID", "i", "OS_APPLICATION_CREDENTIAL_SECRET", "s", "OS_REGION_NAME", "R"), func(a access) bool {
			return a.auth.ApplicationCredentialID == "i" && a.auth.Scope == nil && a.endpoint.Region == "R"
		}},
		{"an openrc file's OS_*", Config{}, environment("OS_AUTH_URL", "https://k", "OS_USERNAME", "u", "OS_PASSWORD", "p", "OS_USER_DOMAIN_NAME", "Default", "OS_PROJECT_NAME", "demo", "OS_PROJECT_DOMAIN_ID", "default"), func(a access) bool {
			return a.auth.Username == "u" && a.auth.DomainName == "Default" && a.auth.Scope.ProjectName == "demo" && a.auth.Scope.DomainID == "default"
		}},
		{"cloud-config with a trust", Config{CloudConfig: magnum}, environment("OS_CLOUD", "mine"), func(a access) bool {
			return a.auth.UserID == "uid" && a.auth.Password == `p"w=1` && a.auth.Scope.TrustID == "tid" && a.endpoint.Region == "IU" && a.auth.DomainID == ""
		}},
		{"cloud-config with comments", Config{CloudConfig: comments}, environment(), func(a access) bool {
			return a.auth.IdentityEndpoint == "https://keystone/v3" && a.auth.Username == "svc" && a.auth.Password == "p#w;d" && a.auth.Scope.ProjectName == "two lines" &&
				a.auth.DomainName == `De"fault` && a.endpoint.Region == "RegionOne" && a.tls.InsecureSkipVerify && a.endpoint.Availability == gophercloud.AvailabilityInternal
		}},
		{"an application credential beside a user", Config{}, environment("OS_AUTH_URL", "https://k", "OS_APPLICATION_CREDENTIAL_ID", "i", "OS_APPLICATION_CREDENTIAL_SECRET", "s", "OS_USERNAME", "u", "OS_PASSWORD", "p", "OS_INSECURE", "True"), func(a access) bool {
			return a.auth.Password == "" && a.tls.InsecureSkipVerify
		}},
		{"cloud-config that sends on to clouds.yaml", Config{CloudConfig: sends}, environment(), func(a access) bool {
			return a.auth.ApplicationCredentialID == "acid"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := find(c.config, c.env)
			if err != nil || !c.check(a) || !a.auth.AllowReauth {
				t.Errorf("%+v %+v, %v", a.auth, a.endpoint, err)
			}
		})
	}
}

func TestCredentialsThatLackSomethingAreNamed(t *testing.T) {
	global := func(text string) Config {
		return Config{CloudConfig: write(t, "cloud-config", "[Global]\nauth-url=https://k\nusername=u\npassword=hush\ntenant-id=t\n"+text)}
	}
	for _, c := range []struct {
		config Config
		env    func(string) string
		want   string
	}{
		{Config{}, environment(), "auth URL"},
		{Config{}, environment("OS_AUTH_URL", "https://k"), "neither"},
		{Config{}, environment("OS_AUTH_URL", "https://k", "OS_USERNAME", "u"), "password"},
		{Config{}, environment("OS_AUTH_URL", "https://k", "OS_USERNAME", "u", "OS_PASSWORD", "hush"), "project"},
		{Config{}, environment("OS_AUTH_URL", "https://k", "OS_APPLICATION_CREDENTIAL_ID", "u"), "secret"},
		{Config{}, environment("OS_AUTH_URL", "https://k", "OS_CACERT", "/nowhere/ca.pem", "OS_APPLICATION_CREDENTIAL_ID", "u", "OS_APPLICATION_CREDENTIAL_SECRET", "hush"), "CA file"},
		{global("secret words\n"), environment(), "cloud-config:6:8: expected '='"},
		{global("tls-insecure = maybe\n"), environment(), `"tls-insecure"`},
		{global("use-clouds = maybe\n"), environment(), `"use-clouds"`},
		{global("password = \"secret words\n"), environment(), "cloud-config:6:12: string not terminated"},
		{global("password = secret words\\ \n"), environment(), "unquoted '\\'"},
		{global("region\n"), environment(), `"region"`},
		{global("os-endpoint-type=intern\n"), environment(), `"intern" is none of`},
		{Config{CloudConfig: write(t, "cloud-config", "[LoadBalancer]\nregion=a\n")}, environment(), "there is no [Global] section"},
		{Config{CloudConfig: write(t, "cloud-config", "password=secret words\n")}, environment(), "expected section header"},
		{Config{}, environment("OS_AUTH_URL", "https://k", "OS_INSECURE", "maybe"), "OS_INSECURE"},
		{Config{CloudConfig: "/nowhere/cloud-config"}, environment(), "/nowhere"},
		{Config{Cloud: "none"}, environment("OS_CLIENT_CONFIG_FILE", "/nowhere/clouds.yaml"), "/nowhere"},
	} {
		_, err := find(c.config, c.env)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "secret words") {
			t.Errorf("%v, want it to say %q", err, c.want)
		}
	}
}

func TestVariables(t *testing.T) {
	for _, name := range []string{"OS_CLOUD", "OS_CLIENT_CONFIG_FILE", "OS_AUTH_URL", "OS_CACERT", "OS_TRUST_ID"} {
		if !strings.Contains(strings.Join(Variables(), " ")+" ", name+" ") {
			t.Errorf("%s is not listed", name)
		}
	}
}

func TestValidate(t *testing.T) {
	err := Config{Cloud: "a", CloudConfig: "b", Region: "a b"}.Validate()
	for _, want := range []string{"AUTOSCALER_OPENSTACK_CLOUD:", "AUTOSCALER_OPENSTACK_REGION:", "AUTOSCALER_OPENSTACK_TIMEOUT:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (Config{Timeout: time.Second}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestClassify: bodies are those of the real services.
func TestClassify(t *testing.T) {
	answer := func(status int, body string) error {
		return gophercloud.ErrUnexpectedResponseCode{Method: "POST", URL: "https://nova/v2.1/servers/3f1d7f3a-6a1b-4f0e-9f57-111111111111", Actual: status, Body: []byte(body)}
	}
	for _, c := range []struct {
		err  error
		kind provider.Kind
		want string
	}{
		{answer(403, `{"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1, but already used 3 of 3 instances"}}`), provider.Exhausted, "POST /v2.1/servers/{id}: 403 Forbidden: Quota exceeded for instances"},
		{answer(403, `{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:servers:create to be performed."}}`), provider.Denied, "access rule"},
		{answer(401, `{"error": {"code": 401, "message": "The request you have made requires authentication.", "title": "Unauthorized"}}`), provider.Denied, "Keystone"},
		{answer(404, `{"errors": [{"request_id": "", "code": "client", "status": 404, "title": "Cluster k8s could not be found", "detail": "Cluster k8s could not be found."}]}`), provider.NotFound, "could not be found"},
		{answer(400, `{"errors": [{"status": 400, "detail": "Resizing w outside the allowed range: min_node_count = 0, max_node_count = 3"}]}`), provider.Invalid, "outside the allowed range"},
		{answer(409, `{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}`), provider.Exhausted, "port"},
		{answer(409, `{"conflictingRequest": {"code": 409, "message": "Cannot 'delete' instance"}}`), provider.Conflict, "409"},
		{answer(406, `{"errors": [{"status": 406, "detail": "Version 1.11 was requested"}]}`), provider.Invalid, "406"},
		{answer(413, `{"overLimit": {"message": "This request was rate-limited.", "retryAfter": "1"}}`), provider.Transient, "413"},
		{answer(429, ``), provider.Transient, "429 Too Many Requests"},
		{answer(503, `<html>proxy</html>`), provider.Transient, "503 Service Unavailable"},
		{gophercloud.ErrUnableToReauthenticate{ErrOriginal: answer(401, ""), ErrReauth: answer(404, `{"error": {"message": "Could not find Application Credential: x."}}`)}, provider.Denied, "log in to OpenStack again"},
		{&gophercloud.ErrUnableToReauthenticate{ErrOriginal: answer(401, ""), ErrReauth: answer(401, "")}, provider.Denied, "log in to OpenStack again"},
		{gophercloud.ErrUnableToReauthenticate{ErrOriginal: answer(401, ""), ErrReauth: answer(503, "")}, provider.Transient, "again"},
		{&gophercloud.ErrErrorAfterReauthentication{ErrOriginal: answer(429, "")}, provider.Transient, "429"},
		{gophercloud.ErrErrorAfterReauthentication{ErrOriginal: answer(403, `{"forbidden": {"message": "Quota exceeded for cores"}}`)}, provider.Exhausted, "cores"},
		{&gophercloud.ErrEndpointNotFound{}, provider.Invalid, "AUTOSCALER_OPENSTACK_REGION"},
		{context.DeadlineExceeded, provider.Transient, "no answer in time"},
		{context.Canceled, provider.Other, "canceled"},
		{errors.New("odd"), provider.Other, "odd"},
		{&provider.Error{Op: "log in", Kind: provider.Denied, Err: errors.New("no"), Remedy: "mend"}, provider.Denied, "log in: no (mend)"},
	} {
		e := Classify("read", "g", c.err)
		if e.Kind != c.kind || !strings.Contains(e.Error(), c.want) || e.Group != "g" {
			t.Errorf("%v: kind %s, want %s and %q", e, e.Kind, c.kind, c.want)
		}
	}
	if e := Classify("read", "", context.Canceled); !errors.Is(e, context.Canceled) {
		t.Error("the context's error is lost")
	}
}

func TestCauses(t *testing.T) {
	for text, want := range map[string]cluster.Cause{
		"Quota exceeded for instances: Requested 1, but already used 3 of 3 instances (HTTP 403) (Request-ID: req-5a8b)":           cluster.CauseQuota,
		"ResourceInError: resources.kube_minions.resources[3]: Went to status ERROR due to \"Message: No valid host was found. \"": cluster.CauseCapacity,
		"Flavor m1.none could not be found.":                              cluster.CauseInvalid,
		"Image 7d1f is not active.":                                       cluster.CauseInvalid,
		"No more IP addresses available on network 1":                     cluster.CauseCapacity,
		"something else":                                                  cluster.CauseOther,
		"VolumeSizeExceedsAvailableQuota: Requested volume exceeds quota": cluster.CauseQuota,
	} {
		if got := CauseOf(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestMessageHasNoRequestID(t *testing.T) {
	m := Message([]byte(`{"message": "Quota exceeded (HTTP 403) (Request-ID: req-0a1b2c3d-1111-2222-3333-444455556666)"}`))
	if strings.Contains(m, "req-") || !strings.Contains(m, "Quota exceeded") {
		t.Errorf("%q", m)
	}
}

func TestActionHasNoIDs(t *testing.T) {
	r, _ := http.NewRequest("GET", "https://h:9511/v1/clusters/3f1d7f3a-6a1b-4f0e-9f57-111111111111/nodegroups?x=1", nil)
	if got := action(r.Method, r.URL); got != "GET /v1/clusters/{id}/nodegroups" {
		t.Error(got)
	}
}

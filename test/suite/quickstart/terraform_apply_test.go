package quickstart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// TestTerraformAppliesOpenStack: terraform itself, with the provider of the version that the module pins, makes the module's
// resources in the emulated OpenStack, finds nothing to change afterwards, and takes all of it away again.
func TestTerraformAppliesOpenStack(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_TERRAFORM") != "1" {
		t.Skip("the provider takes minutes to build: make e2e-terraform runs this")
	}
	d := newTerraform(t, moduleOpenStack, "terraform-provider-openstack", "openstack")
	c, err := openstack.New(openstack.Options{BuildDelay: 50 * time.Millisecond, DeleteDelay: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	d.env = append(d.env, "OS_AUTH_URL="+c.AuthURL(), "OS_USERNAME="+openstack.DemoUser, "OS_PASSWORD="+openstack.DemoPassword, "OS_PROJECT_NAME="+openstack.DemoProject,
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_REGION_NAME=RegionOne")
	vars := `cluster = "demo"
auth_url = "` + c.AuthURL() + `"
admin_cidrs = ["` + admin + `"]
ssh_public_key = "ssh-ed25519 AAAA ops"
network = "workers"
external_network = "public"
leader_flavor = "m1.medium"
groups = { workers = { flavors = ["m1.large", "m1.xlarge"] }, small = { flavors = ["m1.small"], max = 3 } }
`
	if err := os.WriteFile(filepath.Join(d.dir, "demo.auto.tfvars"), []byte(vars), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run("init", "-input=false")
	d.run("validate")
	d.run("apply", "-input=false", "-auto-approve")
	d.run("plan", "-input=false", "-detailed-exitcode") // 2 where something would change

	var outputs map[string]struct{ Value string }
	if err := json.Unmarshal([]byte(d.run("output", "-json")), &outputs); err != nil {
		t.Fatal(err)
	}
	var groups struct{ Nova json.RawMessage }
	if err := yaml.Unmarshal([]byte(outputs["groups_yaml"].Value), &groups); err != nil {
		t.Fatal(err)
	}
	if parsed, err := section.Parse(groups.Nova); err != nil || len(parsed.Groups) != 2 {
		t.Errorf("groups.yaml: %+v, %v", parsed, err)
	}
	if !strings.Contains(outputs["clouds_yaml"].Value, "application_credential_secret") || !strings.Contains(outputs["clouds_yaml"].Value, c.AuthURL()) {
		t.Errorf("clouds.yaml has no credential")
	}
	for name, want := range map[string][]string{
		"demo-leader": {"tcp 10250", "tcp 22", "tcp 6443", "udp 8472"},
		"demo-worker": {"tcp 10250", "tcp 10250", "udp 8472", "udp 8472"},
	} {
		var got []string
		for _, rule := range c.Rules(name) {
			got = append(got, fmt.Sprintf("%s %d", *rule.Protocol, *rule.Min))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s lets in %v, want %v", name, got, want)
		}
	}
	servers := c.Servers()
	if len(servers) != 1 || servers[0].Name != "demo-leader" {
		t.Errorf("servers %+v", servers)
	}
	d.run("destroy", "-input=false", "-auto-approve")
	if left := c.Servers(); len(left) > 0 || len(c.Rules("demo-leader")) > 0 {
		t.Errorf("destroy leaves %+v", left)
	}
}

// terraformRun is a copy of a module in which terraform runs.
type terraformRun struct {
	t   *testing.T
	dir string
	env []string
}

// newTerraform lets terraform find a provider in a directory of this machine: the one that the nested module provider/ pins, which has to be
// the version that the module under test asks for.
func newTerraform(t *testing.T, module, owner, name string) *terraformRun {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Fatal("terraform is not installed")
	}
	version := pinned(t, module)
	binary := buildProvider(t, version)
	d := &terraformRun{t: t, dir: t.TempDir()}
	if err := os.CopyFS(d.dir, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	mirror := t.TempDir()
	at := filepath.Join(mirror, "registry.terraform.io", owner, name, version, platform(t))
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(at, "terraform-provider-"+name+"_v"+version)); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(mirror, "terraformrc")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror), 0o600); err != nil {
		t.Fatal(err)
	}
	d.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + mirror, "TF_CLI_CONFIG_FILE=" + settings, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"}
	return d
}

func (d *terraformRun) run(args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "terraform", append(args, "-no-color")...)
	cmd.Dir, cmd.Env = d.dir, d.env
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("terraform %v: %v\n%s%s", args, err, out, problem.String())
	}
	return string(out)
}

// pinned is the one version of a provider that a module asks for.
func pinned(t *testing.T, module string) string {
	t.Helper()
	text, err := os.ReadFile(module + "/versions.tf")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n      version = \"")
	version, _, ok := strings.Cut(rest, "\"")
	if !ok || strings.ContainsAny(version, "<>=~ ,") {
		t.Fatalf("%s pins no version of its provider: %q", module, version)
	}
	return version
}

func platform(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOOS", "GOARCH").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), "_")
}

// buildProvider builds the provider from its Go module (provider/go.mod), once.
func buildProvider(t *testing.T, version string) string {
	t.Helper()
	const path = "github.com/terraform-provider-openstack/terraform-provider-openstack/v3"
	mod, err := os.ReadFile("provider/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), path+" v"+version) {
		t.Fatalf("provider/go.mod names another version than %s, which the module pins", version)
	}
	root, err := controlplane.CacheDir("terraform-provider-openstack")
	if err == nil {
		err = os.MkdirAll(root, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256(mod)
	file := filepath.Join(root, hex.EncodeToString(h[:6]))
	if _, err := os.Stat(file); err == nil {
		return file
	}
	tmp := file + fmt.Sprintf(".building-%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", tmp, path)
	cmd.Dir = "provider"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the provider: %v\n%s", err, said)
	}
	if err := os.Rename(tmp, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestProvidersArePinned: each module asks for one version of its provider; the OpenStack one is that of provider/go.mod.
func TestProvidersArePinned(t *testing.T) {
	pinned(t, moduleAWS)
	mod, err := os.ReadFile("provider/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if version := pinned(t, moduleOpenStack); !strings.Contains(string(mod), "/v3 v"+version) {
		t.Errorf("provider/go.mod has not the version %s", version)
	}
}

package quickstart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
)

// TestOpenStackScript runs openstack.sh with OpenStack's own client in the emulated OpenStack, twice: with a floating IP, which the real
// services of make e2e-openstack do not have.
func TestOpenStackScript(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_TERRAFORM") != "1" {
		t.Skip("each call of the client takes a second: make e2e-terraform runs this")
	}
	if _, err := exec.LookPath("openstack"); err != nil {
		t.Skip("the openstack command is not installed (Debian's package python3-openstackclient): the script runs in make e2e-openstack alone")
	}
	c, err := openstack.New(openstack.Options{BuildDelay: 50 * time.Millisecond, DeleteDelay: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"id.pub": "ssh-ed25519 AAAA ops\n", "ssh-keyscan": "#!/bin/sh\necho a key\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func() string {
		cmd := exec.Command(script(t, "openstack.sh"), "leader", "--cluster", "demo", "--admin", admin, "--key", "id.pub", "--network", "workers", "--external", "public",
			"--flavor", "m1.medium", "--worker-flavor", "m1.large,m1.xlarge")
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "OS_AUTH_URL=" + c.AuthURL(), "OS_USERNAME=" + openstack.DemoUser, "OS_PASSWORD=" + openstack.DemoPassword,
			"OS_PROJECT_NAME=" + openstack.DemoProject, "OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_REGION_NAME=RegionOne", "OS_IDENTITY_API_VERSION=3"}
		var problem strings.Builder
		cmd.Stderr = &problem
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s%s", err, out, problem.String())
		}
		return string(out)
	}
	out := run()
	if !strings.HasPrefix(out, "LEADER=203.0.113.") || !strings.Contains(out, "\nENDPOINT=10.20.") {
		t.Errorf("it prints %s", out)
	}
	if again := run(); again != out || len(c.Servers()) != 1 || len(c.Rules("demo-leader")) != 4 || len(c.Rules("demo-worker")) != 4 {
		t.Errorf("a second run prints %s, and there are %d servers", again, len(c.Servers()))
	}
	groups, err := os.ReadFile(filepath.Join(dir, "groups.yaml"))
	if err != nil || !strings.Contains(string(groups), `flavor: ["m1.large", "m1.xlarge"]`) {
		t.Errorf("groups.yaml: %v\n%s", err, groups)
	}
}

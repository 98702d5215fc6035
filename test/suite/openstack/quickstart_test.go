package openstack_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/test/suite/openstack"
)

// quickstart: openstack.sh of docs/quickstart-openstack.md with OpenStack's own command
// line, twice; the credential that it leaves in clouds.yaml, with the access rules of the
// repository, is the agent's for a growth. The stack has no floating IPs.
func quickstart(t *testing.T, s *openstack.Stack) {
	script, err := filepath.Abs("../../../deploy/cli/openstack.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The servers of this stack run nothing that answers SSH.
	if err := os.WriteFile(filepath.Join(dir, "ssh-keyscan"), []byte("#!/bin/sh\necho a key\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir}, s.PersonEnv()...)
		var out, errout bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errout
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s%s", args, err, out.String(), errout.String())
		}
		return out.String()
	}
	run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "id")
	lead := []string{script, "leader", "--cluster", "quick", "--admin", "203.0.113.7/32", "--key", "id.pub", "--network", "workers", "--flavor", "m1.small", "--image", "worker"}
	out := run(lead...)
	if !strings.Contains(out, "LEADER=10.0.") || !strings.Contains(out, "ENDPOINT=10.0.") {
		t.Errorf("it prints %s", out)
	}
	state := func() string {
		return run("openstack", "security", "group", "rule", "list", "-f", "csv", "--sort-column", "ID") + run("openstack", "port", "list", "-f", "csv", "-c", "ID", "-c", "Name") +
			run("openstack", "application", "credential", "list", "-f", "csv", "-c", "ID", "-c", "Name") + run("openstack", "server", "list", "-f", "csv", "-c", "ID", "-c", "Name")
	}
	before := state()
	if again := run(lead...); again != out || state() != before {
		t.Errorf("a second run prints\n%safter\n%sand changes\n%sto\n%s", again, out, before, state())
	}
	var rules []struct {
		Protocol string `json:"IP Protocol"`
		Ports    string `json:"Port Range"`
		Way      string `json:"Direction"`
	}
	if err := json.Unmarshal([]byte(run("openstack", "security", "group", "rule", "list", "--ingress", "-f", "json", "quick-leader")), &rules); err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, r := range rules {
		open = append(open, r.Protocol+" "+r.Ports)
	}
	slices.Sort(open)
	if want := []string{"tcp 10250:10250", "tcp 22:22", "tcp 6443:6443", "udp 8472:8472"}; !slices.Equal(open, want) {
		t.Errorf("the leader lets in %v, want %v", open, want)
	}
	for _, name := range []string{"clouds.yaml", "groups.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	var clouds struct {
		Clouds map[string]struct {
			Auth map[string]string
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "clouds.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &clouds)
	}
	if err != nil {
		t.Fatal(err)
	}
	auth := clouds.Clouds["quick"].Auth
	worksWith(t, s, openstack.Credential{ID: auth["application_credential_id"], Secret: auth["application_credential_secret"]})
	run("openstack", "server", "delete", "--wait", "quick-leader")
	run("openstack", "port", "delete", "quick-leader")
}

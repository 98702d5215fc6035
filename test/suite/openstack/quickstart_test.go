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
	"time"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	api "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/openstack"
)

// quickstart: openstack.sh of docs/quickstart-openstack.md with OpenStack's own command
// line, twice; then the agent's provider makes and deletes a server with the credential
// and the groups.yaml that the script wrote. The stack has no floating IPs.
func quickstart(t *testing.T, s *openstack.Stack) {
	script, err := filepath.Abs("../../../deploy/cli/openstack.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, s.PersonEnv()...)
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
	quickstartScale(t, s, dir)
	run("openstack", "server", "delete", "--wait", "quick-leader")
	run("openstack", "port", "delete", "quick-leader")
}

// quickstartScale uses the two files as the agent does.
func quickstartScale(t *testing.T, s *openstack.Stack, dir string) {
	t.Helper()
	for _, name := range []string{"clouds.yaml", "groups.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", name, info, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "groups.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var groups struct{ Nova map[string]any }
	if err := yaml.Unmarshal(raw, &groups); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "worker.sh")
	if err := os.WriteFile(data, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	groups.Nova["groups"].([]any)[0].(map[string]any)["userdata"] = data
	section, err := json.Marshal(groups.Nova)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", filepath.Join(dir, "clouds.yaml"))
	for _, name := range []string{"OS_AUTH_URL", "OS_APPLICATION_CREDENTIAL_ID", "OS_APPLICATION_CREDENTIAL_SECRET", "OS_REGION_NAME"} {
		t.Setenv(name, "")
	}
	p, err := nova.New(nova.Config{ParallelCreates: 1}, api.Config{Cloud: "quick", Timeout: 3 * time.Minute}, func() json.RawMessage { return section }, reservation)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Stack: s, t: t, trouble: trouble{front: s.Front}, cluster: "quick"}
	if err := p.Resize(t.Context(), "quick-workers", 0, 1); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	made := w.members("quick-workers")
	if len(made) != 1 || made[0].Status != "ACTIVE" {
		t.Fatalf("the agent made %+v", made)
	}
	if err := p.Delete(t.Context(), "quick-workers", instance(made[0])); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if left := w.members("quick-workers"); len(left) > 0 {
		t.Errorf("left are %+v", left)
	}
}

package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// document is meta_data.json in the order in which Nova writes it: the keys' own names
// come before the server's, and an operator's metadata may hold anything.
const document = `{"uuid": "8c8c6c3c-4f0e-4b52-9d0c-3f1d7f3a6a1b", "meta": {"name": "not-this", "note": "a {brace} and, a comma", "autoscaler-agent.region": "RegionOne",
 "autoscaler-agent.type": "m1.Large", "autoscaler-agent.provider-id": "PREFIX"}, "public_keys": {"name": "ssh-ed25519 AAAA ops\n"},
 "keys": [{"name": "ops", "type": "ssh", "data": "ssh-ed25519 AAAA ops\n"}], "hostname": "workers-b2c4d6.novalocal", "name": "Workers-b2c4d6", "launch_index": 0,
 "availability_zone": "az 1", "random_seed": "x+/{}=", "project_id": "0", "devices": [{"name": "eth9", "tags": ["uuid"]}], "dedicated_cpus": []}`

// TestOpenStackFacts runs the join section with a metadata service and a kubeadm of its
// own: the server's name, UUID and labels are found, whatever else stands there.
func TestOpenStackFacts(t *testing.T) {
	for _, c := range []struct{ prefix, labels, zone, provider string }{
		{"openstack://RegionOne/", "topology.kubernetes.io/region=RegionOne,node.kubernetes.io/instance-type=m1.Large,", "az 1", "openstack://RegionOne/8c8c6c3c-"},
		{"", "topology.kubernetes.io/region=RegionOne,topology.kubernetes.io/zone=az1,node.kubernetes.io/instance-type=m1.Large,", "az1", "openstack:///8c8c6c3c-"},
	} {
		script, err := Render(onOpenStack())
		if err != nil {
			t.Fatal(err)
		}
		section, err := JoinSection(script)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		tool := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		doc := strings.NewReplacer("PREFIX", c.prefix, "az 1", c.zone).Replace(document)
		tool("curl", "cat <<'EOF'\n"+doc+"\nEOF\n")
		tool("kubeadm", `cat "$3" "$JOIN_DIR/patches/"*`+"\n")
		tool("join.sh", string(section))
		run := exec.Command("sh", filepath.Join(dir, "join.sh"))
		run.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "JOIN_DIR=" + filepath.Join(dir, "run"), "JOIN_CONSOLE=/dev/null"}
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{`"name": "workers-b2c4d6"`, "\"" + c.labels, `"providerID": "` + c.provider, `"token": "` + TokenPlaceholder + `"`} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %s in\n%s", want, out)
			}
		}
		if strings.Contains(string(out), "not-this") || strings.Contains(string(out), "eth9") {
			t.Errorf("a name that is not the server's:\n%s", out)
		}
	}
}

// TestRetryKeepsTheKey: a join that fails and is tried again after kubeadm reset asks with
// the key that it asked with before: another key would be another machine's.
func TestRetryKeepsTheKey(t *testing.T) {
	script, err := Render(onOpenStack())
	if err != nil {
		t.Fatal(err)
	}
	section, err := JoinSection(script)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tool := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	doc := strings.NewReplacer("PREFIX", "", "az 1", "az1").Replace(document)
	tool("curl", "cat <<'EOF'\n"+doc+"\nEOF\n")
	// The first try makes the key, the second a certificate with it; both fail, and reset
	// leaves nothing.
	tool("kubeadm", `pki=$JOIN_PKI
if [ "$1" = reset ]; then rm -rf "$pki"; exit 0; fi
mkdir -p "$pki"
n=$(cat "$JOIN_DIR/../tries" 2>/dev/null || echo 0)
echo $((n + 1)) >"$JOIN_DIR/../tries"
case $n in
0) echo the-key >"$pki/kubelet-client.key.tmp"; echo other >"$pki/kubelet.key"; exit 1;;
1) mv "$pki/kubelet-client.key.tmp" "$pki/kubelet-client-2026.pem"; ln -s "$pki/kubelet-client-2026.pem" "$pki/kubelet-client-current.pem"; exit 1;;
esac
cat "$pki/kubelet-client-current.pem"
ls "$pki"
`)
	tool("join.sh", string(section))
	run := exec.Command("sh", filepath.Join(dir, "join.sh"))
	state := filepath.Join(dir, "run")
	run.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "JOIN_DIR=" + state, "JOIN_CONSOLE=/dev/null", "JOIN_PAUSE=0", "JOIN_PKI=" + filepath.Join(dir, "kubelet", "pki")}
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "the-key\n") || strings.Contains(string(out), "kubelet.key") {
		t.Errorf("the third try has not the first one's key:\n%s", out)
	}
	if left, err := filepath.Glob(filepath.Join(state, "pki", "*")); err != nil || len(left) > 0 {
		t.Errorf("keys are left in %v, %v", left, err)
	}
}

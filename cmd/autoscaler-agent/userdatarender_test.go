package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

const workerEnv = `# published by autoscaler-agent
JOIN_TOKEN=abcdef.0123456789abcdef
export JOIN_CERT_HASH="sha256:0000000000000000000000000000000000000000000000000000000000000001,sha256:0000000000000000000000000000000000000000000000000000000000000002"
JOIN_ENDPOINT=k8s.example.net:6443
JOIN_KUBERNETES_VERSION=v1.36.3
JOIN_TOKEN_EXPIRES=2030-01-01T00:00:00Z
`

func runUserdata(t *testing.T, args ...string) (code int, out, errout string) {
	t.Helper()
	var o, e bytes.Buffer
	code = execute(t.Context(), append([]string{"userdata"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func writeEnv(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "worker.env")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUserdataRender(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errout := runUserdata(t, "render", "--join-file", writeEnv(t, workerEnv), "-o", file,
		"--label", "example.net/pool=batch", "--taint", "a=b:NoSchedule", "--taint", "c:NoExecute", "--max-pods", "50",
		"--kube-reserved", "cpu=1,memory=1Gi", "--system-reserved", "", "--eviction-hard", "memory.available=5Mi,nodefs.available=1Gi")
	if code != 0 || out != "" || strings.Count(errout, "differs from the agent's own setting") != 4 {
		t.Fatalf("exit %d, %q, %q; want a warning for each of four flags", code, out, errout)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: want 0600 even where a file was before", info.Mode(), err)
	}
	rendered, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script, packed, err := userdata.Unpack(rendered)
	if err != nil || !packed {
		t.Fatalf("the script is not packed: %v", err)
	}
	for _, want := range []string{
		"JOIN_ENDPOINT='k8s.example.net:6443'\n", "000001,sha256:0000", "example.net/pool=batch\"", `"key": "c"`,
		`"maxPods": 50`, `"cpu": "1000m"`, `"memory": "1Gi"`, `"systemReserved": {}`, `"memory.available": "5Mi"`, `"nodefs.available": "1Gi"`,
	} {
		if !strings.Contains(string(script), want) {
			t.Errorf("the script lacks %q", want)
		}
	}
}

// TestUserdataAttest: with --attest the token of the file is not used, and may be missing.
func TestUserdataAttest(t *testing.T) {
	const ca = "../../userdata/testdata/ca.crt"
	env := strings.Replace(workerEnv, "sha256:0000000000000000000000000000000000000000000000000000000000000001", "sha256:0d5ab4e5308b73414847abcbcf7ea8ed2f42170faab0634ed9f41288b75fd2e4", 1)
	none := strings.Replace(env, "JOIN_TOKEN=abcdef.0123456789abcdef", "JOIN_TOKEN=", 1)
	var first string
	for _, text := range []string{env, none, strings.Replace(none, "JOIN_TOKEN=\n", "", 1)} {
		code, out, errout := runUserdata(t, "render", "--join-file", writeEnv(t, text), "--attest", "leader.example.net:6444", "--ca-file", ca)
		if code != 0 || errout != "" || !strings.Contains(out, "It holds no secret") || strings.Contains(out, "0123456789abcdef") {
			t.Fatalf("exit %d, %q:\n%s", code, errout, out)
		}
		if first == "" {
			first = out
		}
		if out != first {
			t.Error("the file's token changes the user data")
		}
	}
	if code, out, errout := runUserdata(t, "render", "--join-file", writeEnv(t, none), "--cloud", "openstack"); code != 0 || !strings.Contains(out, "{{join token}}") {
		t.Errorf("servers with a token each need none of the file: exit %d, %q", code, errout)
	}
	for _, c := range []struct {
		args []string
		env  string
		want string
	}{
		{nil, none, "JOIN_TOKEN is missing: wait until the agent has published it (journalctl -u autoscaler-agent), or write it by hand; with AUTOSCALER_BOOTSTRAP_TOKENS=none machines on AWS attest: give --attest"},
		{[]string{"--attest", "l:1", "--ca-file", "/nonexistent"}, none, "name its certificate with --ca-file"},
		{[]string{"--attest", "l:1", "--ca-file", ca}, workerEnv, "none of its certificates has a hash of join.caCertHashes"},
		{[]string{"--attest", "l", "--ca-file", ca}, none, "--attest is \"l\": "},
		{[]string{"--attest", "l:1", "--ca-file", ca, "--cloud", "openstack"}, none, "--attest: only instances of AWS can attest"},
		{[]string{"--ca-file", ca}, env, "--ca-file: only --attest uses it"},
	} {
		code, out, errout := runUserdata(t, append([]string{"render", "--join-file", writeEnv(t, c.env)}, c.args...)...)
		if code == 0 || out != "" || !strings.Contains(errout, c.want) {
			t.Errorf("%v: exit %d, %q, want %q", c.args, code, errout, c.want)
		}
	}
}

// TestUserdataFrom: --from renders what the same flags would for another version, and says what it does not take.
func TestUserdataFrom(t *testing.T) {
	old := strings.ReplaceAll(workerEnv, "JOIN_KUBERNETES_VERSION=v1.36.3", "JOIN_KUBERNETES_VERSION=v1.35.2")
	file, wanted := filepath.Join(t.TempDir(), "worker.sh"), filepath.Join(t.TempDir(), "wanted.sh")
	flags := []string{"--label", "example.net/pool=batch", "--taint", "a=b:NoSchedule", "--max-pods", "50", "--mirror", "https://mirror.example.net"}
	for out, env := range map[string]string{file: old, wanted: workerEnv} {
		if code, _, errout := runUserdata(t, append([]string{"render", "--join-file", writeEnv(t, env), "-o", out}, flags...)...); code != 0 {
			t.Fatal(errout)
		}
	}
	want, err := os.ReadFile(wanted)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(workerEnv, "k8s.example.net", "other.example.net", 1)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--kubernetes-version", "v1.36.3"}, 0, ""},
		{[]string{"--join-file", writeEnv(t, workerEnv)}, 0, ""},
		{[]string{"--join-file", writeEnv(t, other), "--endpoint", "k8s.example.net:6443"}, 0, ""},
		{[]string{"--kubernetes-version", "v1.36.3", "--api-server-version", "v1.35.2"}, 2, "newer than the API server"},
		{[]string{"--kubernetes-version", "v1.36.99"}, 2, "no checksum is known for"},
		{[]string{"--kubernetes-version", "v1.36.3", "--label", "a=b"}, 2, "--label does not go with --from"},
	} {
		code, out, errout := runUserdata(t, append([]string{"render", "--from", file}, c.args...)...)
		if code != c.code || !strings.Contains(errout, c.want) || code == 0 && out != string(want) {
			t.Errorf("%v: exit %d, %q (as wanted: %t); want %d with %q", c.args, code, errout, out == string(want), c.code, c.want)
		}
	}
	if code, _, errout := runUserdata(t, "render", "--from", "../../userdata/lint/testdata/seed004.sh", "--kubernetes-version", "v1.36.3"); code != 1 || !strings.Contains(errout, "not made by autoscaler-agent") {
		t.Errorf("exit %d, %q", code, errout)
	}
}

func TestUserdataErrors(t *testing.T) {
	good := writeEnv(t, workerEnv)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "Usage:"},
		{[]string{"paint"}, 2, `there is no command "paint"`},
		{[]string{"render", "--join-file", filepath.Join(t.TempDir(), "none")}, 1, "name another file with --join-file"},
		{[]string{"render", "--join-file", writeEnv(t, "JOIN_TOKEN=abcdef.0123456789abcdef\n")}, 1, "JOIN_CERT_HASH is missing"},
		{[]string{"render", "--join-file", writeEnv(t, "what\n")}, 1, "line 1: want NAME=VALUE"},
		{[]string{"render", "--join-file", writeEnv(t, strings.Replace(workerEnv, "abcdef.", "abc.", 1))}, 1, "join.token"},
		{[]string{"render", "--join-file", good, "extra"}, 2, `"extra" is one argument too many`},
		{[]string{"render", "--join-file", good, "--kube-reserved", "gpu=1"}, 2, "only cpu, memory and ephemeral-storage"},
		{[]string{"render", "--join-file", good, "--eviction-hard", "pid.available=1"}, 2, "only memory.available and nodefs.available"},
		{[]string{"render", "--join-file", good, "--kube-reserved", "pid=100"}, 2, "pid: only cpu, memory and ephemeral-storage"},
		{[]string{"render", "--join-file", good, "--kube-reserved", "memory=lots"}, 2, `--kube-reserved is "memory=lots": `},
		{[]string{"render", "--join-file", good, "--eviction-hard", "memory.available=5%"}, 2, "in bytes, for example 100Mi"},
		{[]string{"render", "--join-file", good, "--eviction-hard", "nodefs.available<101%"}, 2, "from 0 to 100"},
		{[]string{"render", "--join-file", good, "--taint", "a"}, 2, "write key=value:NoSchedule"},
		{[]string{"render", "--join-file", good, "--label", "a=b", "--label", "a=c"}, 2, "given twice"},
		{[]string{"render", "--join-file", good, "-o", filepath.Join(t.TempDir(), "no", "dir")}, 1, "write "},
	} {
		code, out, errout := runUserdata(t, c.args...)
		if code != c.code || !strings.Contains(errout, c.want) || out != "" {
			t.Errorf("%v: exit %d, %q, %q; want exit %d with %q", c.args, code, out, errout, c.code, c.want)
		}
		if strings.Contains(errout, "0123456789abcdef") {
			t.Errorf("%v: the error repeats the token: %s", c.args, errout)
		}
	}
	if code, out, _ := runUserdata(t, "--help"); code != 0 || !strings.Contains(out, "Examples:") {
		t.Errorf("--help: exit %d, %q", code, out)
	}
}

// TestUserdataFollowsTheAgentsSettings: the kubelets reserve what the agent computes
// with, from its environment file or its environment, without a flag.
func TestUserdataFollowsTheAgentsSettings(t *testing.T) {
	for _, name := range []string{"KUBE_RESERVED", "SYSTEM_RESERVED", "EVICTION_HARD", "MAX_PODS"} {
		t.Setenv("AUTOSCALER_KUBELET_"+name, "") // restored at the end
	}
	t.Setenv("AUTOSCALER_KUBELET_SYSTEM_RESERVED", "cpu=250m,memory=1Gi")
	file := filepath.Join(t.TempDir(), "agent.env")
	text := "AUTOSCALER_KUBELET_KUBE_RESERVED=cpu=2,memory=3Gi\nAUTOSCALER_KUBELET_EVICTION_HARD=\"memory.available<200Mi,nodefs.available<7%\"\nAUTOSCALER_KUBELET_MAX_PODS=58\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errout := runUserdata(t, "render", "--join-file", writeEnv(t, workerEnv), "--env-file", file)
	if code != 0 || errout != "" {
		t.Fatalf("exit %d, %q", code, errout)
	}
	script, packed, err := userdata.Unpack([]byte(out))
	if err != nil || !packed {
		t.Fatalf("the script is not packed: %v", err)
	}
	for _, want := range []string{`"maxPods": 58`, `"cpu": "2000m"`, `"memory": "3Gi"`, `"cpu": "250m"`, `"memory": "1Gi"`,
		`"memory.available": "200Mi"`, `"nodefs.available": "7%"`} {
		if !strings.Contains(string(script), want) {
			t.Errorf("the script lacks %q", want)
		}
	}
	t.Setenv("AUTOSCALER_KUBELET_MAX_PODS", "many")
	if code, _, errout := runUserdata(t, "render", "--join-file", writeEnv(t, workerEnv)); code != 1 || !strings.Contains(errout, "AUTOSCALER_KUBELET_MAX_PODS") {
		t.Errorf("exit %d, %q", code, errout)
	}
}

// TestUserdataPage runs the commands of docs/userdata.md whose output stands there.
func TestUserdataPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/userdata.md")
	if err != nil {
		t.Fatal(err)
	}
	code, out, errout := runUserdata(t, "downloads", "--kubernetes-version", "v1.36.3", "--arch", "amd64")
	if code != 0 || errout != "" || !strings.Contains(string(page), "--arch amd64\n"+out+"```") {
		t.Errorf("the page does not show this list (exit %d, %s):\n%s", code, errout, out)
	}
	file := filepath.Join(t.TempDir(), "worker.sh")
	if code, _, errout := runUserdata(t, "render", "--join-file", writeEnv(t, workerEnv), "-o", file); code != 0 {
		t.Fatal(errout)
	}
	code, out, _ = runUserdata(t, "lint", "--cloud", "aws", file)
	out = strings.ReplaceAll(out, file, "worker.sh")
	if code != 0 || !strings.Contains(string(page), "worker.sh\n"+out+"```") {
		t.Errorf("the page does not show this (exit %d): %s", code, out)
	}
	if code, out, _ := runUserdata(t, "lint", "--os", "flatcar", "../../userdata/lint/testdata/seed004.sh"); code != 1 || !strings.Contains(out, "W3 fault") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"lint"}, 2, "name one file"},
		{[]string{"lint", "/nonexistent"}, 1, "no such file"},
		{[]string{"downloads", "--kubernetes-version", "v1.29.0"}, 2, "too old"},
		{[]string{"downloads", "--kubernetes-version", "v1.36.99"}, 2, "give --checksum NAME/ARCH=SHA256"},
		{[]string{"downloads", "--kubernetes-version", "v1.36.3", "--versions", "/nonexistent"}, 1, "make versions writes one"},
		{[]string{"render", "--join-file", writeEnv(t, workerEnv), "--before-join", "/nonexistent"}, 1, "read a hook"},
		{[]string{"render", "--join-file", writeEnv(t, workerEnv), "--checksum", "x"}, 2, "write KEY=VALUE"},
	} {
		if code, _, errout := runUserdata(t, c.args...); code != c.code || !strings.Contains(errout, c.want) {
			t.Errorf("%v: exit %d, %q; want %d with %q", c.args, code, errout, c.code, c.want)
		}
	}
}

package userdata

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// FuzzRender gives hostile values to every text field. What Render accepts must come
// out of a shell as it went in, alone on its line; and the quoting functions must
// hold for any text, even that which validation refuses today.
func FuzzRender(f *testing.F) {
	f.Add("k8s:6443", "abcdef.0123456789abcdef", strings.Repeat("0", 64), "a/b", "c", "v1.36.3", "https://x/y", "10.0.0.1")
	f.Add("'$(id)':1", "`id`", "\nJOIN\n", "PATCH", "\\", "v1.31.0-'", "https://x/$(id){arch}", "$x")
	f.Add("[::1]:1", "'\\''", "\x00", "x\r\n", "ä\u2028", "", "http://'\"", "::")
	f.Fuzz(func(t *testing.T, endpoint, token, hash, key, value, version, url, dns string) {
		checkQuoting(t, []string{endpoint, token, hash, key, value, version, url, dns})
		base := sample()
		for _, change := range []func(*Spec){
			func(s *Spec) { s.Join.Endpoint = endpoint },
			func(s *Spec) { s.Join.Token = token },
			func(s *Spec) { s.Join.CACertHashes = []string{"sha256:" + hash} },
			func(s *Spec) { s.Labels = map[string]string{key: value} },
			func(s *Spec) { s.Taints = []cluster.Taint{{Key: key, Value: value, Effect: "NoSchedule"}} },
			func(s *Spec) { s.KubernetesVersion = version },
			func(s *Spec) { s.Downloads.Mirrors = []string{url} },
			func(s *Spec) { s.Proxy.HTTP, s.Proxy.No = url, []string{value} },
			func(s *Spec) { s.RegistryMirrors = map[string]string{key: url} },
			func(s *Spec) { s.AfterJoin = []byte("#!/bin/sh\n" + value) },
			func(s *Spec) { s.ClusterDNS = []string{dns} },
		} {
			s := base
			change(&s)
			script, err := Render(s)
			if err != nil {
				continue
			}
			checkAssignments(t, s, script)
		}
	})
}

func checkAssignments(t *testing.T, s Spec, script []byte) {
	t.Helper()
	section, err := JoinSection(script)
	if err != nil {
		t.Fatal(err)
	}
	var assignments strings.Builder
	for line := range strings.Lines(string(section)) {
		if strings.HasPrefix(line, "JOIN_") {
			assignments.WriteString(line)
		}
	}
	got := shell(t, assignments.String()+`printf '%s\n' "$JOIN_ENDPOINT" "$JOIN_TOKEN" "$JOIN_CERT_HASH"`)
	if want := s.Join.Endpoint + "\n" + s.Join.Token + "\n" + strings.Join(s.Join.CACertHashes, ",") + "\n"; got != want {
		t.Errorf("the shell reads %q, want %q", got, want)
	}
	if packed, ok, err := Unpack(script); ok || err != nil {
		script = packed
	}
	if text := string(script); strings.Count(text, "\nPATCH\n") != 1 || strings.Count(text, "\nJOIN\n") != 1 {
		t.Error("a here-document ends early")
	}
}

func checkQuoting(t *testing.T, values []string) {
	t.Helper()
	var in, want strings.Builder
	for _, v := range values {
		v = strings.ReplaceAll(v, "\x00", "") // no shell holds a NUL
		in.WriteString("printf '%s|' " + shellQuote(v) + "\n")
		in.WriteString("cat <<E\n" + hereQuote(yamlQuote(v)) + "\nE\n")
		want.WriteString(v + "|" + yamlQuote(v) + "\n")
	}
	if got := shell(t, in.String()); got != want.String() {
		t.Errorf("the shell reads %q, want %q", got, want.String())
	}
}

func shell(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-eu")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, script)
	}
	return string(out)
}

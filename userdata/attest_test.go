package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// attested is user data without a token. testdata/ca.crt is a certificate with an RSA key of
// 2048 bits, as kubeadm makes it.
func attested(t testing.TB) Spec {
	t.Helper()
	ca, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	s := sample()
	s.Join.Token, s.Join.Attest, s.Join.CACert = "", "leader.example.net:6444", ca
	s.Join.CACertHashes = []string{"sha256:0d5ab4e5308b73414847abcbcf7ea8ed2f42170faab0634ed9f41288b75fd2e4"}
	return s
}

// TestAttested: every form of user data for AWS fits, holds the CA and the steps and no
// token, and brings no file with one.
func TestAttested(t *testing.T) {
	dir := t.TempDir()
	for _, arch := range append([]string{""}, Arches...) {
		for _, format := range Formats() {
			s := attested(t)
			s.Arch, s.Format = arch, format
			out, err := Render(s)
			if err != nil {
				t.Errorf("%s %s: %v", or(arch, "both"), format, err)
				continue
			}
			t.Logf("%s %s: %d of %d bytes", or(arch, "both"), format, len(out), Limit("aws"))
			script := workerOf(t, format, out)
			for _, want := range []string{"JOIN_ATTEST='leader.example.net:6444'\n", "<<'CA'\n" + string(s.Join.CACert) + "CA\n", AttestSteps + "attest\n"} {
				if !bytes.Contains(script, []byte(want)) {
					t.Errorf("%s: the script lacks %q", format, want)
				}
			}
			if bytes.Contains(script, []byte(tokenFile)) || bytes.Contains(out, []byte(tokenFile)) || bytes.Contains(out, []byte("holds a join token")) {
				t.Errorf("%s: there is a token or its file", format)
			}
			if err := os.WriteFile(filepath.Join(dir, "worker.sh"), script, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, shell := range []string{"sh", "dash", "bash", "busybox"} {
				checkSyntax(t, shell, filepath.Join(dir, "worker.sh"))
			}
		}
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not here")
	}
	if out, err := exec.Command("shellcheck", "-s", "sh", "-S", "warning", filepath.Join(dir, "worker.sh")).CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

// workerOf is the script that a machine runs; the format script is unpacked by the shell.
func workerOf(t *testing.T, format string, out []byte) []byte {
	t.Helper()
	if format != "script" {
		text := string(out)
		if i := strings.Index(text, "H4sI"); i >= 0 {
			text, _, _ = strings.Cut(text[i:], "\"")
		}
		return gunzip(t, text)
	}
	file := filepath.Join(t.TempDir(), "worker.sh")
	begin, end := bytes.Index(out, []byte(packedBegin)), bytes.Index(out, []byte("\n"+scriptEnd+"\n"))
	if begin < 0 || end < 0 {
		t.Fatal("the script is not compressed")
	}
	shell(t, strings.ReplaceAll(string(out[begin:end])+"\n"+scriptEnd+"\n", scriptFile, file))
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	section, err := JoinSection(out)
	if direct, err2 := JoinSection(script); err != nil || err2 != nil || !bytes.Equal(section, direct) {
		t.Errorf("the join section of the user data is not that of its script: %v %v", err, err2)
	}
	return script
}

// TestAttestedProxy: the leader is not asked through the proxy, whatever NO_PROXY says.
func TestAttestedProxy(t *testing.T) {
	s := attested(t)
	s.Proxy.HTTPS = "http://proxy.example.net:3128"
	out, err := Render(s)
	if err != nil {
		t.Fatal(err)
	}
	if script := workerOf(t, "script", out); !bytes.Contains(script, []byte(" --noproxy '*' ")) {
		t.Error("the leader is asked through the proxy")
	}
}

// TestSessionOutlivesAttesting: the session of the metadata service, which is asked for once,
// lasts as long as the machine tries to attest.
func TestSessionOutlivesAttesting(t *testing.T) {
	number := func(text, before string) int {
		t.Helper()
		_, rest, ok := strings.Cut(text, before)
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if !ok || err != nil {
			t.Fatalf("no number after %q", before)
		}
		return n
	}
	session := number(awsFacts, "ttl-seconds: ")
	one := number(AttestSteps, "JOIN_PAUSE:-") + 2*number(AttestSteps, "--max-time ")
	if tries := number(AttestSteps, "JOIN_ATTEST_TRIES:-"); session < tries*one {
		t.Errorf("the session ends after %d s, and %d attempts may take %d s each", session, tries, one)
	}
}

func TestValidateAttest(t *testing.T) {
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte("secret")})
	for _, c := range []struct {
		want   string
		change func(*Spec)
	}{
		{"join.token: a machine that attests gets its token from the leader", func(s *Spec) { s.Join.Token = sample().Join.Token }},
		{`join.attest: "leader" has no port: give host:port of the leader's attest listener`, func(s *Spec) { s.Join.Attest = "leader" }},
		{`join.attest: "b" has no port`, func(s *Spec) { s.Join.Attest = "a:6444,b" }},
		{`join.attest: "a:6444" stands twice`, func(s *Spec) { s.Join.Attest = "a:6444,a:6444" }},
		{`join.attest: "" has no port`, func(s *Spec) { s.Join.Attest = "a:6444," }},
		{"join.attest: only instances of AWS can attest: leave it out on openstack", func(s *Spec) { s.Cloud = "openstack" }},
		{"join.caCert: no certificate in PEM", func(s *Spec) { s.Join.CACert = nil }},
		{"join.caCert: no certificate in PEM", func(s *Spec) { s.Join.CACert = []byte("CA\nreboot\n") }},
		{"join.caCert: holds a RSA PRIVATE KEY: give certificates alone", func(s *Spec) { s.Join.CACert = append(s.Join.CACert, key...) }},
		{"join.caCert: holds a certificate that cannot be read", func(s *Spec) {
			s.Join.CACert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
		}},
		{"join.caCert: none of its certificates has a hash of join.caCertHashes", func(s *Spec) { s.Join.CACertHashes = sample().Join.CACertHashes }},
		{"join.caCert: only a machine that attests reads it", func(s *Spec) { s.Join.Attest, s.Join.Token = "", sample().Join.Token }},
		{"join.caCertHashes: empty", func(s *Spec) { s.Join.CACertHashes = nil }},
	} {
		s := attested(t)
		c.change(&s)
		_, err := Render(s)
		if err == nil || !strings.HasPrefix(err.Error(), "userdata: "+c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one alone with %q", err, c.want)
		}
	}
	if _, _, err := Unpack([]byte("\n" + packedBegin + "H4sI\n" + scriptEnd + "\n")); err == nil {
		t.Error("a cut script unpacks")
	}
}

// TestGunzipIsBounded: a small file that unpacks to more than any cloud takes is an error,
// not a part of it.
func TestGunzipIsBounded(t *testing.T) {
	for size, fits := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write(make([]byte, size))
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		if out, err := Gunzip(&packed); (err == nil) != fits || fits && len(out) != size {
			t.Errorf("%d bytes: %d, %v", size, len(out), err)
		}
	}
}

// TestAttestTriesEachLeader: of several leaders one acts, and the machine finds it, whichever it
// is and whatever the others do; what a leader has judged is not asked of another.
func TestAttestTriesEachLeader(t *testing.T) {
	const token = "abcdef.0123456789abcdef"
	good, standby := "200 JOIN_TOKEN="+token, "429 A0"
	for name, c := range map[string]struct {
		list      string
		addresses map[string]string // what getent tells of a name
		answers   map[string]string // by host:port; none: nothing answers
		want      string            // asked of whom, in this order
		ends      string            // the last word
	}{
		"the only one":        {"cp-1:6444", nil, map[string]string{"cp-1:6444": good}, "cp-1:6444", "phase=token"},
		"the first":           {"cp-1:6444,cp-2:6444", nil, map[string]string{"cp-1:6444": good, "cp-2:6444": standby}, "cp-1:6444", "phase=token"},
		"the third":           {"cp-1:6444,cp-2:6444,cp-3:6444", nil, map[string]string{"cp-1:6444": standby, "cp-3:6444": good}, "cp-1:6444 cp-2:6444 cp-3:6444", "phase=token"},
		"a refusal counts":    {"cp-1:6444,cp-2:6444", nil, map[string]string{"cp-1:6444": "403 A12 joined", "cp-2:6444": good}, "cp-1:6444 cp-1:6444", "phase=failed reason=attest rule=A12"},
		"none":                {"cp-1:6444,cp-2:6444", nil, nil, "cp-1:6444 cp-2:6444 cp-1:6444 cp-2:6444", "phase=failed reason=attest-unreachable"},
		"all stand by":        {"cp-1:6444,cp-2:6444", nil, map[string]string{"cp-1:6444": standby, "cp-2:6444": standby}, "cp-1:6444 cp-2:6444 cp-1:6444 cp-2:6444", "phase=failed reason=attest rule=A0"},
		"a bad request ends":  {"cp-1:6444,cp-2:6444", nil, map[string]string{"cp-1:6444": "400 A1"}, "cp-1:6444", "phase=failed reason=attest rule=A1"},
		"a name of three":     {"k8s.example.net:6444", map[string]string{"k8s.example.net": "10.0.0.1 10.0.0.2 fd00::3"}, map[string]string{"10.0.0.1:6444": standby, "[fd00::3]:6444": good}, "10.0.0.1:6444 10.0.0.2:6444 [fd00::3]:6444", "phase=token"},
		"a name of one":       {"k8s.example.net:6444", map[string]string{"k8s.example.net": "10.0.0.1"}, map[string]string{"k8s.example.net:6444": good}, "k8s.example.net:6444", "phase=token"},
		"an address and name": {"[fd00::1]:6444,cp-2:6444", nil, map[string]string{"cp-2:6444": good}, "[fd00::1]:6444 cp-2:6444", "phase=token"},
	} {
		for _, sh := range []string{"sh", "bash"} {
			dir := t.TempDir()
			script := "set -eu\nphase() { echo \"phase=$*\"; }\ndie() { phase \"failed $*\"; exit 1; }\nlate() { false; }\n" + AttestSteps + `
getent() { # one line for each kind of socket, as the real one
  [ "$1" = ahosts ] || exit 2
  case $2 in
`
			for host, list := range c.addresses {
				script += "  " + host + ") for a in " + list + "; do printf '%-15s %s %s\\n' \"$a\" STREAM x; printf '%-15s %s\\n' \"$a\" DGRAM; done ;;\n"
			}
			script += "  *) return 2 ;;\n  esac\n}\nattest_key() { :; }\nattest_once() {\n  echo \"$at\" >>" + dir + "/asked\n  case $at in\n"
			for at, answer := range c.answers {
				status, text, _ := strings.Cut(answer, " ")
				script += "  '" + at + "') status=" + status + " answer='" + text + "' ;;\n"
			}
			script += "  *) return 1 ;;\n  esac\n}\nJOIN_ATTEST='" + c.list + "' JOIN_ATTEST_TRIES=2 JOIN_PAUSE=0\nattest\n[ \"$JOIN_TOKEN\" = " + token + " ]\n"
			out, err := exec.Command(sh, "-c", script).CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if last := lines[len(lines)-1]; last != c.ends || (err == nil) != (c.ends == "phase=token") {
				t.Errorf("%s, %s: %v\n%s", name, sh, err, out)
			}
			asked, _ := os.ReadFile(dir + "/asked")
			if got := strings.Join(strings.Fields(string(asked)), " "); got != c.want {
				t.Errorf("%s, %s: asked %s, want %s", name, sh, got, c.want)
			}
		}
	}
}

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

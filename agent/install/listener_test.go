package install

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// leaderHost is a machine with a cluster's CA and an agent.env.
func leaderHost(t *testing.T, env string) Host {
	t.Helper()
	h := bare(t)
	h.put(t, envFile, env)
	h.authority(t)
	return h
}

func (h Host) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// authority gives the machine a new CA.
func (h Host) authority(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	h.put(t, attest.AuthorityFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	h.put(t, authorityKeyFile, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})))
}

// the step to the listener's certificate, done where it is a change.
func (h Host) listenerStep(t *testing.T, now time.Time, set ...Setting) Step {
	t.Helper()
	steps, err := h.listener(set, now)
	if err != nil || len(steps) != 1 {
		t.Fatalf("%v, %v", steps, err)
	}
	if steps[0].do != nil {
		if err := steps[0].do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return steps[0]
}

const listens = "AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN=:6444\n"

// TestListener: the certificate is made once, is renewed in its last third, and is made anew
// when it is damaged or the cluster has another CA; certificate and key are one file that the
// agent's group reads.
func TestListener(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	h := leaderHost(t, listens)
	now := time.Now()
	month := 30 * 24 * time.Hour
	read := func() string {
		data, err := os.ReadFile(h.path(attest.DefaultFile))
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(data, data)
		if err != nil || pair.Leaf.VerifyHostname(attest.ServerName) != nil {
			t.Fatalf("%v, names %v", err, pair.Leaf.DNSNames)
		}
		return string(data)
	}
	for _, c := range []struct {
		name   string
		before func()
		at     time.Time
		state  string
		text   string
	}{
		{"first", func() {}, now, Would, "there is none"},
		{"again", func() {}, now, Present, "is good until"},
		{"half a year later", func() {}, now.Add(6 * month), Present, "is good until"},
		{"in its last third", func() {}, now.Add(9 * month), Would, "it ends at"},
		{"back in time", func() {}, now.Add(9 * month), Present, "is good until"},
		{"a torn file", func() { h.put(t, attest.DefaultFile, read()[:300]) }, now.Add(9 * month), Would, "the file is damaged"},
		{"an empty file", func() { h.put(t, attest.DefaultFile, "") }, now.Add(9 * month), Would, "the file is damaged"},
		{"another CA", func() { h.authority(t) }, now, Would, "this cluster's CA did not sign it"},
	} {
		c.before()
		old, _ := os.ReadFile(h.path(attest.DefaultFile))
		s := h.listenerStep(t, c.at)
		if s.State != c.state || !strings.Contains(s.Text, c.text) || (read() == string(old)) != (c.state == Present) {
			t.Errorf("%s: %s %q, want %s with %q", c.name, s.State, s.Text, c.state, c.text)
		}
		if info, err := os.Stat(h.path(attest.DefaultFile)); c.state == Would && (err != nil || info.Mode().Perm() != 0o640 || !h.owned(info)) {
			t.Errorf("%s: mode %v, %v", c.name, info.Mode(), err)
		}
	}
}

// TestListenerIsLeftAlone: without a listener, with files of the operator's own, and where
// the CA's key is elsewhere, nothing is written, and the line says so.
func TestListenerIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		env  string
		set  []Setting
		drop string
		want string
	}{
		"no listener":         {env: "AUTOSCALER_PROVIDER=asg\n"},
		"no agent.env":        {},
		"switched off":        {env: "AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN=\n", set: []Setting{{"AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN", ":6444"}}},
		"own certificate":     {env: listens + "AUTOSCALER_BOOTSTRAP_ATTEST_CERT_FILE=/srv/own.crt\n", want: "/srv/own.crt is your own"},
		"own key":             {env: listens + "AUTOSCALER_BOOTSTRAP_ATTEST_KEY_FILE=/srv/own.key\n", want: "/srv/own.key is your own"},
		"own, newly set":      {env: listens, set: []Setting{{"AUTOSCALER_BOOTSTRAP_ATTEST_CERT_FILE", "/srv/own.crt"}}, want: "/srv/own.crt is your own"},
		"an external CA":      {env: listens, drop: authorityKeyFile, want: "the cluster's CA has no key on this machine"},
		"no CA at all":        {env: listens, drop: attest.AuthorityFile, want: "the cluster's CA has no key on this machine"},
		"newly set, no CA":    {set: []Setting{{"AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN", ":6444"}}, drop: authorityKeyFile, want: "the cluster's CA has no key on this machine"},
		"another's, external": {env: listens, drop: authorityKeyFile, want: "cannot be made here (there is none)"},
	} {
		h := leaderHost(t, c.env)
		if c.drop != "" {
			if err := os.Remove(h.path(c.drop)); err != nil {
				t.Fatal(err)
			}
		}
		steps, err := h.listener(c.set, time.Now())
		if err != nil || len(steps) > 1 || (len(steps) == 0) != (c.want == "") {
			t.Errorf("%s: %v, %v", name, steps, err)
		} else if len(steps) == 1 && (steps[0].State != Present || !strings.Contains(steps[0].Text, c.want)) {
			t.Errorf("%s: %+v, want %q", name, steps[0], c.want)
		}
	}
	h := leaderHost(t, listens)
	h.put(t, authorityKeyFile, "")
	steps, err := h.listener(nil, time.Now())
	if err != nil || len(steps) != 1 || steps[0].do == nil {
		t.Fatalf("%v, %v", steps, err)
	}
	if err := steps[0].do(t.Context()); err == nil || !strings.Contains(err.Error(), "the cluster's CA") || h.exists(attest.DefaultFile) {
		t.Errorf("an empty key: %v", err)
	}
	h.put(t, envFile, "AUTOSCALER_PROVIDER=a\x00\n")
	if _, err := h.listener(nil, time.Now()); err == nil || !strings.Contains(err.Error(), envFile) {
		t.Errorf("a torn agent.env: %v", err)
	}
}

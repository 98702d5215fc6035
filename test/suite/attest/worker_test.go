package attest

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// prelude is what the user data has done before it attests.
const prelude = `set -eu
umask 077
phase() { echo "phase=$*"; }
die() { phase "failed $*"; exit 1; }
imds=$AWS_EC2_METADATA_SERVICE_ENDPOINT/latest
session=$(curl -fsS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$imds/api/token")
fact() { printf 'X-aws-ec2-metadata-token: %s\n' "$session" | curl -fsS -H @- "$imds/meta-data/$1"; }
REGION=$(fact placement/region)
`

// shellWorker is a machine that runs the user data's shell function with the programs of
// this host. Each program that it starts leaves its arguments in a file.
type shellWorker struct {
	dir, args, shell string
	env              []string
}

func (r *rig) worker(t *testing.T, shell, instance string, programs ...string) *shellWorker {
	t.Helper()
	w := &shellWorker{dir: t.TempDir(), shell: shell}
	w.args = filepath.Join(w.dir, "arguments")
	bin := filepath.Join(w.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(programs, "curl", "sha256sum", "od", "sed", "cut", "tr", "cat", "date", "mkdir", "mv", "rm", "sleep", "base64", "grep", "timeout", "tail", "df", "sort", "getent") {
		at, err := exec.LookPath(p)
		if err != nil {
			t.Skipf("this host has no %s", p)
		}
		wrapper := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"%s $*\" >>%s\nexec %s \"$@\"\n", p, w.args, at)
		if err := os.WriteFile(filepath.Join(bin, p), []byte(wrapper), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.dir, "ca.crt"), r.caPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	imds, err := r.cloud.IMDS(instance)
	if err != nil {
		t.Fatal(err)
	}
	w.env = []string{"PATH=" + bin, "dir=" + w.dir, "JOIN_PKI=" + filepath.Join(w.dir, "pki"), "JOIN_ATTEST=" + r.address, "JOIN_CERT_HASH=" + r.hash + ",sha256:other",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + imds, "JOIN_PAUSE=0", "JOIN_ATTEST_TRIES=3"}
	return w
}

func (w *shellWorker) run(t *testing.T) (output string, err error) {
	t.Helper()
	at, err := exec.LookPath(w.shell)
	if err != nil {
		t.Skipf("this host has no %s", w.shell)
	}
	c := exec.CommandContext(t.Context(), at, "-c", prelude+userdata.AttestSteps+"attest\nprintf 'token=%s\\n' \"$JOIN_TOKEN\"\n")
	c.Env = w.env
	c.WaitDelay = time.Minute
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestShellWorkerAttests: the shell function of the user data, with openssl or with
// ssh-keygen, gets a token that is bound to the key it leaves for the kubelet; it gets the
// same one when it is run again; and no secret is in an argument list.
func TestShellWorkerAttests(t *testing.T) {
	r := newRig(t, 4, nil)
	for n, c := range []struct{ shell, keys string }{{"dash", "openssl"}, {"bash", "openssl"}, {"dash", "ssh-keygen"}, {"bash", "ssh-keygen"}} {
		t.Run(c.shell+" with "+c.keys, func(t *testing.T) {
			w := r.worker(t, c.shell, r.members[n].ID, c.keys)
			out, err := w.run(t)
			_, token, ok := strings.Cut(strings.TrimSpace(out), "token=")
			if err != nil || !ok || !strings.Contains(out, "phase=attest\nphase=token\n") {
				t.Fatalf("%v\n%s", err, out)
			}
			if again, err := w.run(t); err != nil || again != out {
				t.Errorf("the second run: %v\n%s", err, again)
			}
			key := keyHash(t, filepath.Join(w.dir, "pki", "kubelet-client.key.tmp"))
			bound := false
			for _, s := range r.tokens() {
				if string(s.Data["token-id"])+"."+string(s.Data["token-secret"]) == token {
					bound = s.Annotations[bootstrap.KeyAnnotation] == key && s.Annotations[bootstrap.InstanceAnnotation] == string(providerID(r.members[n]))
				}
			}
			if !bound {
				t.Errorf("the token %s is not bound to instance %s and key %s", token[:6], r.members[n].ID, key)
			}
			arguments, err := os.ReadFile(w.args)
			if err != nil {
				t.Fatal(err)
			}
			imds := w.credentials(t)
			for name, secret := range map[string]string{"join token": token, "secret key": imds["SecretAccessKey"], "session token": imds["Token"], "signature": "Signature="} {
				if secret == "" || strings.Contains(string(arguments), secret) {
					t.Errorf("the %s stands in an argument list", name)
				}
			}
			if !strings.Contains(string(arguments), "curl ") {
				t.Error("the arguments were not recorded")
			}
		})
	}
}

// serveAs has the listener serve another certificate of the cluster's CA.
func (r *rig) serveAs(t *testing.T, form *x509.Certificate) {
	t.Helper()
	ca, err := tls.X509KeyPair(r.caPEM, r.caKeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	if form.NotAfter.IsZero() {
		form.NotAfter = time.Now().Add(time.Hour)
	}
	if form.ExtKeyUsage == nil {
		form.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, form, ca.Leaf, &key.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})...)
	if err := os.WriteFile(r.cfg.CertFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// Not even a client that asks for another name sees the right one any more.
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		if !s.PeerCertificates[0].Equal(must(x509.ParseCertificate(der))) {
			t.Error("the listener serves its old certificate")
		}
		return nil
	}}, DisableKeepAlives: true}}
	res, err := c.Get("https://" + r.address + "/v1/challenge")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close() // the certificate was looked at
}

func must(c *x509.Certificate, err error) *x509.Certificate {
	if err != nil {
		panic(err)
	}
	return c
}

// TestShellWorkerBehindAnyAddress: the machine finds the listener by whatever name or address
// it was given, and asks no proxy.
func TestShellWorkerBehindAnyAddress(t *testing.T) {
	r := newRig(t, 2, nil)
	_, port, err := net.SplitHostPort(r.address)
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range []struct{ name, host string }{{"a name", "localhost"}, {"an address of IPv6", "[::ffff:127.0.0.1]"}} {
		t.Run(c.name, func(t *testing.T) {
			w := r.worker(t, "dash", r.members[n].ID, "openssl")
			w.env = append(w.env, "JOIN_ATTEST="+c.host+":"+port, "https_proxy=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1")
			if out, err := w.run(t); err != nil || !strings.Contains(out, "phase=token\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestManualCertificate: the command of docs/attested-join.md for a CA that is elsewhere makes
// a certificate that check accepts.
func TestManualCertificate(t *testing.T) {
	page, err := os.ReadFile("../../../docs/attested-join.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\nopenssl req")
	command, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no command that makes the certificate")
	}
	r := &rig{t: t}
	r.certificates(&attest.Config{})
	c := exec.CommandContext(t.Context(), "sh", "-ec", "openssl req"+command)
	c.Dir = t.TempDir()
	for name, text := range map[string][]byte{"ca.crt": r.caPEM, "ca.key": r.caKeyPEM} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.Dir, "attest.crt"), filepath.Join(c.Dir, "attest.key"))
	if err != nil {
		t.Fatal(err)
	}
	if why := attest.Judge(pair, r.caPEM, time.Now()); why != "" {
		t.Error(why)
	}
}

// credentials asks the metadata service as the worker does.
func (w *shellWorker) credentials(t *testing.T) map[string]string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", prelude+"fact iam/security-credentials/worker")
	c.Env = append(w.env, "PATH="+os.Getenv("PATH"))
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimRight(strings.TrimSpace(line), ","), ":")
		found[strings.Trim(name, `" `)] = strings.Trim(value, `" `)
	}
	return found
}

// keyHash is the hash of the public key of a PEM file that a kubelet could read.
func keyHash(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "EC PRIVATE KEY" || len(strings.TrimSpace(string(rest))) > 0 {
		t.Fatalf("%s is no key that client-go reads: %v", name, block)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode: %v %v", info.Mode(), err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// TestShellWorkerIsRefused: what stops a machine stands in its last phase marker.
func TestShellWorkerIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *rig, *shellWorker)
		want   string
	}{
		"joined before": {func(_ *testing.T, r *rig, _ *shellWorker) {
			r.marries(r.members[0].ID, attest.Joined{Node: "ip-10-0-0-1.ec2.internal"})
		}, "phase=failed reason=attest rule=A12"},
		"old": {func(_ *testing.T, r *rig, _ *shellWorker) {
			r.alter(r.members[0].ID, func(in *cluster.Instance) { in.Created = time.Now().Add(-2 * time.Hour) })
		}, "phase=failed reason=attest rule=A11"},
		"another cluster": {func(_ *testing.T, _ *rig, w *shellWorker) {
			w.env = append(w.env, "JOIN_CERT_HASH=sha256:"+strings.Repeat("0", 64))
		}, "phase=failed reason=attest rule=A3"},
		"nobody listens": {func(_ *testing.T, _ *rig, w *shellWorker) {
			w.env = append(w.env, "JOIN_ATTEST=127.0.0.1:1")
		}, "phase=failed reason=attest-unreachable"},
		"a leader of another CA": {func(t *testing.T, r *rig, w *shellWorker) {
			other := &rig{t: t}
			other.certificates(&attest.Config{})
			if err := os.WriteFile(filepath.Join(w.dir, "ca.crt"), other.caPEM, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "phase=failed reason=attest-unreachable"},
		"a kubelet's certificate of the cluster's CA": {func(t *testing.T, r *rig, _ *shellWorker) {
			r.serveAs(t, &x509.Certificate{Subject: pkix.Name{CommonName: "system:node:thief", Organization: []string{"system:nodes"}}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost", "thief"}})
		}, "phase=failed reason=attest-unreachable"},
		"the API server's certificate": {func(t *testing.T, r *rig, _ *shellWorker) {
			r.serveAs(t, &x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"kubernetes", "k8s.example.net"}})
		}, "phase=failed reason=attest-unreachable"},
		"a client's certificate with the name": {func(t *testing.T, r *rig, _ *shellWorker) {
			r.serveAs(t, &x509.Certificate{Subject: pkix.Name{CommonName: attest.ServerName}, DNSNames: []string{attest.ServerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		}, "phase=failed reason=attest-unreachable"},
		"a certificate that ended": {func(t *testing.T, r *rig, _ *shellWorker) {
			r.serveAs(t, &x509.Certificate{DNSNames: []string{attest.ServerName}, NotAfter: time.Now().Add(-time.Minute)})
		}, "phase=failed reason=attest-unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, nil)
			w := r.worker(t, "dash", r.members[0].ID, "openssl")
			c.change(t, r, w)
			if out, err := w.run(t); err == nil || !strings.Contains(out, c.want+"\n") {
				t.Errorf("%v, want %q:\n%s", err, c.want, out)
			}
			if n := len(r.tokens()); n != 0 {
				t.Errorf("%d tokens were made", n)
			}
		})
	}
}

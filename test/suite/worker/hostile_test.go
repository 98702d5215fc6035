package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestWorkerStops: a machine that cannot join says on its console where it stopped and why,
// and becomes no Node.
func TestWorkerStops(t *testing.T) {
	r := newRig(t)
	published, err := os.ReadFile(r.workerEnv())
	if err != nil {
		t.Fatal(err)
	}
	// changed renders with other join values than the published ones.
	changed := func(t *testing.T, change func(name, value string) string) []byte {
		var b strings.Builder
		for line := range strings.Lines(string(published)) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			b.WriteString(name + "=" + change(name, value) + "\n")
		}
		file := filepath.Join(t.TempDir(), "worker.env")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return r.render(t, "--join-file", file)
	}
	replace := func(which string, with func(string) string) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			return changed(t, func(name, value string) string {
				if name == which {
					return with(value)
				}
				return value
			})
		}
	}
	tampered := r.tamper(t)
	for _, c := range []struct {
		name   string
		script func(t *testing.T) []byte
		size   string
		marker string
		says   string // part of what explain instance says
	}{
		{"wrong token", replace("JOIN_TOKEN", func(string) string { return "zzzzzz.0123456789abcdef" }), "", "failed reason=join-token", "the token has ended or was revoked"},
		{"wrong secret", replace("JOIN_TOKEN", func(v string) string { return strings.Trim(v, `"'`)[:7] + "0123456789abcdef" }), "", "failed reason=cluster-info-signature", "secret is not the one that cluster-info is signed with"},
		{"wrong pin", replace("JOIN_CERT_HASH", func(string) string { return "sha256:" + strings.Repeat("0", 64) }), "", "failed reason=ca-pin", "is not the one that is pinned"},
		{"tampered cluster-info", replace("JOIN_ENDPOINT", func(string) string { return tampered }), "", "failed reason=cluster-info-signature", "or somebody changed cluster-info"},
		{"nobody answers", replace("JOIN_ENDPOINT", func(string) string { return "127.0.0.1:9" }), "", "failed reason=endpoint", "endpoint does not answer"},
		{"dead mirror", func(t *testing.T) []byte { return r.render(t, "--mirror", "http://127.0.0.1:9") }, "", "failed reason=download file=containerd", "containerd: a file could not be fetched"},
		{"full disk", func(t *testing.T) []byte { return r.render(t) }, "150M", "failed reason=no-space", "the disk is full"},
		{"failing hook", func(t *testing.T) []byte {
			file := filepath.Join(t.TempDir(), "hook")
			if err := os.WriteFile(file, []byte("#!/bin/sh\nexit 7\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return r.render(t, "--before-join", file)
		}, "", "failed reason=before-join rc=7", "own hook failed"},
		{"corrupt download", func(t *testing.T) []byte {
			r.mirror.Corrupt("kubelet", true)
			t.Cleanup(func() { r.mirror.Corrupt("kubelet", false) })
			return r.render(t)
		}, "", "failed reason=checksum file=kubelet", "kubelet: a file is not the one"},
		{"a name that is taken", func(t *testing.T) []byte { return r.render(t) }, "", "failed reason=node-name", "has the machine's name already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			taken := c.name == "a name that is taken"
			if taken {
				r.beforeBoot = func(i aws.Instance) { r.namesake(t, i.PrivateDNS) }
				defer func() { r.beforeBoot = nil }()
			}
			m, i := r.machine(t, c.script(t), c.size, "JOIN_TRIES=1", "JOIN_DISCOVERY_TIMEOUT=5s")
			console(t, m, c.marker)
			r.explained(t, m, i, c.says)
			if strings.Contains(m.ConsoleText(), "phase=joined") {
				t.Error("it has joined")
			}
			n, err := r.cp.Client().CoreV1().Nodes().Get(t.Context(), i.PrivateDNS, metav1.GetOptions{})
			if err == nil && !taken || taken && (err != nil || n.Spec.ProviderID != "") {
				t.Errorf("the Node: %v, %v", n, err)
			}
			if c.name == "corrupt download" {
				if out, err := m.Run(t.Context(), "ls", "/usr/local/bin/kubelet"); err == nil {
					t.Errorf("the corrupt program was installed: %s", out)
				}
			}
		})
	}
}

// explained: the command that the pages name reads the machine's console from the cloud and
// says what is wrong.
func (r *rig) explained(t *testing.T, m *Container, i aws.Instance, says string) {
	t.Helper()
	r.cloud.Console(i.ID, m.ConsoleText())
	c := exec.CommandContext(t.Context(), os.Getenv("AUTOSCALER_TEST_AGENT"), "explain", "instance", i.ID)
	c.Env = r.env
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), says) {
		t.Errorf("explain instance: %v, want %q\n%s", err, says, out)
	}
}

// namesake is another machine's Node, which is Ready as long as the test runs.
func (r *rig) namesake(t *testing.T, name string) {
	t.Helper()
	nodes := r.cp.Client().CoreV1().Nodes()
	n, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	heard := make(chan struct{})
	go func() { // as its kubelet
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for first := true; ctx.Err() == nil; first = false {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
			n.ResourceVersion = ""
			if _, err := nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if first {
				close(heard)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	<-heard
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// tamper is a server between the machine and the control plane that changes where
// cluster-info sends its readers.
func (r *rig) tamper(t *testing.T) string {
	t.Helper()
	to, err := url.Parse(r.cp.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(r.cp.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(to)
			q.Out.Header.Set("Accept", "application/json")
			q.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(a *http.Response) error {
			body, err := io.ReadAll(a.Body)
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(string(body), "server: https://", "server: https://evil.example.net/")
			a.Body = io.NopCloser(strings.NewReader(text))
			a.ContentLength = int64(len(text))
			a.Header.Del("Content-Length")
			return nil
		},
	}
	s := httptest.NewTLSServer(proxy)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

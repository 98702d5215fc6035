package worker

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	}{
		{"wrong token", replace("JOIN_TOKEN", func(string) string { return "zzzzzz.0123456789abcdef" }), "", "failed reason=join-token"},
		{"wrong secret", replace("JOIN_TOKEN", func(v string) string { return strings.Trim(v, `"'`)[:7] + "0123456789abcdef" }), "", "failed reason=cluster-info-signature"},
		{"wrong pin", replace("JOIN_CERT_HASH", func(string) string { return "sha256:" + strings.Repeat("0", 64) }), "", "failed reason=ca-pin"},
		{"tampered cluster-info", replace("JOIN_ENDPOINT", func(string) string { return tampered }), "", "failed reason=cluster-info-signature"},
		{"nobody answers", replace("JOIN_ENDPOINT", func(string) string { return "127.0.0.1:9" }), "", "failed reason=endpoint"},
		{"dead mirror", func(t *testing.T) []byte { return r.render(t, "--mirror", "http://127.0.0.1:9") }, "", "failed reason=download file=containerd"},
		{"full disk", func(t *testing.T) []byte { return r.render(t) }, "150M", "failed reason=no-space"},
		{"failing hook", func(t *testing.T) []byte {
			file := filepath.Join(t.TempDir(), "hook")
			if err := os.WriteFile(file, []byte("#!/bin/sh\nexit 7\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return r.render(t, "--before-join", file)
		}, "", "failed reason=before-join rc=7"},
		{"corrupt download", func(t *testing.T) []byte {
			r.mirror.Corrupt("kubelet", true)
			t.Cleanup(func() { r.mirror.Corrupt("kubelet", false) })
			return r.render(t)
		}, "", "failed reason=checksum file=kubelet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, i := r.machine(t, c.script(t), c.size, "JOIN_TRIES=1", "JOIN_DISCOVERY_TIMEOUT=5s")
			console(t, m, c.marker)
			if strings.Contains(m.ConsoleText(), "phase=joined") {
				t.Error("it has joined")
			}
			if _, err := r.cp.Client().CoreV1().Nodes().Get(t.Context(), i.PrivateDNS, metav1.GetOptions{}); err == nil {
				t.Error("the Node is there")
			}
			if c.name == "corrupt download" {
				if out, err := m.Run(t.Context(), "ls", "/usr/local/bin/kubelet"); err == nil {
					t.Errorf("the corrupt program was installed: %s", out)
				}
			}
		})
	}
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

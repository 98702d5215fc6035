package worker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
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
	// hooked changes the machine before it joins.
	hooked := func(steps string) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			file := filepath.Join(t.TempDir(), "hook")
			if err := os.WriteFile(file, []byte(hook+steps), 0o600); err != nil {
				t.Fatal(err)
			}
			return r.render(t, "--before-join", file)
		}
	}
	unit := func(name, settings string) func(t *testing.T) []byte {
		return hooked("mkdir -p /etc/systemd/system/" + name + ".service.d\nprintf '[Service]\\n" + settings + "\\n' >/etc/systemd/system/" + name +
			".service.d/99-test.conf\nsystemctl daemon-reload\nsystemctl restart " + name + " || :\n")
	}
	for _, c := range []struct {
		name   string
		script func(t *testing.T) []byte
		size   string
		marker string
		says   string // part of what explain instance says
	}{
		{"wrong token", replace("JOIN_TOKEN", func(string) string { return "zzzzzz.0123456789abcdef" }), "", "failed reason=join-token", "token zzzzzz of its user data is none of this cluster"},
		{"wrong secret", replace("JOIN_TOKEN", func(v string) string { return strings.Trim(v, `"'`)[:7] + "0123456789abcdef" }), "", "failed reason=cluster-info-signature", "secret is not the one that cluster-info is signed with"},
		{"wrong pin", replace("JOIN_CERT_HASH", func(string) string { return "sha256:" + strings.Repeat("0", 64) }), "", "failed reason=ca-pin", "the pin in its user data is not that"},
		{"tampered cluster-info", replace("JOIN_ENDPOINT", func(string) string { return tampered }), "", "failed reason=cluster-info-signature", "or somebody changed cluster-info"},
		{"nobody answers", replace("JOIN_ENDPOINT", func(string) string { return "127.0.0.1:9" }), "", "failed reason=endpoint-refused", "the endpoint refuses the connection"},
		{"no such name", replace("JOIN_ENDPOINT", func(string) string { return "no-such-name.invalid:6443" }), "", "failed reason=dns", "DNS does not resolve the name of the endpoint"},
		{"packets are dropped", replace("JOIN_ENDPOINT", func(string) string { return dropping(t) }), "", "failed reason=endpoint-timeout", "something drops the packets"},
		{"no route", replace("JOIN_ENDPOINT", func(string) string { return "192.0.2.1:6443" }), "", "failed reason=endpoint-route", "no route to the endpoint"},
		{"another server", replace("JOIN_ENDPOINT", func(string) string { return strings.TrimPrefix(r.mirror.URL, "http://") }), "", "failed reason=endpoint-other", "is no API server"},
		{"a clock that is an hour behind", replace("JOIN_ENDPOINT", func(string) string { return r.future(t) }), "", "failed reason=clock clock=-3", "clock is wrong"},
		{"an older cluster", func(t *testing.T) []byte { r.clusterVersion(t, "v1.30.14"); return r.render(t) }, "", "failed reason=version-skew", "does not fit that of the cluster"},
		{"a kubelet that crashes", unit("kubelet", `ExecStart=\nExecStart=/bin/false`), "", "failed reason=kubelet node=", "the kubelet crashes"},
		{"a kubelet with a bad flag", unit("kubelet", `ExecStart=\nExecStart=/usr/local/bin/kubelet --no-such-flag`), "", "failed reason=kubelet-config", "does not take its flags"},
		{"a kubelet on cgroup v1", func(t *testing.T) []byte {
			r.kubeletSetting(t, "failCgroupV1: false", "failCgroupV1: true")
			return r.render(t)
		}, "", "failed reason=kubelet-cgroup-v1", "does not run on cgroup v1"},
		{"containerd that crashes", unit("containerd", `ExecStart=\nExecStart=/bin/false`), "", "failed reason=containerd", "containerd crashes"},
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
			m, i := r.machine(t, c.script(t), c.size, "JOIN_TRIES=1", "JOIN_DISCOVERY_TIMEOUT=5s", "JOIN_TRY=40")
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

// dropping is an address whose queue of connections is full: the kernel drops what asks for more.
func dropping(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for {
		c, err := net.DialTimeout("tcp", at, time.Second)
		if err != nil {
			return at
		}
		t.Cleanup(func() { c.Close() })
	}
}

// future is the control plane behind a server whose certificate and clock are an hour ahead of this machine's.
func (r *rig) future(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(r.proxy(t, func(a *http.Response) error {
		a.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		return nil
	}))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(time.Hour), NotAfter: time.Now().Add(2 * time.Hour), IPAddresses: []net.IP{{127, 0, 0, 1}}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

// clusterVersion lets kubeadm-config say another version of the control plane while the test runs.
func (r *rig) clusterVersion(t *testing.T, version string) {
	t.Helper()
	r.setting(t, "kubeadm-config", "ClusterConfiguration", func(text string) string {
		return regexp.MustCompile(`kubernetesVersion: \S+`).ReplaceAllString(text, "kubernetesVersion: "+version)
	})
}

func (r *rig) kubeletSetting(t *testing.T, before, after string) {
	t.Helper()
	r.setting(t, "kubelet-config", "kubelet", func(text string) string { return strings.ReplaceAll(text, before, after) })
}

// setting changes a ConfigMap of kubeadm's while the test runs.
func (r *rig) setting(t *testing.T, name, key string, change func(string) string) {
	t.Helper()
	put := func(ctx context.Context, value func(string) string) string {
		maps := r.cp.Client().CoreV1().ConfigMaps("kube-system")
		cm, err := maps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		was := cm.Data[key]
		cm.Data[key] = value(was)
		if _, err := maps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return was
	}
	was := put(t.Context(), change)
	t.Cleanup(func() { put(context.Background(), func(string) string { return was }) })
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
	s := httptest.NewTLSServer(r.proxy(t, func(a *http.Response) error {
		body, err := io.ReadAll(a.Body)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(body), "server: https://", "server: https://evil.example.net/")
		a.Body = io.NopCloser(strings.NewReader(text))
		a.ContentLength = int64(len(text))
		a.Header.Del("Content-Length")
		return nil
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

// proxy leads to the control plane and changes its answers.
func (r *rig) proxy(t *testing.T, change func(*http.Response) error) http.Handler {
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
	return &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(to)
			q.Out.Header.Set("Accept", "application/json")
			q.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: change,
	}
}

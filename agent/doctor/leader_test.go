package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func bothServices() config.Config {
	return config.Config{Services: config.Services{CSR: csrsigner.Config{Enabled: true}, Bootstrap: bootstrap.Config{Enabled: true}}}
}

func certificate(t *testing.T, from, to time.Time, names ...string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "autoscaler-agent"}, NotBefore: from, NotAfter: to, DNSNames: names}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func inPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// expect compares the gravest finding with a level and a text.
func expect(t *testing.T, name string, got []Finding, level Level, text string) {
	t.Helper()
	for _, f := range got {
		if f.Level == level && strings.Contains(f.Text, text) && (level == LevelOK) == (f.Remedy == "") {
			return
		}
	}
	t.Errorf("%s: %+v, want %s with %q", name, got, level, text)
}

func TestCheckOwnCertificate(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		from, to time.Duration
		level    Level
		text     string
	}{
		"fresh":       {-time.Hour, 365 * 24 * time.Hour, LevelOK, "user autoscaler-agent until"},
		"ends soon":   {-360 * 24 * time.Hour, 5 * 24 * time.Hour, LevelWarning, "ends soon"},
		"has ended":   {-360 * 24 * time.Hour, -time.Hour, LevelError, "has ended"},
		"short-lived": {-time.Hour, 23 * time.Hour, LevelOK, "until"},
	} {
		cert := certificate(t, now.Add(c.from), now.Add(c.to))
		expect(t, name, checkOwnCertificate(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: inPEM(cert)}}, now), c.level, c.text)
	}
	expect(t, "file", checkOwnCertificate(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: t.TempDir() + "/none"}}, now), LevelError, "no such file")
	if got := checkOwnCertificate(&rest.Config{BearerToken: "x"}, now); len(got) != 0 {
		t.Errorf("a token has no certificate: %+v", got)
	}
}

func TestCheckManager(t *testing.T) {
	good := []string{"kube-controller-manager", "--controllers=*,bootstrapsigner,tokencleaner", "--cluster-signing-cert-file=/ca.crt", "--cluster-signing-key-file=/ca.key"}
	for name, c := range map[string]struct {
		args  []string
		level Level
		text  string
	}{
		"kubeadm's":     {good, LevelOK, "signs certificates and cluster-info"},
		"apart":         {[]string{"kube-controller-manager", "--controllers", "*,bootstrapsigner,tokencleaner", "--cluster-signing-cert-file", "/ca.crt", "--cluster-signing-key-file", "/ca.key"}, LevelOK, "signs"},
		"no signer":     {[]string{good[0], "--controllers=*,tokencleaner", good[2], good[3]}, LevelError, "no bootstrapsigner"},
		"switched off":  {[]string{good[0], "--controllers=*,-bootstrapsigner,tokencleaner", good[2], good[3]}, LevelError, "no bootstrapsigner"},
		"defaults":      {[]string{good[0], good[2], good[3]}, LevelError, "no tokencleaner"},
		"no CA":         {good[:2], LevelError, "no CA to sign with"},
		"no key":        {good[:3], LevelError, "no CA to sign with"},
		"CAs by signer": {append(good[:2:2], "--cluster-signing-kubelet-client-cert-file=a", "--cluster-signing-kubelet-client-key-file=a", "--cluster-signing-kubelet-serving-cert-file=a", "--cluster-signing-kubelet-serving-key-file=a"), LevelOK, "signs"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-controller-manager-leader"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: c.args}}}}
		expect(t, name, checkManager(t.Context(), bothServices(), kubetest.Client(fake.NewClientset(pod))), c.level, c.text)
	}
	expect(t, "no pod", checkManager(t.Context(), bothServices(), kubetest.Client(fake.NewClientset())), LevelOK, "cannot be seen")
}

// TestCheckName: a leader that comes back under another name or address is named.
func TestCheckName(t *testing.T) {
	node := func(name, address string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.LabelControlPlane: ""}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name}}}}
	}
	for name, c := range map[string]struct {
		node, address string
		level         Level
		text          string
	}{
		"as it was":       {"leader", "10.0.0.5", LevelOK, "this machine is Node leader"},
		"another address": {"leader", "10.0.0.9", LevelError, "came back with another address"},
		"another name":    {"old", "10.0.0.5", LevelWarning, "came back with another host name"},
		"a stranger":      {"old", "10.0.0.9", LevelWarning, "no Node of the control plane"},
	} {
		m := machine{name: "leader", addresses: []string{"127.0.0.1", "10.0.0.5"}}
		expect(t, name, checkName(t.Context(), kubetest.Client(fake.NewClientset(node(c.node, c.address))), m), c.level, c.text)
	}
}

// TestCheckServer: the name in the kubeconfig leads elsewhere.
func TestCheckServer(t *testing.T) {
	for name, c := range map[string]struct {
		resolves string
		level    Level
		text     string
	}{"elsewhere": {"10.0.0.9", LevelWarning, "leads to 10.0.0.9"}, "nowhere": {"", LevelError, "no such host"}, "here": {"10.0.0.5", "", ""}} {
		m := machine{addresses: []string{"10.0.0.5"}, lookup: func(context.Context, string) ([]string, error) {
			if c.resolves == "" {
				return nil, errors.New("no such host")
			}
			return []string{c.resolves}, nil
		}}
		got := checkServer(t.Context(), "https://k8s.example.net:6443", m)
		if c.level == "" {
			if len(got) != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		expect(t, name, got, c.level, c.text)
	}
}

// TestCheckServerOfOldAddress: etcd and API server do not start with an address that the machine has lost.
func TestCheckServerOfOldAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kube-apiserver.yaml")
	if err := os.WriteFile(file, []byte("spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --advertise-address=10.0.0.5\n    - --allow-privileged=true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := machine{addresses: []string{"10.0.0.9"}, advertised: advertised(file), lookup: func(context.Context, string) ([]string, error) { return []string{"10.0.0.9"}, nil }}
	expect(t, "lost", checkServer(t.Context(), "https://k8s.example.net:6443", m), LevelError, "up for 10.0.0.5, and it has only 10.0.0.9")
	for name, advertised := range map[string]string{"its own": "10.0.0.9", "no manifest": advertised(file + ".none")} {
		m.advertised = advertised
		if got := checkServer(t.Context(), "https://k8s.example.net:6443", m); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestCheckEndpoint(t *testing.T) {
	now := time.Now()
	serving := certificate(t, now.Add(-time.Hour), now.Add(time.Hour), "k8s.example.net", "other.example.net")
	info := func(server string) *corev1.ConfigMap {
		text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "clusters": []any{map[string]any{"name": "", "cluster": map[string]any{
			"server": server, "certificate-authority-data": inPEM(serving)}}}})
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{"kubeconfig": string(text)}}
	}
	kubeadm := func(endpoint string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "controlPlaneEndpoint: " + endpoint + "\n"}}
	}
	for name, c := range map[string]struct {
		endpoint, server string
		resolves, alive  string // addresses
		level            Level
		text             string
	}{
		"well":              {"k8s.example.net:6443", "https://k8s.example.net:6443", "10.0.0.5", "10.0.0.5:6443", LevelOK, "answers there"},
		"no SAN":            {"new.example.net:6443", "https://new.example.net:6443", "10.0.0.5", "10.0.0.5:6443", LevelError, "none of the names"},
		"no DNS":            {"k8s.example.net:6443", "https://k8s.example.net:6443", "", "", LevelError, "does not resolve"},
		"another address":   {"k8s.example.net:6443", "https://k8s.example.net:6443", "10.0.0.9", "10.0.0.5:6443", LevelError, "leads to 10.0.0.9"},
		"cluster-info's":    {"k8s.example.net:6443", "https://other.example.net:7443", "10.0.0.5", "10.0.0.5:6443", LevelError, "other.example.net:7443"},
		"no kubeadm-config": {"", "https://k8s.example.net:6443", "10.0.0.5", "10.0.0.5:6443", LevelOK, "cluster-info's server"},
	} {
		client := fake.NewClientset(info(c.server))
		if c.endpoint != "" {
			client = fake.NewClientset(info(c.server), kubeadm(c.endpoint))
		}
		m := machine{addresses: []string{"10.0.0.5"},
			lookup: func(_ context.Context, host string) ([]string, error) {
				if c.resolves == "" {
					return nil, &net.DNSError{Err: "no such host", Name: host}
				}
				return []string{c.resolves}, nil
			},
			dial: func(_ context.Context, address string, settings *tls.Config) error {
				if settings.RootCAs == nil || settings.ServerName == "" {
					t.Error("the server is not verified")
				}
				if address != c.alive {
					return errors.New("connection refused")
				}
				return nil
			}}
		got := checkEndpoint(t.Context(), bothServices(), kubetest.Client(client), func(context.Context) (*x509.Certificate, error) { return serving, nil }, m)
		expect(t, fmt.Sprint(name, " ", c.endpoint), got, c.level, c.text)
	}
}

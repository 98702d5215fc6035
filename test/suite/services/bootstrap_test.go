package services

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// published reads the environment file.
func published(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			t.Fatalf("line %q", line)
		}
		out[key] = value
	}
	return out
}

func testBootstrap(t *testing.T, cp *controlplane.ControlPlane) {
	file := filepath.Join(t.TempDir(), "worker.env")
	cfg := bootstrap.Config{File: file, TokenTTL: 12 * time.Second, TokenGroups: []string{bootstrap.WorkersGroup}}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	// With the agent's own rights, under the policies that hold its credential.
	if err := world.ApplyUnits(t.Context(), cp, "admission-policy.yaml", "rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	own := cp.RESTConfig()
	own.Impersonate = rest.ImpersonationConfig{UserName: world.AgentUser, Groups: []string{"system:authenticated"}}
	client, err := kube.New(own)
	if err != nil {
		t.Fatal(err)
	}
	service := func() *bootstrap.Service {
		return bootstrap.New(cfg, bootstrap.Deps{Client: client, Rest: cp.RESTConfig(), Log: quiet("bootstrap")})
	}
	start := time.Now()
	serve(t, nil, service().Run)
	await.True(t, "join information is published", func() bool { return published(t, file) != nil })
	t.Logf("published after %s", time.Since(start).Round(time.Millisecond))
	join := published(t, file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v, want 0600", info.Mode(), err)
	}
	t.Run("discovery as kubeadm does it", func(t *testing.T) { discover(t, cp, join) })
	t.Run("renewal keeps the token", func(t *testing.T) {
		await.True(t, "the expiry moves", func() bool { return published(t, file)["JOIN_TOKEN_EXPIRES"] > join["JOIN_TOKEN_EXPIRES"] })
		if now := published(t, file)["JOIN_TOKEN"]; now != join["JOIN_TOKEN"] {
			t.Error("renewal made another token")
		}
	})
	t.Run("rehearsal", func(t *testing.T) {
		good, lacks := bootstrap.ReadJoin([]byte(readAll(t, file)))
		if len(lacks) > 0 {
			t.Errorf("the published file lacks %v", lacks)
		}
		rehearse(t, good, "")
		before, err := cp.Client().CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, csr := range before.Items {
			if strings.HasPrefix(csr.Name, "rehearsal-") {
				t.Errorf("the rehearsal wrote request %s", csr.Name)
			}
		}
		wrong := good
		wrong.Token = good.Token[:7] + strings.Repeat("0", 16)
		rehearse(t, wrong, "does not verify")
		wrong = good
		wrong.CAHashes = []string{"sha256:" + strings.Repeat("0", 64)}
		rehearse(t, wrong, "none of the pinned hashes")
	})
	secrets := cp.Client().CoreV1().Secrets("kube-system")
	t.Run("one token for several agents", func(t *testing.T) {
		second := service()
		serve(t, nil, second.Run)
		await.True(t, "the second agent publishes", func() bool { _, ok := second.Join(); return ok })
		list, err := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("%d tokens %v, want one", len(list.Items), err)
		}
		for _, s := range list.Items {
			if len(s.Data["expiration"]) == 0 {
				t.Errorf("token %s never expires", s.Data["token-id"])
			}
		}
	})
	t.Run("a deleted token is replaced", func(t *testing.T) {
		old := published(t, file)["JOIN_TOKEN"]
		id, _, _ := strings.Cut(old, ".")
		if err := secrets.Delete(t.Context(), "bootstrap-token-"+id, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		await.True(t, "another token is published", func() bool { return published(t, file)["JOIN_TOKEN"] != old })
		discover(t, cp, published(t, file))
	})
}

func readAll(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// rehearse expects the rehearsal of a join to stop with these words, or to come to its end.
func rehearse(t *testing.T, join bootstrap.Join, want string) {
	t.Helper()
	steps := bootstrap.Rehearse(t.Context(), join)
	last := steps[len(steps)-1]
	if (last.Err == nil) != (want == "") || last.Err != nil && !strings.Contains(last.Err.Error(), want) {
		t.Errorf("step %d, %s: %v, want %q", len(steps), last.What, last.Err, want)
	}
	if want == "" && len(steps) != 8 {
		t.Errorf("%d steps, want 8", len(steps))
	}
}

// discover walks the way of kubeadm join with the published values: an insecure look
// at cluster-info, its signature, the pin, a secure look, a call with the token.
func discover(t *testing.T, cp *controlplane.ControlPlane, join map[string]string) {
	t.Helper()
	id, secret, _ := strings.Cut(join["JOIN_TOKEN"], ".")
	insecure := &rest.Config{Host: "https://" + join["JOIN_ENDPOINT"], TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(insecure)
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !jws.DetachedTokenIsValid(info.Data["jws-kubeconfig-"+id], info.Data["kubeconfig"], id, secret) {
		t.Error("the signature in cluster-info does not verify")
	}
	ca, err := os.ReadFile(cp.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(ca)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	if want := "sha256:" + hex.EncodeToString(sum[:]); join["JOIN_CERT_HASH"] != want {
		t.Errorf("pin %s, want %s", join["JOIN_CERT_HASH"], want)
	}
	secure := &rest.Config{Host: insecure.Host, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, BearerToken: join["JOIN_TOKEN"]}
	joiner, err := kubernetes.NewForConfig(secure)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	if _, err := joiner.CoreV1().ConfigMaps("kube-system").Get(ctx, "kubeadm-config", metav1.GetOptions{}); err != nil {
		t.Errorf("a worker with the token cannot read kubeadm-config: %v", err)
	}
	if !strings.HasPrefix(join["JOIN_KUBERNETES_VERSION"], "v1.") {
		t.Errorf("version %q", join["JOIN_KUBERNETES_VERSION"])
	}
}

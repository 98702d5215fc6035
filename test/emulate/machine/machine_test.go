package machine

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// metadata is the part of IMDSv2 that the join section asks for.
func metadata(t *testing.T, cfg Config) string {
	t.Helper()
	const session = "AQAAA-session"
	facts := map[string]string{
		"local-hostname": cfg.Name + " second.example.net", "instance-id": cfg.InstanceID, "instance-type": cfg.InstanceType,
		"placement/availability-zone": cfg.Zone, "placement/region": strings.TrimRight(cfg.Zone, "abc"),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "" {
			fmt.Fprint(w, session)
			return
		}
		fact, ok := facts[strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")]
		switch {
		case r.Header.Get("X-aws-ec2-metadata-token") != session:
			w.WriteHeader(http.StatusUnauthorized)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, fact)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// world is one control plane with what the tests know about it.
type world struct {
	*controlplane.ControlPlane
	roots *x509.CertPool
	pin   string
	count int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		ControlPlane: controlplane.ForTest(t, controlplane.Options{Fast: true, NodeMonitorGrace: 6 * time.Second, NodeLeaseSeconds: 8}),
		roots:        x509.NewCertPool(),
	}
	text, err := os.ReadFile(w.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	w.roots.AddCert(ca)
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	w.pin = "sha256:" + hex.EncodeToString(sum[:])
	return w
}

// token makes a bootstrap token that lives for ttl.
func (w *world) token(t *testing.T, id string, ttl time.Duration) string {
	t.Helper()
	const secret = "0123456789abcdef"
	_, err := w.Client().CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "expiration": time.Now().Add(ttl).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return id + "." + secret
}

func (w *world) spec(token string) userdata.Spec {
	return userdata.Spec{
		Cloud: "aws", KubernetesVersion: w.Binaries().Version,
		Join:        userdata.Join{Endpoint: strings.TrimPrefix(w.RESTConfig().Host, "https://"), Token: token, CACertHashes: []string{w.pin}},
		Reservation: userdata.DefaultReservation(),
		Labels:      map[string]string{"example.net/pool": "batch"},
	}
}

func (w *world) config(t *testing.T, spec userdata.Spec) Config {
	t.Helper()
	script, err := userdata.Render(spec)
	if err != nil {
		t.Fatal(err)
	}
	w.count++
	cfg := Config{
		UserData: script, InstanceID: fmt.Sprintf("i-%017x", w.count), Name: fmt.Sprintf("ip-10-0-0-%d.ec2.internal", w.count),
		Zone: "us-east-1a", InstanceType: "m5.large",
		Capacity:         cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, EphemeralStorage: 20 << 30},
		Addresses:        []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(w.count)})},
		DiscoveryTimeout: 5 * time.Second, RetrySleep: 50 * time.Millisecond,
		Log: t.Output(),
	}
	cfg.IMDSEndpoint = metadata(t, cfg)
	return cfg
}

func boot(t *testing.T, cfg Config) *Machine {
	t.Helper()
	m, err := Boot(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Die)
	return m
}

func (w *world) ready(t *testing.T, m *Machine) *corev1.Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	if err := m.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return w.node(t, m)
}

func (w *world) node(t *testing.T, m *Machine) *corev1.Node {
	t.Helper()
	node, err := w.Client().CoreV1().Nodes().Get(t.Context(), m.cfg.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// approve approves the pending serving requests of a machine, and fails when there
// is none within the time.
func (w *world) approve(t *testing.T, m *Machine) {
	t.Helper()
	api := w.Client().CertificatesV1().CertificateSigningRequests()
	await.Nil(t, "approve the serving request", func(ctx context.Context) error {
		list, err := api.List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
		if err != nil {
			return err
		}
		for _, csr := range list.Items {
			if csr.Spec.Username != "system:node:"+m.cfg.Name || len(csr.Status.Conditions) > 0 {
				continue
			}
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
			_, err := api.UpdateApproval(ctx, csr.Name, &csr, metav1.UpdateOptions{})
			return err
		}
		return errors.New("no pending request")
	})
}

func (w *world) pod(t *testing.T, name, node string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "web", Image: "nginx",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}},
	}
	if change != nil {
		change(pod)
	}
	await.Nil(t, "create pod", func(ctx context.Context) error {
		_, err := w.Client().CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	return pod
}

func (w *world) phase(t *testing.T, pod string, want corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var got *corev1.Pod
	await.Nil(t, "pod "+pod+" "+string(want), func(ctx context.Context) error {
		var err error
		if got, err = w.Client().CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{}); err != nil {
			return err
		}
		if got.Status.Phase != want {
			return fmt.Errorf("phase %s %s", got.Status.Phase, got.Status.Reason)
		}
		return nil
	})
	return got
}

// One control plane serves all of these.
func TestMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real control plane")
	}
	w := newWorld(t)
	token := w.token(t, "aaaaaa", time.Hour)
	t.Run("a wrong pin is refused", func(t *testing.T) { testWrongPin(t, w, token) })
	t.Run("an expired token finds nothing", func(t *testing.T) { testExpired(t, w) })
	t.Run("a name that lives is refused", func(t *testing.T) { testNameTaken(t, w, token) })
	t.Run("pods that do not fit", func(t *testing.T) { testPods(t, w, token) })
	t.Run("hangs, reboots, dies", func(t *testing.T) { testLife(t, w, token) })
	t.Run("real kubeadm takes the configuration", func(t *testing.T) { testKubeadm(t, w, token) })
}

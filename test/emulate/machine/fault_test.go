package machine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func (w *world) failed(t *testing.T, m *Machine, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	if err := m.Wait(ctx, func(s State, _ Times, _ error) bool { return s == Failed }); err != nil {
		t.Fatal(err)
	}
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	if !strings.Contains(m.Console(), "phase=failed reason=kubeadm-join") {
		t.Errorf("the console does not tell of the failed phase:\n%s", m.Console())
	}
	if strings.Contains(m.Console(), "0123456789abcdef") {
		t.Error("the console holds the token")
	}
	w.absent(t, m)
}

func (w *world) absent(t *testing.T, m *Machine) {
	t.Helper()
	if _, err := w.Client().CoreV1().Nodes().Get(t.Context(), m.cfg.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Node %s: %v, want none", m.cfg.Name, err)
	}
}

func testWrongPin(t *testing.T, w *world, token string) {
	spec := w.spec(token)
	spec.Join.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)}
	w.failed(t, boot(t, w.config(t, spec)), "match none of the pins")

	spec.Join.CACertHashes = append(spec.Join.CACertHashes, w.pin)
	w.ready(t, boot(t, w.config(t, spec)))
}

func TestLoopbackOnly(t *testing.T) {
	for hostport, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.9.9.9:1": true,
		"10.0.0.1:1": false, "169.254.169.254:80": false, "k8s.example.net:6443": false, "": false, "127.0.0.1": false,
	} {
		if got := loopback(hostport); got != want {
			t.Errorf("%q: %v, want %v", hostport, got, want)
		}
	}
	if _, err := Boot(t.Context(), Config{InstanceID: "i-1", Name: "a", Addresses: make([]netip.Addr, 1), IMDSEndpoint: "http://169.254.169.254"}); err == nil {
		t.Error("a machine boots with the real metadata service")
	}
}

func testExpired(t *testing.T, w *world) {
	token := w.token(t, "bbbbbb", time.Second)
	await.Nil(t, "the token cleaner takes the token", func(ctx context.Context) error {
		_, err := w.Client().CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, "bootstrap-token-bbbbbb", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %v", err)
	})
	cfg := w.config(t, w.spec(token))
	cfg.DiscoveryTimeout = 500 * time.Millisecond
	w.failed(t, boot(t, cfg), "unknown or has expired")
}

func testNameTaken(t *testing.T, w *world, token string) {
	first := boot(t, w.config(t, w.spec(token)))
	w.ready(t, first)
	cfg := w.config(t, w.spec(token))
	cfg.Name = first.cfg.Name
	cfg.IMDSEndpoint = metadata(t, cfg)
	m := boot(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	if err := m.Wait(ctx, func(s State, _ Times, _ error) bool { return s == Failed }); err != nil {
		t.Fatal(err)
	}
	if err := m.Err(); !strings.Contains(err.Error(), "exists already") {
		t.Error(err)
	}
}

func testPods(t *testing.T, w *world, token string) {
	cfg := w.config(t, w.spec(token))
	cfg.Capacity = cluster.Resources{MilliCPU: 500, Memory: 2 << 30, EphemeralStorage: 20 << 30}
	m := boot(t, cfg)
	w.ready(t, m)
	w.pod(t, "fits", m.cfg.Name, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("300m")
	})
	w.phase(t, "fits", corev1.PodRunning)
	w.pod(t, "too-much", m.cfg.Name, nil)
	if got := w.phase(t, "too-much", corev1.PodFailed); got.Status.Reason != "OutOfcpu" {
		t.Errorf("reason %q, want OutOfcpu", got.Status.Reason)
	}
}

func readiness(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func (w *world) becomes(t *testing.T, m *Machine, want corev1.ConditionStatus) {
	t.Helper()
	await.Nil(t, "Node Ready="+string(want), func(ctx context.Context) error {
		node, err := w.Client().CoreV1().Nodes().Get(ctx, m.cfg.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := readiness(node); got != want {
			return fmt.Errorf("Ready=%s", got)
		}
		return nil
	})
}

func testLife(t *testing.T, w *world, token string) {
	m := boot(t, w.config(t, w.spec(token)))
	node := w.ready(t, m)
	w.approve(t, m)
	w.pod(t, "life", m.cfg.Name, func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	w.phase(t, "life", corev1.PodRunning)

	if err := m.Hang(); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, m, corev1.ConditionUnknown)
	if _, err := DialServing(t.Context(), node, w.roots); err == nil {
		t.Error("a machine that hangs still serves")
	}
	if err := m.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "restarted with another boot ID", func(ctx context.Context) error {
		n := w.node(t, m)
		p, err := w.Client().CoreV1().Pods("default").Get(ctx, "life", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n.UID != node.UID || n.Status.NodeInfo.BootID == node.Status.NodeInfo.BootID || p.Status.ContainerStatuses[0].RestartCount != 1 {
			return fmt.Errorf("boot ID %s, restarts %d", n.Status.NodeInfo.BootID, p.Status.ContainerStatuses[0].RestartCount)
		}
		return nil
	})
	w.becomes(t, m, corev1.ConditionTrue)

	m.Die()
	if m.State() != Dead || m.Reboot(t.Context()) == nil {
		t.Error("a dead machine reboots")
	}
	w.becomes(t, m, corev1.ConditionUnknown)
	w.phase(t, "life", corev1.PodRunning) // nobody is there to say otherwise
}

// testKubeadm gives what the join section writes to the real kubeadm.
func testKubeadm(t *testing.T, w *world, token string) {
	cfg := w.config(t, w.spec(token))
	m := &Machine{cfg: cfg.withDefaults(), dir: t.TempDir(), changed: make(chan struct{}), console: &console{}}
	tools, err := BuildTools(t.Context(), true) // our own curl, whatever the host has
	if err != nil {
		t.Fatal(err)
	}
	m.cfg.Tools = tools
	var seen bool
	err = m.runScript(t.Context(), func(ctx context.Context, file string) error {
		seen = true
		if _, err := readJoinConfig(file); err != nil {
			t.Error(err)
		}
		out, err := exec.CommandContext(ctx, w.Binaries().Path("kubeadm"), "config", "validate", "--config", file).CombinedOutput()
		if err != nil {
			t.Errorf("kubeadm config validate: %v\n%s", err, out)
		}
		return nil
	})
	if err != nil || !seen {
		t.Fatalf("run: %v, kubeadm was called: %v\n%s", err, seen, m.Console())
	}
	if _, err := os.Stat(filepath.Join(m.joinDir(), "join.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the script left the join configuration: %v", err)
	}
}

// TestMetadataOfAnyCloud: a machine's script finds the metadata service of its cloud by
// the cloud's own variable, and no other, and none that is elsewhere.
func TestMetadataOfAnyCloud(t *testing.T) {
	tools := Tools{Dir: t.TempDir()}
	cfg := Config{
		InstanceID: "vm-1", Name: "vm-1", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Tools: tools, SystemUUID: "not-made-up",
		Metadata: map[string]string{"OTHER_METADATA": "http://127.0.0.1:1234/openstack"},
		UserData: []byte("\n" + userdata.JoinBegin + "\necho \"$OTHER_METADATA $AWS_EC2_METADATA_SERVICE_ENDPOINT\"\nexit 1\n" + userdata.JoinEnd + "\n"),
	}
	m := boot(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	if err := m.Wait(ctx, func(State, Times, error) bool { return strings.Contains(m.Console(), "http") }); err != nil {
		t.Fatalf("%v\n%s", err, m.Console())
	}
	if want := "http://127.0.0.1:1234/openstack " + nobody; !strings.Contains(m.Console(), want) {
		t.Errorf("the script printed %q, want %q", m.Console(), want)
	}
	if got := m.Config().SystemUUID; got != "not-made-up" {
		t.Errorf("system UUID %q", got)
	}
	cfg.Metadata["OTHER_METADATA"] = "http://169.254.169.254/openstack"
	if _, err := Boot(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "169.254.169.254") {
		t.Errorf("a metadata service that is not on loopback: %v", err)
	}
}

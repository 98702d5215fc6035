package services

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"os"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// ecKey is the key of requests of which no key is told.
var ecKey = func() crypto.Signer {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return k
}()

// quiet keeps the journal to itself, unless SERVICES_LOG is set.
func quiet(service string) *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	if os.Getenv("SERVICES_LOG") != "" {
		log.SetOutput(os.Stderr)
	}
	return log.WithField("service", service)
}

// serve runs a service until the test is over.
func serve(t *testing.T, shared *kube.Informers, run func(context.Context, func()) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	if shared != nil {
		shared.Start(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- run(ctx, func() {}) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the service ended with %v", err)
			}
		case <-time.After(await.Limit):
			t.Error("the service does not end")
		}
		if shared != nil {
			shared.Wait()
		}
	})
}

// node makes a Node and sets its Ready condition.
func node(t *testing.T, cp *controlplane.ControlPlane, name, providerID string, ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	n, err := cp.Client().CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return setReady(t, cp, n.Name, ready)
}

func setReady(t *testing.T, cp *controlplane.ControlPlane, name string, ready corev1.ConditionStatus) *corev1.Node {
	t.Helper()
	nodes := cp.Client().CoreV1().Nodes()
	var last error
	for range 10 {
		n, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.NewTime(time.Now().Add(-2 * time.Second))}}
		if n, last = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); last == nil {
			return n
		}
	}
	t.Fatal(last)
	return nil
}

func TestServices(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true, NodeMonitorGrace: 2 * time.Minute})
	t.Run("bootstrap", func(t *testing.T) { testBootstrap(t, cp) })
}

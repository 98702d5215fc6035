package services

import (
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// inventory is a cloud that says what the test wants.
type inventory struct {
	mu     sync.Mutex
	groups []cluster.NodeGroup
	reads  int
	err    error
}

func (i *inventory) Groups(_ context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]cluster.NodeGroup, len(i.groups))
	for n := range i.groups {
		if i.err == nil && time.Since(i.groups[n].ReadAt) > maxAge {
			i.groups[n].ReadAt = time.Now()
			i.reads++
		}
		out[n] = i.groups[n]
		out[n].Instances = slices.Clone(i.groups[n].Instances)
	}
	return out, i.err
}

// Instances says of each instance what the list says.
func (i *inventory) Instances(_ context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := map[cluster.InstanceID]cluster.Testimony{}
	for _, id := range ids {
		out[id] = cluster.Testimony{Existence: cluster.InstanceNotFound}
		for _, g := range i.groups {
			for _, in := range g.Instances {
				switch {
				case in.ID != id:
				case in.Phase == cluster.PhaseGone:
					out[id] = cluster.Testimony{Existence: cluster.InstanceTerminated}
				default:
					out[id] = cluster.Testimony{Existence: cluster.InstanceExists}
				}
			}
		}
	}
	return out, nil
}

// set replaces the instances of the one group, as a new read.
func (i *inventory) set(instances ...cluster.Instance) {
	i.mu.Lock()
	defer i.mu.Unlock()
	target := 0
	for _, in := range instances {
		if in.Member {
			target++
		}
	}
	i.groups = []cluster.NodeGroup{{ID: "workers", Max: 10, Target: target, Instances: instances, ReadAt: time.Now()}}
}

func (i *inventory) phase(id cluster.InstanceID, phase cluster.Phase) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range i.groups[0].Instances {
		if in := &i.groups[0].Instances[n]; in.ID == id {
			in.Phase, in.Member = phase, phase != cluster.PhaseGone
		}
	}
}

// quiet keeps the journal to itself, unless SERVICES_LOG is set.
func quiet(service string) *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	if os.Getenv("SERVICES_LOG") != "" {
		log.SetOutput(os.Stderr)
	}
	return log.WithField("service", service)
}

// agentClient is the product's own client, as the administrator.
func agentClient(t *testing.T, cp *controlplane.ControlPlane) *kube.Client {
	t.Helper()
	client, err := kube.New(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
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

// as is a client that the API server takes for the kubelet of a node.
func as(t *testing.T, cp *controlplane.ControlPlane, node string) kubernetes.Interface {
	t.Helper()
	cfg := cp.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
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
	t.Run("csrsigner", func(t *testing.T) { testSigner(t, cp) })
	t.Run("nodecleaner", func(t *testing.T) { testCleaner(t, cp) })
	t.Run("reaper faults", func(t *testing.T) { testReaperFaults(t, cp) })
	t.Run("bootstrap", func(t *testing.T) { testBootstrap(t, cp) })
}

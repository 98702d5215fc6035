package agent

import (
	"context"
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/kube"
	"github.com/autoscaler-agent/autoscaler-agent/agent/kube/kubetest"
)

// TestJoinedByItsNode: a Node joins its instance by the provider ID, or by its name where it
// has none; before the Nodes are read nobody is said not to have joined.
func TestJoinedByItsNode(t *testing.T) {
	node := func(name, id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	a := &app{log: log.WithField("service", "agent"), informers: kube.NewInformers(kubetest.Client(fake.NewClientset(
		node("one", "aws:///a/i-00000001"), node("ip-10-0-0-2", ""), node("ip-10-0-0-3", "aws:///a/i-0000dead"))), nil)}
	nodes := a.informers.Nodes()
	if _, err := a.joined(cluster.Instance{ID: "aws:///a/i-00000009"}); err == nil {
		t.Error("an instance has not joined by Nodes that were not read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.informers.Start(ctx)
	cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced)
	for id, want := range map[string]string{"aws:///a/i-00000001": "one", "aws:///a/i-00000002": "ip-10-0-0-2", "aws:///a/i-00000003": ""} {
		in := cluster.Instance{ID: cluster.InstanceID(id), NodeNames: []string{"ip-10-0-0-" + id[len(id)-1:]}}
		if got, err := a.joined(in); err != nil || got.Node != want {
			t.Errorf("%s: Node %q, %v, want %q", id, got.Node, err, want)
		}
	}
}

// TestSTSEndpoint: STS is at its own host unless the SDK's own variables say otherwise.
func TestSTSEndpoint(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("AWS_ENDPOINT_URL_STS", "")
	if got := stsEndpoint(); got != "" {
		t.Errorf("got %q", got)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://a")
	t.Setenv("AWS_ENDPOINT_URL_STS", "http://b")
	if got := stsEndpoint(); got != "http://b" {
		t.Errorf("got %q", got)
	}
}

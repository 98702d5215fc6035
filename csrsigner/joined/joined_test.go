package joined

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestNodes: a Node joins its instance by the provider ID, or by its name where it
// has none; before the Nodes are read nobody is said not to have joined.
func TestNodes(t *testing.T) {
	node := func(name, id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	leader := func(name string, labels ...string) *corev1.Node {
		n := node(name, "")
		n.Labels = map[string]string{}
		for _, label := range labels {
			n.Labels[label] = ""
		}
		return n
	}
	shared := kube.NewInformers(kubetest.Client(fake.NewClientset(
		node("one", "aws:///a/i-00000001"), node("ip-10-0-0-2", ""), node("ip-10-0-0-3", "aws:///a/i-0000dead"),
		node("north", "openstack://north/0F1E2D3C-0000-4000-8000-000000000001"), node("south", "openstack://south/0f1e2d3c-0000-4000-8000-000000000001"),
		node("other", "plugin://a/machine-4"), leader("cp-1", cluster.LabelControlPlane), leader("cp-2", cluster.LabelControlPlaneLegacy),
		leader("cp-3", cluster.LabelControlPlane, cluster.LabelControlPlaneLegacy), leader("worker", "node-role.kubernetes.io/worker"))), nil)
	nodes, err := Index(shared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Known(&cluster.Instance{ID: "aws:///a/i-00000009"}); err == nil {
		t.Error("an instance has not joined by Nodes that were not read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	shared.Start(ctx)
	cache.WaitForCacheSync(ctx.Done(), shared.Nodes().HasSynced)
	for id, want := range map[string]string{"aws:///a/i-00000001": "one", "aws:///a/i-00000002": "ip-10-0-0-2", "aws:///a/i-00000003": "",
		"openstack://south/0f1e2d3c-0000-4000-8000-000000000001": "south", "openstack://east/0f1e2d3c-0000-4000-8000-000000000001": "", "plugin://b/machine-4": ""} {
		in := cluster.Instance{ID: cluster.InstanceID(id), NodeNames: []string{"ip-10-0-0-" + id[len(id)-1:]}}
		if got, err := nodes.Known(&in); err != nil || got != want {
			t.Errorf("%s: Node %q, %v, want %q", id, got, err, want)
		}
	}
	var leaders []string
	for _, n := range nodes.Leaders() {
		leaders = append(leaders, n.Name)
	}
	if slices.Sort(leaders); !slices.Equal(leaders, []string{"cp-1", "cp-2", "cp-3"}) {
		t.Errorf("leaders %v", leaders)
	}
}

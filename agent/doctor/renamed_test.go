package doctor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestRenamedNodes: a Node is named whose machine answers as another Ready Node, by provider ID or by
// the hardware's UUID; two silent Nodes, and two machines, are not.
func TestRenamedNodes(t *testing.T) {
	node := func(name, id, uuid string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id},
			Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: uuid}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	const up, silent, down = corev1.ConditionTrue, corev1.ConditionUnknown, corev1.ConditionFalse
	client := fake.NewClientset(
		node("old", "aws:///a/i-1", "", silent), node("new", "aws:///a/i-1", "", up),
		node("was", "", "EC2A-1", down), node("is", "openstack:///x", "ec2a-1", up),
		node("one", "aws:///a/i-2", "same", silent), node("two", "aws:///a/i-3", "same", up),
		node("both", "aws:///a/i-4", "", silent), node("gone", "aws:///a/i-4", "", silent),
		node("bare", "", "", silent), node("empty", "", "", up))
	found := map[string]bool{}
	for _, f := range checkNodes(t.Context(), kubetest.Client(client), "v1.36.3") {
		if f.Level == LevelOK {
			continue // the kubelets' versions
		}
		found[f.About] = f.Level == LevelError && f.Remedy != ""
	}
	if len(found) != 2 || !found["node old"] || !found["node was"] {
		t.Errorf("%v", found)
	}
}

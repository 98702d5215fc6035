package clients

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestLeaders: either label of the control plane makes a leader, and both make one.
func TestLeaders(t *testing.T) {
	node := func(name string, labels ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		for _, label := range labels {
			n.Labels[label] = ""
		}
		return n
	}
	client := kubetest.Client(fake.NewClientset(node("new", cluster.LabelControlPlane), node("old", cluster.LabelControlPlaneLegacy),
		node("both", cluster.LabelControlPlane, cluster.LabelControlPlaneLegacy), node("worker")))
	list, err := Leaders(t.Context(), client)
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"both", "new", "old"}) {
		t.Errorf("leaders %v, %v", names, err)
	}
}

package store

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// tainted is a Node as the API server shows it after a manager has written its taints.
func tainted(at time.Time, manager string, keys ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1", CreationTimestamp: metav1.NewTime(time.Now())}}
	for _, key := range keys {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	n.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-label", Time: &metav1.Time{Time: at.Add(time.Hour)}, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:taints":{}}}}`)},
		{Manager: "kubelet", Time: &metav1.Time{Time: at.Add(-time.Hour)}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:providerID":{},"f:taints":{}}}`)},
		{Manager: manager, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:taints":{}}}`)},
	}
	if _, err := convert.Strip(n); err != nil {
		panic(err)
	}
	return n
}

// A taint is a person's when a person's client wrote the list in which it first showed. A controller
// that writes the list afterwards, as to take its own taint off, changes nothing of that.
func TestOperatorTaints(t *testing.T) {
	s, now := New(nil), time.Now()
	for _, step := range []struct {
		node *corev1.Node
		want []string
	}{
		{tainted(now, "kubelet", "start"), nil},
		{tainted(now.Add(1), "kubectl-taint", "start", "mine"), []string{"mine"}},
		{tainted(now.Add(2), "cilium-agent", "mine"), []string{"mine"}},
		{tainted(now.Add(3), "kube-controller-manager", "mine", "other"), []string{"mine"}},
		{tainted(now.Add(4), "kubectl", "other"), nil},
		{tainted(now.Add(5), "kube-controller-manager", "other", "mine"), nil},
	} {
		s.PutNode(step.node)
		n, _ := s.nodes.get("n")
		var got []string
		for _, x := range n.OperatorTaints {
			got = append(got, x.Key)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("after %s wrote %v: %v, want %v", step.node.ManagedFields[len(step.node.ManagedFields)-1].Manager, step.node.Spec.Taints, got, step.want)
		}
	}
	if seen := s.firstSeen["n"].Taints; len(seen) != 3 || seen[0].Key != "start" || seen[1].Key != "other" || seen[2].Key != "mine" {
		t.Errorf("registered with %v, want the taints of its first moments that no person set", seen)
	}
	fresh := New(nil)
	fresh.PutNode(tainted(now, "kubectl-edit", "mine"))
	if n, _ := fresh.nodes.get("n"); len(n.OperatorTaints) != 1 {
		t.Error("at first sight, the last manager decides")
	}
}

// A Node that is made anew under its name has nothing of the one before.
func TestOperatorTaintsOfANewNode(t *testing.T) {
	s := New(nil)
	s.PutNode(tainted(time.Now(), "kubectl-taint", "mine"))
	n := tainted(time.Now(), "kubelet", "mine")
	n.UID = "2"
	s.PutNode(n)
	if got, _ := s.nodes.get("n"); len(got.OperatorTaints) != 0 || s.firstSeen["n"].UID != cluster.UID("2") {
		t.Errorf("%v, first seen %v", got.OperatorTaints, s.firstSeen["n"])
	}
}

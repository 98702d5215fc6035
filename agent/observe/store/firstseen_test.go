package store

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// TestLabelsOfAKubelet: of a Node that is old when it is first seen, the labels are known that its kubelet wrote, and no person's or
// controller's.
func TestLabelsOfAKubelet(t *testing.T) {
	by := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"tier": "front", "by-hand": "x", "kubernetes.io/hostname": "n"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			by("kubelet", "", `{"f:metadata":{"f:annotations":{".":{}},"f:labels":{".":{},"f:kubernetes.io/hostname":{},"f:tier":{}}}}`),
			by("kubelet", "status", `{"f:status":{"f:allocatable":{".":{}}}}`),
			by("kubectl-label", "", `{"f:metadata":{"f:labels":{"f:by-hand":{}}}}`)}}}
	if _, err := convert.Strip(n); err != nil {
		t.Fatal(err)
	}
	s := New(nil)
	s.PutNode(n)
	if got := s.firstSeen["n"]; len(got.Labels) != 1 || got.Labels["tier"] != "front" || got.UID != "u" || len(n.ManagedFields) != 1 {
		t.Errorf("%+v, %d managers are kept", got, len(n.ManagedFields))
	}
}

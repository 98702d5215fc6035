package store

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func drivers(name string, limits map[string]int32) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for d, limit := range limits {
		driver := storagev1.CSINodeDriver{Name: d, NodeID: "i-1", TopologyKeys: []string{"zone"}}
		if limit >= 0 {
			driver.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
		}
		n.Spec.Drivers = append(n.Spec.Drivers, driver)
	}
	return n
}

func TestNodesHaveTheLimitsOfTheirCSINodes(t *testing.T) {
	w := New(nil)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	limits := func() map[string]int64 {
		n, _ := w.nodes.get("n")
		return n.VolumeLimits
	}
	if got := w.PutCSINode(drivers("n", map[string]int32{"ebs": 25, "nfs": -1})); got != Never {
		t.Errorf("a CSINode before its node: urgency %d", got)
	}
	w.PutNode(node)
	if want := map[string]int64{"ebs": 25}; !maps.Equal(limits(), want) {
		t.Errorf("limits %v, want %v", limits(), want)
	}
	if got := w.PutNode(node.DeepCopy()); got != Never {
		t.Errorf("the same node again: urgency %d", got)
	}
	if got := w.PutCSINode(drivers("n", map[string]int32{"ebs": 25})); got != Never {
		t.Errorf("the same limits again: urgency %d", got)
	}
	if got := w.PutCSINode(drivers("n", map[string]int32{"ebs": 0})); got != Later || limits()["ebs"] != 0 || len(limits()) != 1 {
		t.Errorf("a limit of none: urgency %d, limits %v", got, limits())
	}
	if w.DeleteCSINode("n"); limits() != nil {
		t.Errorf("limits of a CSINode that is gone: %v", limits())
	}
}

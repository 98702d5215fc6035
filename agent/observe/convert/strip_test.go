package convert

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestStripNode: a stripped Node decides what the whole one does, still says which machine
// and group it is of, and holds nothing else of its status.
func TestStripNode(t *testing.T) {
	have := corev1.ResourceList{"cpu": resource.MustParse("4")}
	whole := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"zone": "a"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}, Annotations: map[string]string{
			cluster.AnnotationGroup: "workers", cluster.AnnotationKeep: "", cluster.AnnotationNoScaleDown: "true", cluster.AnnotationDelay + "backup": "x", "csi.volume.kubernetes.io/nodeid": "{}"}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///a/i-1", Taints: []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: have, Allocatable: have, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
			NodeInfo: corev1.NodeSystemInfo{MachineID: "m", SystemUUID: "s", BootID: "b", OSImage: "Linux"}, Images: []corev1.ContainerImage{{SizeBytes: 1}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "kubelet is posting ready status", LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0))}}},
	}
	n := whole.DeepCopy()
	if _, err := Strip(n); err != nil {
		t.Fatal(err)
	}
	if got, want := Node(n), Node(whole); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if i := n.Status.NodeInfo; n.Annotations[cluster.AnnotationGroup] != "workers" || i.MachineID != "m" || i.BootID != "b" {
		t.Errorf("the machine or the group is lost: %+v, %+v", n.Annotations, i)
	}
	if len(n.Annotations) != 4 || len(n.Status.Conditions) != 1 || n.Status.Conditions[0].Message != "" || n.Status.NodeInfo.OSImage != "" || n.Status.Images != nil || n.ManagedFields != nil {
		t.Errorf("more is kept: %+v, %+v", n.ObjectMeta, n.Status)
	}
}

package convert

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestPodHealth: whether a pod is Ready and whether it crashes is the same of the whole object, of the stripped one, and of
// its bytes on the wire.
func TestPodHealth(t *testing.T) {
	condition := func(s corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: s, LastTransitionTime: metav1.Unix(1, 0), Message: "m"}}
	}
	waits := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "well"}, {Name: "c", RestartCount: 7, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "m"}}}}
	}
	for _, x := range []struct {
		name             string
		node             string
		status           corev1.PodStatus
		unready, crashes bool
	}{
		{"Ready", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionTrue)}, false, false},
		{"not Ready", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionFalse)}, true, false},
		{"no condition yet", "n", corev1.PodStatus{Phase: corev1.PodPending}, true, false},
		{"crashes", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionFalse), ContainerStatuses: waits("CrashLoopBackOff")}, true, true},
		{"its init container crashes", "n", corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: waits("CrashLoopBackOff")}, true, true},
		{"waits for its image", "n", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waits("ImagePullBackOff")}, true, false},
		{"not bound", "", corev1.PodStatus{Phase: corev1.PodPending}, false, false},
		{"finished", "n", corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: condition(corev1.ConditionFalse)}, false, false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: x.node}, Status: x.status}
		wire, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		fromWire, err := DecodePod(wire)
		if err != nil {
			t.Fatal(err)
		}
		stripped := p.DeepCopy()
		stripPod(stripped)
		stripPod(fromWire)
		for how, pod := range map[string]*corev1.Pod{"whole": p, "stripped": stripped, "from the wire": fromWire} {
			unstarted := x.node != "" && x.status.Phase == corev1.PodPending
			if got := Pod(pod); got.Unready != x.unready || got.Crashing != x.crashes || got.Unstarted != unstarted {
				t.Errorf("%s, %s: unready %v, crashing %v, unstarted %v", x.name, how, got.Unready, got.Crashing, got.Unstarted)
			}
		}
	}
}

// TestNodeConditions: a Node has the conditions beside Ready that are True, stripped or not.
func TestNodeConditions(t *testing.T) {
	at := time.Unix(1000, 0)
	n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: "KernelDeadlock", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at), LastHeartbeatTime: metav1.Now(), Message: "m"},
		{Type: "ReadonlyFilesystem", Status: corev1.ConditionUnknown},
	}}}
	for range 2 {
		got := Node(n).Conditions
		if len(got) != 1 || !got["KernelDeadlock"].Equal(at) {
			t.Errorf("%v", got)
		}
		stripNode(n)
	}
}

// TestMarksAreKept: each annotation of a Node that an operator sets reaches the decision, of a stripped Node too.
func TestMarksAreKept(t *testing.T) {
	for _, m := range cluster.Marks {
		if m.Kind != "annotation of a Node" || m.SetBy != "an operator" {
			continue
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{m.Name: "x"}}}
		stripNode(n)
		if got := Node(n).Annotations[m.Name]; got != "x" {
			t.Errorf("%s is dropped", m.Name)
		}
	}
}

package convert

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestPodHealth: whether a pod is Ready and what is wrong with its containers is the same of the whole object, of the stripped one, and of
// its bytes on the wire.
func TestPodHealth(t *testing.T) {
	condition := func(s corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: s, LastTransitionTime: metav1.Unix(1, 0), Message: "m"}}
	}
	waits := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "well"}, {Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "m"}}}}
	}
	since := cluster.At(time.Unix(1, 0))
	restarted := waits("CrashLoopBackOff")
	restarted[0].RestartCount, restarted[0].LastTerminationState.Terminated = 2, &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Unix(100, 0), Message: "m"}
	restarted[1].RestartCount, restarted[1].LastTerminationState.Terminated = 5, &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(90, 0), ContainerID: "c"}
	numbers := make([]corev1.ContainerStatus, 4)
	for i, n := range []int32{math.MaxInt32, math.MaxInt32, 2, math.MinInt32} {
		numbers[i].RestartCount = n
	}
	for _, x := range []struct {
		name    string
		node    string
		status  corev1.PodStatus
		unready bool
		trouble cluster.PodTrouble
	}{
		{"Ready", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionTrue)}, false, cluster.PodTrouble{}},
		{"not Ready", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionFalse)}, true, cluster.PodTrouble{Since: since}},
		{"no condition yet", "n", corev1.PodStatus{Phase: corev1.PodPending}, true, cluster.PodTrouble{}},
		{"crashes", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionFalse), ContainerStatuses: waits("CrashLoopBackOff")}, true, cluster.PodTrouble{Since: since, Waiting: "CrashLoopBackOff"}},
		{"its init container crashes", "n", corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: waits("CrashLoopBackOff")}, true, cluster.PodTrouble{Waiting: "CrashLoopBackOff"}},
		{"waits for its image", "n", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waits("ImagePullBackOff")}, true, cluster.PodTrouble{Waiting: "ImagePullBackOff"}},
		{"is given a reason that is not known yet", "n", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waits("SomethingNew")}, true, cluster.PodTrouble{Waiting: "SomethingNew"}},
		{"is created", "n", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waits("ContainerCreating")}, true, cluster.PodTrouble{}},
		{"waits for its init containers", "n", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waits("PodInitializing")}, true, cluster.PodTrouble{}},
		{"has been started again", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionTrue), ContainerStatuses: restarted[:1]}, false, cluster.PodTrouble{Restarts: 2, RestartedAt: cluster.At(time.Unix(100, 0))}},
		{"two containers have been started again", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionFalse), ContainerStatuses: restarted}, true, cluster.PodTrouble{Since: since, Waiting: "CrashLoopBackOff", Restarts: 7, RestartedAt: cluster.At(time.Unix(100, 0))}},
		{"numbers of a thief", "n", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionTrue), ContainerStatuses: numbers}, false, cluster.PodTrouble{Restarts: 2<<20 + 2}},
		{"not bound", "", corev1.PodStatus{Phase: corev1.PodPending}, false, cluster.PodTrouble{}},
		{"finished", "n", corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: condition(corev1.ConditionFalse)}, false, cluster.PodTrouble{}},
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
			if got := Pod(pod); got.Unready != x.unready || got.Troubles() != x.trouble || got.Unstarted != unstarted {
				t.Errorf("%s, %s: unready %v, %+v, unstarted %v", x.name, how, got.Unready, got.Troubles(), got.Unstarted)
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

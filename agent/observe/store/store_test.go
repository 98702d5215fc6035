package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "a"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", UID: "rs-uid", Controller: &yes}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", "100m")}}}}}
	if change != nil {
		change(p)
	}
	return p
}

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0))}}
}

func TestReplicasShareOneClassAndMissingOnesAreCounted(t *testing.T) {
	w := New([]string{"default-scheduler"})
	n := int32(10)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rs", UID: "rs-uid"}, Spec: appsv1.ReplicaSetSpec{Replicas: &n}}
	w.PutReplicaSet(rs)
	for i := range 4 {
		w.PutPod(pod(fmt.Sprint("p", i), nil))
	}
	if len(w.classes.index) != 1 || w.classes.refs[0] != 4 {
		t.Errorf("%d classes, first used by %v", len(w.classes.index), w.classes.refs)
	}
	want := []cluster.Controller{{Owner: cluster.Owner{Kind: "ReplicaSet", Name: "rs", UID: "rs-uid"}, Key: "ns/rs", Missing: 6}}
	if got := w.missingPods(); !reflect.DeepEqual(got, want) {
		t.Errorf("missing %+v, want %+v", got, want)
	}
	w.DeletePod("ns/p0", "")
	w.PutPod(pod("p1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }))
	if got := w.missingPods(); len(got) != 1 || got[0].Missing != 8 {
		t.Errorf("after a deletion and one under way: %+v, want 8 missing", got)
	}
	rs.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
	if w.PutReplicaSet(rs); len(w.missingPods()) != 0 {
		t.Error("a ReplicaSet that cannot make its pods is waited for")
	}
	for i := range 4 {
		w.DeletePod(cluster.PodKey(fmt.Sprint("ns/p", i)), "")
	}
	if len(w.podsByController) != 0 || len(w.classes.index) != 0 {
		t.Errorf("left over: counts of pods %v, classes %v", w.podsByController, w.classes.index)
	}
}

func TestUrgency(t *testing.T) {
	w := New(nil)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	steps := []struct {
		name string
		do   func() Urgency
		want Urgency
	}{
		{"new node", func() Urgency { return w.PutNode(n) }, Soon},
		{"same node", func() Urgency { return w.PutNode(n.DeepCopy()) }, Never},
		{"heartbeat", func() Urgency { return w.PutNode(n.DeepCopy()) }, Never},
		{"new pod", func() Urgency { return w.PutPod(pod("p", nil)) }, Later},
		{"unschedulable", func() Urgency { return w.PutPod(pod("p", unschedulable)) }, Soon},
		{"still so", func() Urgency { return w.PutPod(pod("p", unschedulable)) }, Never},
		{"bound", func() Urgency { return w.PutPod(pod("p", func(p *corev1.Pod) { p.Spec.NodeName = "n" })) }, Later},
		{"tainted", func() Urgency {
			n.Spec.Taints = []corev1.Taint{{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}}
			return w.PutNode(n.DeepCopy())
		}, Soon},
		{"gone from the draining node", func() Urgency { return w.DeletePod("ns/p", "n") }, Soon},
		{"gone twice", func() Urgency { return w.DeletePod("ns/p", "n") }, Never},
		{"node gone", func() Urgency { return w.DeleteNode("n") }, Soon},
	}
	for _, s := range steps {
		if got := s.do(); got != s.want {
			t.Errorf("%s: urgency %d, want %d", s.name, got, s.want)
		}
	}
	if w.unschedulableSince.IsZero() {
		t.Error("the time of the first unschedulable pod was not kept")
	}
}

func TestSnapshotsShareNothingWithLaterChanges(t *testing.T) {
	w := New(nil)
	w.PutPod(pod("p0", nil))
	w.PutPod(pod("p1", nil))
	before := w.pods.snapshot()
	if again := w.pods.snapshot(); &again[0] != &before[0] {
		t.Error("an unchanged store was copied")
	}
	w.PutPod(pod("p1", unschedulable))
	w.DeletePod("ns/p0", "")
	if len(before) != 2 || before[0].Key != "ns/p0" || !before[1].Unschedulable.IsZero() {
		t.Errorf("an old snapshot changed: %+v", before)
	}
	if now := w.pods.snapshot(); len(now) != 1 || now[0].Unschedulable.IsZero() {
		t.Errorf("the new one is %+v", now)
	}
}

func TestBudgetsFollowTheirSelectors(t *testing.T) {
	w := New(nil)
	w.PutPod(pod("p", nil))
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Generation: 2},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 3}}
	w.PutBudget(b)
	w.PutPod(pod("q", nil))
	for _, p := range w.pods.snapshot() {
		if !reflect.DeepEqual(p.Budgets, []string{"ns/b"}) {
			t.Errorf("%s has budgets %q", p.Key, p.Budgets)
		}
	}
	if got := w.budgets.snapshot(); got[0].Allowed != 3 {
		t.Errorf("allowed %d, want 3", got[0].Allowed)
	}
	for _, x := range []struct {
		policy           policyv1.UnhealthyPodEvictionPolicyType
		healthy, desired int32
		want             bool
	}{{"", 1, 2, false}, {"", 2, 2, true}, {"", 0, 0, false}, {policyv1.IfHealthyBudget, 1, 2, false}, {policyv1.AlwaysAllow, 1, 2, true}} {
		u := b.DeepCopy()
		if u.Status.CurrentHealthy, u.Status.DesiredHealthy = x.healthy, x.desired; x.policy != "" {
			u.Spec.UnhealthyPodEvictionPolicy = &x.policy
		}
		_, _ = convert.Strip(u)
		w.PutBudget(u)
		if got := w.budgets.snapshot()[0].Unready; got != x.want {
			t.Errorf("%+v: pods that are not Ready may go: %v", x, got)
		}
	}
	w.PutBudget(b)
	b.Generation = 3 // the controller has not caught up: nothing is allowed
	if w.PutBudget(b); w.budgets.snapshot()[0].Allowed != 0 {
		t.Error("an outdated status is believed")
	}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "z"}}
	w.PutBudget(b)
	if got := w.pods.snapshot()[0].Budgets; len(got) != 0 {
		t.Errorf("after another selector: %q", got)
	}
	// In policy/v1 an empty selector takes every pod of the namespace.
	b.Spec.Selector = &metav1.LabelSelector{}
	w.PutBudget(b)
	if got := w.pods.snapshot()[0].Budgets; len(got) != 1 {
		t.Errorf("after an empty selector: %q", got)
	}
	w.DeleteBudget("ns/b")
	if got := w.pods.snapshot()[0].Budgets; len(got) != 0 {
		t.Errorf("after deletion: %q", got)
	}
}

func TestDaemonSetPodsOfManyNodesShareAClass(t *testing.T) {
	w := New(nil)
	yes := true
	for i := range 20 {
		node := fmt.Sprint("n", i)
		w.PutPod(pod("d"+node, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
			p.Spec.NodeName = node
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{node}}}}}}}}
		}))
	}
	if len(w.classes.index) != 1 {
		t.Errorf("%d classes for one DaemonSet", len(w.classes.index))
	}
}

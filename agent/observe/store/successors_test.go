package store

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// TestSuccessors: whether the template or the pod is seen first, and whatever becomes of both, a pod that was resized down takes what it
// requests and is of the class of its successor, and no class is left when it has gone.
func TestSuccessors(t *testing.T) {
	cpu := func(n string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(n)}}
	}
	defaults := func(name, n string) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse(n)}}}}}
	}
	template := func(n string) *appsv1.ReplicaSet {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "rs"}}
		rs.Spec.Template.Spec.Containers = []corev1.Container{{}}
		if n != "" {
			rs.Spec.Template.Spec.Containers[0].Resources = cpu(n)
		}
		if _, err := convert.Strip(rs); err != nil {
			t.Fatal(err)
		}
		return rs
	}
	pod := func(n string, generation int64) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: generation, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: new(true)}}},
			Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Resources: cpu(n)}}}}
	}
	s := New(nil)
	s.PutNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	for i, step := range []struct {
		do             func()
		takes, becomes int64 // milliCPU
	}{
		{func() { s.PutPod(pod("200m", 2)) }, 200, 200},
		{func() { s.PutReplicaSet(template("3")) }, 200, 3000},
		{func() { s.PutPod(pod("100m", 3)) }, 100, 3000},
		{func() { s.PutReplicaSet(template("1")) }, 100, 1000},
		{func() { s.PutPod(pod("4", 4)) }, 4000, 4000},
		{func() { s.PutPod(pod("500m", 1)) }, 500, 500},
		{func() { s.PutPod(pod("500m", 5)) }, 500, 1000},
		{func() { s.PutReplicaSet(template("100m")) }, 500, 500},
		{func() { s.PutLimitRange(defaults("a", "2")) }, 500, 500},
		{func() { s.PutReplicaSet(template("")) }, 500, 2000},
		{func() { s.PutLimitRange(defaults("b", "3")) }, 500, 3000},
		{func() { s.DeleteLimitRange("ns", "b") }, 500, 2000},
		{func() { s.PutLimitRange(defaults("a", "100m")) }, 500, 500},
	} {
		step.do()
		snapshot, _, _ := s.Snapshot(-1)
		p := &snapshot.Nodes[0].Pods[0]
		if takes, becomes := snapshot.Classes[p.OnNode()].Requests.MilliCPU, snapshot.Classes[p.Class].Requests.MilliCPU; takes != step.takes || becomes != step.becomes {
			t.Errorf("step %d: it takes %d and becomes %d, want %d and %d", i, takes, becomes, step.takes, step.becomes)
		}
	}
	s.DeletePod("ns/p", "a")
	if s.DeleteController("rs"); len(s.bare) > 0 {
		t.Errorf("%d templates are left", len(s.bare))
	}
	if len(s.classes.index) > 0 {
		t.Errorf("%d classes are left", len(s.classes.index))
	}
}

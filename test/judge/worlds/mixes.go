package worlds

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/yardstick"
)

// ofMix is a mix of package yardstick as a world: all of its pods wait at once, those of one
// class one after the other, and nothing is there.
func ofMix(m *yardstick.Mix) *World {
	w := &World{Seed: m.Seed, Groups: m.Snapshot.Groups, Pool: m.Pool, Zone: m.Zone, Tie: map[string]yardstick.Tie{}, Skew: map[string]int{}, Classes: len(m.Count)}
	var all []*corev1.Pod
	for c := range m.Count {
		class := &m.Snapshot.Classes[c]
		app := class.Labels["app"]
		w.Tie[app], w.Skew[app] = m.Tie[c], m.Skew[c]
		spec := specOf(class, m.Tie[c], m.Skew[c], app)
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: class.Namespace, Name: app, UID: w.uid()}, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: class.Labels}}}
		w.ReplicaSets = append(w.ReplicaSets, set)
		for k := range m.Count[c] {
			all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: class.Namespace, Name: fmt.Sprintf("%s-%04d", app, k), UID: w.uid(), Labels: class.Labels, CreationTimestamp: metav1.Time{Time: start},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: set.UID, Controller: new(true)}}},
				Spec: *spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}})
		}
	}
	w.Waves = [][]*corev1.Pod{all}
	return w
}

// specOf is the spec of a pod of a class that a mix has drawn.
func specOf(class *cluster.PodClass, tie yardstick.Tie, skew int, app string) *corev1.PodSpec {
	spec := &corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, NodeSelector: class.NodeSelector}
	spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(class.Requests.MilliCPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(class.Requests.Memory, resource.BinarySI)}}}}
	for _, t := range class.Tolerations {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator)})
	}
	tieSpec(spec, tie, skew, app)
	return spec
}

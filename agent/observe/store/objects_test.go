package store

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConvertIsTheObserversPath: what the transform drops decides nothing, and the
// objects stay as they are.
func TestConvertIsTheObserversPath(t *testing.T) {
	term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}
	p := pod("p", func(p *corev1.Pod) {
		p.Annotations = map[string]string{"kept": "not"}
		p.Spec.NodeName = "n"
		p.Spec.Affinity = affinityOf(term)
		p.Spec.Volumes = []corev1.Volume{uses("c"), {Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	})
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "d"}}, Spec: corev1.PodSpec{Affinity: affinityOf(term)}}}}
	objects := Objects{
		Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}, Pods: []*corev1.Pod{p}, DaemonSets: []*appsv1.DaemonSet{daemon},
		Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", boundTo("pv"))}, Volumes: []*corev1.PersistentVolume{aVolume("pv", nil)},
		CSINodes: []*storagev1.CSINode{drivers("n", map[string]int32{"d": 3})},
	}
	before := p.DeepCopy()
	s := FromObjects(objects)
	if !reflect.DeepEqual(p, before) {
		t.Error("the pod was changed")
	}
	if len(s.Nodes) != 1 || len(s.Nodes[0].Pods) != 1 || len(s.Pods) != 0 || len(s.DaemonSets) != 1 || s.Nodes[0].VolumeLimits["d"] != 3 {
		t.Fatalf("got %+v", s)
	}
	row := s.Nodes[0].Pods[0]
	class := s.Classes[row.Class]
	if row.LocalStorage != "host" || len(class.PodAffinity) != 1 || len(class.Volumes) != 1 || class.Volumes[0].Handle != "h-pv" {
		t.Errorf("pod %+v of class %+v", row, class)
	}
	if d := s.Classes[s.DaemonSets[0].Class]; len(d.PodAffinity) != 1 {
		t.Errorf("the DaemonSet's class is %+v", d)
	}
}

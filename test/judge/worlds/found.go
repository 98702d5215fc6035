package worlds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// foundSpread is a world in which a purchase once claimed pods that kube-scheduler refused:
// ten pods with a spread over zones and anti-affinity on hosts were put into one zone, and
// two with anti-affinity on zones opened another.
func foundSpread() *World {
	d := &drawer{w: &World{Seed: 1}}
	for i, zone := range []string{"a", "b"} {
		cores, price := int64(16), 0.768
		if i == 1 {
			cores, price = 8, 0.504
		}
		r := cluster.Resources{MilliCPU: cores * 1000, Memory: 64 << 30, Pods: 110}
		d.w.Groups = append(d.w.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("%s-%d", zone, cores)), Max: 1000, ReadAt: start, Price: price,
			Template: cluster.Template{Spec: "lt", Capacity: r, Allocatable: r, Labels: map[string]string{zoneKey: zone}}})
	}
	anti := func(key, app string) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
	}
	var all []*corev1.Pod
	add := func(app string, n int, affinity *corev1.Affinity, spread []corev1.TopologySpreadConstraint) {
		for k := range n {
			all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", app, k), UID: d.uid(), Labels: map[string]string{"app": app}, CreationTimestamp: metav1.Time{Time: start}},
				Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Affinity: affinity, TopologySpreadConstraints: spread, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")}}}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending}})
		}
	}
	add("web", 10, anti(hostKey, "web"), []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}})
	add("pair", 2, anti(zoneKey, "pair"), nil)
	d.w.Waves = [][]*corev1.Pod{all}
	return d.w
}

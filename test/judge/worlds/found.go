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
	d.addGroup("a", 16, 64, 0.768)
	d.addGroup("b", 8, 64, 0.504)
	spread := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	d.w.Waves = [][]*corev1.Pod{append(
		d.makePods("web", 10, "2", "4Gi", keepsOff(hostKey, "web"), spread),
		d.makePods("pair", 2, "2", "4Gi", keepsOff(zoneKey, "pair"))...)}
	return d.w
}

// foundKeepsOff is a world in which pods of db keep off the machines with pods of web, and kube-scheduler puts the pods of web on all
// machines that there are. With 40 and 30 pods, machines for all at once were 44, and two purchases need 20.
func foundKeepsOff(web, db int) *World {
	d := &drawer{w: &World{Seed: 1}}
	d.addGroup("a", 8, 64, 0.4)
	d.addGroup("b", 8, 64, 0.4)
	d.w.Waves = [][]*corev1.Pod{append(
		d.makePods("web", web, "1500m", "1Gi", nil),
		d.makePods("db", db, "1500m", "1Gi", keepsOff(hostKey, "web"))...)}
	return d.w
}

// addGroup adds a group of machines with so many cores and GiB.
func (d *drawer) addGroup(zone string, cores, memory int64, price float64) {
	r := cluster.Resources{MilliCPU: cores * 1000, Memory: memory << 30, Pods: 110}
	d.w.Groups = append(d.w.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("%s-%d", zone, cores)), Max: 1000, ReadAt: start, Price: price,
		Template: cluster.Template{Spec: "lt", Capacity: r, Allocatable: r, Labels: map[string]string{zoneKey: zone}}})
}

// keepsOff is required anti-affinity to an app.
func keepsOff(key, app string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
}

// makePods are pending pods of one app.
func (d *drawer) makePods(app string, n int, cpu, memory string, affinity *corev1.Affinity, spread ...corev1.TopologySpreadConstraint) (out []*corev1.Pod) {
	for k := range n {
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", app, k), UID: d.uid(), Labels: map[string]string{"app": app}, CreationTimestamp: metav1.Time{Time: start}},
			Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Affinity: affinity, TopologySpreadConstraints: spread, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending}})
	}
	return out
}

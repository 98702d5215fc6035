package world

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// room is what a node has left.
type room struct {
	*corev1.Node
	cpu, memory, pods int64
}

// schedule binds the pods that wait, one at a time by priority and age, to the node with the largest share left free, as
// kube-scheduler does by default for pods with requests, node selectors and tolerations alone. It is a model: it reads no affinity,
// spread or volumes, and keeps its own sums.
func (m *models) schedule() {
	w := m.world
	var rooms []*room
	by := map[string]*room{}
	for _, n := range apiserver.List[*corev1.Node](w.API, "/nodes", "") {
		r := &room{n, n.Status.Allocatable.Cpu().MilliValue(), n.Status.Allocatable.Memory().Value(), n.Status.Allocatable.Pods().Value()}
		rooms, by[n.Name] = append(rooms, r), r
	}
	var queue []*corev1.Pod
	for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", "") {
		if r := by[p.Spec.NodeName]; r != nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			cpu, memory := requests(p)
			r.cpu, r.memory, r.pods = r.cpu-cpu, r.memory-memory, r.pods-1
		}
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
			queue = append(queue, p)
		}
	}
	slices.SortStableFunc(queue, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var left []*corev1.Pod
	defer func() { w.watch.waits(left) }()
	for _, p := range queue {
		cpu, memory := requests(p)
		var best *room
		for _, r := range rooms {
			if cpu <= r.cpu && memory <= r.memory && r.pods > 0 && takes(r.Node, p) && (best == nil || score(r) > score(best)) {
				best = r
			}
		}
		if best == nil {
			left = append(left, p)
			m.unschedulable(p)
			continue
		}
		if w.API.Bind(p.Namespace, p.Name, best.Name) == nil {
			best.cpu, best.memory, best.pods = best.cpu-cpu, best.memory-memory, best.pods-1
		}
	}
}

func score(r *room) float64 {
	s := float64(r.cpu)/float64(max(1, r.Status.Allocatable.Cpu().MilliValue())) + float64(r.memory)/float64(max(1, r.Status.Allocatable.Memory().Value()))
	for _, t := range r.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			s -= 6
		}
	}
	return s
}

// takes is what kube-scheduler filters by beside the room.
func takes(n *corev1.Node, p *corev1.Pod) bool {
	for key, value := range p.Spec.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(x corev1.Toleration) bool { return x.Key == t.Key || x.Key == "" })
	})
}

func requests(p *corev1.Pod) (cpu, memory int64) {
	for _, c := range p.Spec.Containers {
		cpu += c.Resources.Requests.Cpu().MilliValue()
		memory += c.Resources.Requests.Memory().Value()
	}
	return cpu, memory
}

// unschedulable says so in the pod's status, once.
func (m *models) unschedulable(p *corev1.Pod) {
	if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	}) {
		return
	}
	next := p.DeepCopy()
	next.Status.Conditions = append(next.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/1 nodes are available", LastTransitionTime: metav1.NewTime(time.Now()).Rfc3339Copy()})
	_ = m.world.API.Update("/pods", next, "status")
}

package world

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// cast is the cluster as the model of kube-scheduler sees it in one pass: by package fit, whose filters the oracle holds against
// kube-scheduler's own, over the stored objects.
type cast struct {
	cluster.Snapshot
	space  *fit.Dimensions
	state  *fit.State
	shapes []fit.NodeInfo
	rooms  [][]int64
	class  map[cluster.PodKey]int
}

func (w *World) cast() *cast {
	o := store.Objects{
		Nodes: apiserver.List[*corev1.Node](w.API, "/nodes", ""), Pods: apiserver.List[*corev1.Pod](w.API, "/pods", ""), Namespaces: apiserver.List[*corev1.Namespace](w.API, "/namespaces", ""),
		Claims: apiserver.List[*corev1.PersistentVolumeClaim](w.API, "/persistentvolumeclaims", ""), Volumes: apiserver.List[*corev1.PersistentVolume](w.API, "/persistentvolumes", ""),
		StorageClasses: apiserver.List[*storagev1.StorageClass](w.API, "storage.k8s.io/storageclasses", ""), CSINodes: apiserver.List[*storagev1.CSINode](w.API, "storage.k8s.io/csinodes", ""),
	}
	c := &cast{Snapshot: store.FromObjects(o), class: map[cluster.PodKey]int{}}
	c.space, c.state = fit.NewDimensions(c.Classes), fit.NewState(c.Classes, c.Namespaces)
	c.shapes, c.rooms = make([]fit.NodeInfo, len(c.Nodes)), make([][]int64, len(c.Nodes))
	for i, n := range c.Nodes {
		c.shapes[i] = fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable, Devices: n.Devices, Extended: n.Allocatable.Extended}
		c.rooms[i] = make([]int64, c.space.Len())
		c.space.Capacity(c.rooms[i], n.Allocatable)
		c.state.AddNode(&c.shapes[i], n.VolumeLimits)
		for _, p := range n.Pods {
			switch {
			case p.Finished:
				continue
			case p.Deleting.IsZero():
				c.state.Put(p.Class, i, 1)
			default:
				c.state.PutTerminating(p.Class, i, 1)
			}
			binpack.Sub(c.rooms[i], c.space.Class(p.Class), 1)
		}
	}
	for _, p := range c.Pods {
		c.class[p.Key] = p.Class
	}
	return c
}

// schedule binds the pods that wait, one at a time by priority and age, to the node with the largest share left free and the fewest
// pods of the same spread in its domain.
func (m *models) schedule() {
	w := m.world
	queue := slices.DeleteFunc(apiserver.List[*corev1.Pod](w.API, "/pods", ""), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" || p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0
	})
	var left []*corev1.Pod
	defer func() { w.watch.waits(left) }()
	if len(queue) == 0 {
		return
	}
	slices.SortStableFunc(queue, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	c := w.cast()
	for _, p := range queue {
		class, known := c.class[cluster.PodKey(p.Namespace+"/"+p.Name)]
		if at := c.choose(class); known && at >= 0 && w.API.Bind(p.Namespace, p.Name, string(c.Nodes[at].Name)) == nil {
			c.state.Put(class, at, 1)
			binpack.Sub(c.rooms[at], c.space.Class(class), 1)
			continue
		}
		left = append(left, p)
		m.unschedulable(p, len(c.Nodes))
	}
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// choose filters and scores; -1: no node takes one of the class.
func (c *cast) choose(class int) int {
	best, most := -1, math.Inf(-1)
	for i, n := range c.Nodes {
		if !fit.Passes(&c.Classes[class], &c.shapes[i]) || binpack.MaxFit(c.rooms[i], c.space.Class(class)) == 0 || !c.state.Passes(class, i) {
			continue
		}
		left := func(room, all int64) float64 { return float64(room) / float64(max(1, all)) }
		score := left(c.rooms[i][0], n.Allocatable.MilliCPU) + left(c.rooms[i][1], n.Allocatable.Memory) - 6*float64(fit.Unpreferred(&c.Classes[class], &c.shapes[i]))
		if score > most {
			best, most = i, score
		}
	}
	return best
}

func requests(p *corev1.Pod) (cpu, memory int64) {
	for _, c := range p.Spec.Containers {
		cpu += c.Resources.Requests.Cpu().MilliValue()
		memory += c.Resources.Requests.Memory().Value()
	}
	return cpu, memory
}

// unschedulable says so in the pod's status, with the number of nodes.
func (m *models) unschedulable(p *corev1.Pod, nodes int) {
	said := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: fmt.Sprintf("0/%d nodes are available", nodes), LastTransitionTime: metav1.NewTime(time.Now()).Rfc3339Copy()}
	next := p.DeepCopy()
	i := slices.IndexFunc(next.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	switch {
	case i < 0:
		next.Status.Conditions = append(next.Status.Conditions, said)
	case next.Status.Conditions[i].Status == said.Status && next.Status.Conditions[i].Message == said.Message:
		return
	default:
		said.LastTransitionTime = next.Status.Conditions[i].LastTransitionTime
		next.Status.Conditions[i] = said
	}
	_ = m.world.API.Update("/pods", next, "status")
}

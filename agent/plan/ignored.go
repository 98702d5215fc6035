package plan

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// interrupted tells that a machine goes and that the agent empties it. One that the agent
// itself has told to go is drained already.
func (w *roundState) interrupted(n *cluster.Node, g *group, in *cluster.Instance) bool {
	if in.Interruption == nil || in.Phase != cluster.PhaseDeleting || n.ControlPlane || n.Deleting || w.s.Stale != "" {
		return false
	}
	_, told := w.out.Deleted[in.ID]
	return !told && w.paused(g) == ""
}

// releaseInterrupted counts the pods of interrupted machines as pending ones: they will be, and
// machines take longer to come than the two minutes that are left. Their nodes go on
// without them, except for drainInterrupted.
func (w *roundState) releaseInterrupted() {
	t := &w.e.instances
	for k, i := range t.order {
		n := w.s.Nodes[i]
		if t.inst[k] == nil || !w.interrupted(n, &w.groups[t.group[k]], t.inst[k]) {
			continue
		}
		if w.interruptedNodes == nil {
			w.interruptedNodes = make(map[int]*cluster.Node)
			w.s.Nodes, w.s.Pods = slices.Clone(w.s.Nodes), slices.Clip(w.s.Pods)
		}
		rest := *n
		rest.Pods = nil
		for _, pod := range n.Pods {
			again := pod.Owner != nil && pod.Deleting.IsZero() && !w.ignored(&pod) && !w.expendable(&pod) && w.s.Classes[pod.Class].NodeName == ""
			if !again {
				rest.Pods = append(rest.Pods, pod)
				continue
			}
			pod.Node, pod.Nominated, pod.Unschedulable = "", "", max(pod.Created, 1)
			w.s.Pods = append(w.s.Pods, pod)
		}
		w.interruptedNodes[k], w.s.Nodes[i] = n, &rest
	}
}

// ignoredPods are pods that a drain leaves alone: they go with the node.
var ignoredPods = []struct {
	name string
	is   func(w *roundState, pod *cluster.Pod) bool
}{
	{"static pod", func(_ *roundState, pod *cluster.Pod) bool { return pod.Mirror }},
	{"DaemonSet pod", func(_ *roundState, pod *cluster.Pod) bool { return daemon(pod) }},
	{"finished", func(_ *roundState, pod *cluster.Pod) bool { return pod.Finished }},
	{"terminating for too long", func(w *roundState, pod *cluster.Pod) bool {
		return !pod.Deleting.IsZero() && w.reached(pod.Deleting.Add(terminatingSlack+1))
	}},
}

// terminatingSlack is how long after its grace a pod may still be listed before it
// counts as gone (Cluster Autoscaler's drain.PodLongTerminatingExtraThreshold).
const terminatingSlack = 30 * time.Second

// ignored tells a pod that a drain leaves alone.
func (w *roundState) ignored(pod *cluster.Pod) bool {
	for k := range ignoredPods {
		if ignoredPods[k].is(w, pod) {
			return true
		}
	}
	return false
}

package round

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// interrupted tells that a machine goes and that the agent empties it. One that the agent
// itself has told to go is drained already.
func (w *State) interrupted(n *cluster.Node, g *Group, in *cluster.Instance) bool {
	if in.Interruption == nil || in.Phase != cluster.PhaseDeleting || n.ControlPlane || n.Deleting || w.Snapshot.Stale != "" {
		return false
	}
	_, told := w.Next.Deleted[in.ID]
	return !told && w.Paused(g) == ""
}

// releaseInterrupted counts the pods of interrupted machines as pending ones: they will be, and
// machines take longer to come than the two minutes that are left. Their nodes go on
// without them, except for DrainInterrupted. So it is with machines that are gone, whose
// Nodes and pods stay listed for minutes: the machine that the cloud puts in their place is
// for these pods.
func (w *State) releaseInterrupted() {
	t := &w.Cache.instances
	for k, i := range t.order {
		n, in := w.Snapshot.Nodes[i], t.inst[k]
		if in == nil {
			continue
		}
		gone := in.Phase == cluster.PhaseGone && !n.ControlPlane && w.Snapshot.Stale == ""
		if !gone && !w.interrupted(n, &w.Groups[t.group[k]], in) {
			continue
		}
		if w.interruptedNodes == nil {
			w.interruptedNodes = make(map[int]*cluster.Node)
			w.Snapshot.Nodes, w.Snapshot.Pods = slices.Clone(w.Snapshot.Nodes), slices.Clip(w.Snapshot.Pods)
		}
		rest := *n
		rest.Pods = nil
		for _, pod := range n.Pods {
			again := pod.Owner != nil && pod.Deleting.IsZero() && !w.Ignored(&pod) && !w.Expendable(&pod) && w.Snapshot.Classes[pod.Class].NodeName == ""
			if !again {
				rest.Pods = append(rest.Pods, pod)
				continue
			}
			pod.Node, pod.Nominated, pod.Unschedulable = "", "", max(pod.Created, 1)
			w.Snapshot.Pods = append(w.Snapshot.Pods, pod)
		}
		if w.Snapshot.Nodes[i] = &rest; !gone {
			w.interruptedNodes[k] = n
		}
	}
}

// IgnoredPods are pods that a drain leaves alone: they go with the node.
var IgnoredPods = []struct {
	name string
	Is   func(w *State, pod *cluster.Pod) bool
}{
	{"static pod", func(_ *State, pod *cluster.Pod) bool { return pod.Mirror }},
	{"DaemonSet pod", func(_ *State, pod *cluster.Pod) bool { return Daemon(pod) }},
	{"finished", func(_ *State, pod *cluster.Pod) bool { return pod.Finished }},
	{"terminating for too long", func(w *State, pod *cluster.Pod) bool {
		return !pod.Deleting.IsZero() && w.Reached(pod.Deleting.Add(TerminatingSlack+1))
	}},
}

// TerminatingSlack is how long after its grace a pod may still be listed before it
// counts as gone (Cluster Autoscaler's drain.PodLongTerminatingExtraThreshold).
const TerminatingSlack = 30 * time.Second

// Ignored tells a pod that a drain leaves alone.
func (w *State) Ignored(pod *cluster.Pod) bool {
	for k := range IgnoredPods {
		if IgnoredPods[k].Is(w, pod) {
			return true
		}
	}
	return false
}

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// A machine that the cloud ends of its own accord (a spot interruption) goes whatever
// anybody wants: what keeps a node or a pod where it is (annotations, utilisation,
// minimum, timers, how many drain at once) would only cost the pods their graceful end.
// So its node is cordoned and its pods are evicted in the round that learns of it; only
// PodDisruptionBudgets hold them, since the Eviction API does. An operator's pause of the
// group is obeyed. The machine itself is never terminated here: the cloud does that and
// puts another one in its place, which counts as coming from now on.

// interrupted tells that a machine goes and that the agent empties it. One that the agent
// itself has told to go is drained already.
func (w *world) interrupted(n *cluster.Node, g *group, in *cluster.Instance) bool {
	if in.Interruption == nil || in.Phase != cluster.PhaseDeleting || n.ControlPlane || n.Deleting || w.s.Stale != "" {
		return false
	}
	_, told := w.out.Deleted[in.ID]
	return !told && w.paused(g) == ""
}

// vacate counts the pods of interrupted machines as pending ones: they will be, and
// machines take longer to come than the two minutes that are left. Their nodes go on
// without them, except for evacuate. So it is with machines that are gone, whose Nodes
// and pods stay listed for minutes: the machine that the cloud puts in their place is
// for these pods.
func (w *world) vacate() {
	t := &w.e.ties
	for k, i := range t.order {
		n := w.s.Nodes[i]
		gone := t.inst[k] != nil && t.inst[k].Phase == cluster.PhaseGone && !n.ControlPlane && w.s.Stale == ""
		if t.inst[k] == nil || !gone && !w.interrupted(n, &w.groups[t.group[k]], t.inst[k]) {
			continue
		}
		if w.vacated == nil {
			w.vacated = make(map[int]*cluster.Node)
			w.s.Nodes, w.s.Pods = slices.Clone(w.s.Nodes), slices.Clip(w.s.Pods)
		}
		rest := *n
		rest.Pods = nil
		for _, pod := range n.Pods {
			again := pod.Owner != nil && pod.Deleting.IsZero() && !w.rides(&pod) && !w.expendable(&pod) && w.s.Classes[pod.Class].NodeName == ""
			if !again {
				rest.Pods = append(rest.Pods, pod)
				continue
			}
			pod.Node, pod.Nominated, pod.Unschedulable = "", "", max(pod.Created, 1)
			w.s.Pods = append(w.s.Pods, pod)
		}
		if w.s.Nodes[i] = &rest; !gone {
			w.vacated[k] = n
		}
	}
}

// evacuate empties the machines that the cloud ends, before other drains use up the
// budgets.
func (w *world) evacuate() {
	for i := range w.nodes {
		n := &w.nodes[i]
		switch {
		case n.whole != nil:
			n.goes = true
			w.evacuateNode(n)
		case n.inst != nil && n.inst.Interruption != nil && w.paused(&w.groups[n.group]) != "":
			w.hold("node", string(n.Name), RuleOperator, "%s, and nobody moves its pods: %s", ends(n.inst), w.paused(&w.groups[n.group]))
		}
	}
}

func (w *world) evacuateNode(n *node) {
	why := ends(n.inst)
	marks := !n.f.mark && (n.f.ours || !n.Unschedulable) // somebody else's cordon does as well
	if marks {
		w.do(Cordon{Node: n.Name, UID: n.UID, Rule: RuleInterrupted, Why: why})
	}
	whole := *n
	whole.Node = n.whole
	var waits []string
	now, leaving := 0, 0
	for i := range whole.Pods {
		if pod := &whole.Pods[i]; !pod.Deleting.IsZero() && !w.rides(pod) {
			leaving++
		}
	}
	for _, pod := range w.movable(&whole) {
		if held := w.budgetsBlock(pod); held != "" {
			waits = append(waits, "pod "+string(pod.Key)+" "+held)
			continue
		}
		for _, b := range pod.Budgets {
			w.budget[b]--
		}
		now++
		w.do(Evict{Pod: pod.Key, UID: pod.UID, Node: n.Name, Grace: min(w.graceOf(pod), w.left(n.inst)), Why: why})
	}
	if marks || n.f.mark { // the taint keeps their DaemonSets from making them again
		w.evictDaemons(&whole, w.p.EvictDaemonsOccupied)
	}
	why += fmt.Sprintf(": %d to evict, %d wait for a budget, %d terminating", now, len(waits), leaving)
	if len(waits) > 0 {
		why += "; " + strings.Join(waits, "; ")
	}
	w.keep("node", string(n.Name), RuleInterrupted, why)
}

// budgetsBlock says which budgets keep a pod from being evicted now: the Eviction API
// refuses one that is selected by two.
func (w *world) budgetsBlock(pod *cluster.Pod) string {
	if len(pod.Budgets) > 1 {
		return "has more than one PodDisruptionBudget"
	}
	return w.budgetBlocks(pod)
}

// left is how much time a machine has, for the grace of its pods: a pod whose end the
// kubelet still reports makes room for its successor.
func (w *world) left(in *cluster.Instance) time.Duration {
	if in.Interruption.By.IsZero() {
		return w.p.MaxGracefulTermination
	}
	return max(in.Interruption.By.Sub(w.now).Truncate(time.Second), time.Second)
}

// ends says in words that the cloud ends a machine.
func ends(in *cluster.Instance) string {
	if by := in.Interruption.By; !by.IsZero() {
		return fmt.Sprintf("the cloud ends its machine by %s (%s)", stamp(by), in.Interruption.Why)
	}
	return fmt.Sprintf("the cloud ends its machine (%s)", in.Interruption.Why)
}

// markedBy is the rule by which the agent cordoned a node; empty: none was written down.
func markedBy(n *cluster.Node) string {
	_, rule, _ := strings.Cut(n.Annotations[cluster.AnnotationCordoned], " ")
	return rule
}

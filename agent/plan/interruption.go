package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// A machine that the cloud ends of its own accord (a spot interruption) goes whatever
// anybody wants: what keeps a node or a pod where it is (annotations, utilisation,
// minimum, timers, how many drain at once) would only cost the pods their graceful end.
// So its node is cordoned and its pods are evicted in the round that learns of it; only
// PodDisruptionBudgets hold them, since the Eviction API does. An operator's pause of the
// group is obeyed. The machine itself is never terminated here: the cloud does that and
// puts another one in its place, which counts as coming from now on.

// drainInterrupted empties the machines that the cloud ends, before other drains use up the
// budgets.
func (w *downPlanner) drainInterrupted() {
	for i := range w.nodes {
		n := &w.nodes[i]
		switch {
		case n.original != nil:
			n.removing = true
			w.drainInterruptedNode(n)
		case n.inst != nil && n.inst.Interruption != nil && w.paused(&w.groups[n.group]) != "":
			w.held("node", string(n.Name), decision.RuleOperator, "%s, and nobody moves its pods: %s", interruptionWords(n.inst), w.paused(&w.groups[n.group]))
		}
	}
}

func (w *downPlanner) drainInterruptedNode(n *node) {
	why := interruptionWords(n.inst)
	marks := !n.f.toBeDeleted && (n.f.cordonedByUs || !n.Unschedulable) // somebody else's cordon does as well
	if marks {
		w.act(decision.Cordon{Node: n.Name, UID: n.UID, Rule: decision.RuleInterrupted, Why: why})
	}
	whole := *n
	whole.Node = n.original
	var waits []string
	now, leaving := 0, 0
	for i := range whole.Pods {
		if pod := &whole.Pods[i]; !pod.Deleting.IsZero() && !w.ignored(pod) {
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
		w.act(decision.Evict{Pod: pod.Key, UID: pod.UID, Node: n.Name, Grace: min(w.graceOf(pod), w.timeLeft(n.inst)), Why: why})
	}
	if marks || n.f.toBeDeleted { // the taint keeps their DaemonSets from making them again
		w.evictDaemons(&whole, w.p.EvictDaemonsOccupied)
	}
	why += fmt.Sprintf(": %d to evict, %d wait for a budget, %d terminating", now, len(waits), leaving)
	if len(waits) > 0 {
		why += "; " + strings.Join(waits, "; ")
	}
	w.heldWhy("node", string(n.Name), decision.RuleInterrupted, why)
}

// budgetsBlock says which budgets keep a pod from being evicted now: the Eviction API
// refuses one that is selected by two.
func (w *downPlanner) budgetsBlock(pod *cluster.Pod) string {
	if len(pod.Budgets) > 1 {
		return "has more than one PodDisruptionBudget"
	}
	return w.budgetBlocks(pod)
}

// timeLeft is how much time a machine has, for the grace of its pods: a pod whose end the
// kubelet still reports makes room for its successor.
func (w *downPlanner) timeLeft(in *cluster.Instance) time.Duration {
	if in.Interruption.By.IsZero() {
		return w.p.MaxGracefulTermination
	}
	return max(in.Interruption.By.Sub(w.now).Truncate(time.Second), time.Second)
}

// interruptionWords says in words that the cloud ends a machine.
func interruptionWords(in *cluster.Instance) string {
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

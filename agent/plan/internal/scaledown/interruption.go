package scaledown

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A machine that the cloud ends of its own accord (a spot interruption) goes whatever
// anybody wants: what keeps a node or a pod where it is (annotations, utilisation,
// minimum, timers, how many drain at once) would only cost the pods their graceful end.
// So its node is cordoned and its pods are evicted in the round that learns of it; only
// PodDisruptionBudgets hold them, since the Eviction API does. An operator's pause of the
// group is obeyed. The machine itself is never terminated here: the cloud does that and
// puts another one in its place, which counts as coming from now on.

// DrainInterrupted empties the machines that the cloud ends, before other drains use up the
// budgets.
func (w *Planner) DrainInterrupted() {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		switch {
		case n.Original != nil:
			n.Removing = true
			w.drainInterruptedNode(n)
		case n.Instance != nil && n.Instance.Interruption != nil && w.Paused(&w.Groups[n.Group]) != "":
			w.Held("node", string(n.Name), decision.RuleOperator, "%s, and nobody moves its pods: %s", InterruptionWords(n.Instance), w.Paused(&w.Groups[n.Group]))
		}
	}
}

func (w *Planner) drainInterruptedNode(n *round.Node) {
	why := InterruptionWords(n.Instance)
	marks := !n.Facts.ToBeDeleted && (n.Facts.CordonedByUs || !n.Unschedulable) // somebody else's cordon does as well
	if marks {
		w.Act(decision.Cordon{Node: n.Name, UID: n.UID, Rule: decision.RuleInterrupted, Why: why})
	}
	whole := *n
	whole.Node = n.Original
	var waits []string
	now, leaving := 0, 0
	for i := range whole.Pods {
		if pod := &whole.Pods[i]; !pod.Deleting.IsZero() && !w.Ignored(pod) {
			leaving++
		}
	}
	for _, pod := range w.Running(&whole) {
		if held := w.BudgetsBlock(pod); held != "" {
			waits = append(waits, "pod "+string(pod.Key)+" "+held)
			continue
		}
		w.spend(pod)
		now++
		w.Act(decision.Evict{Pod: pod.Key, UID: pod.UID, Node: n.Name, Grace: min(w.graceOf(pod), w.timeLeft(n.Instance)), Why: why})
	}
	if marks || n.Facts.ToBeDeleted { // the taint keeps their DaemonSets from making them again
		w.evictDaemons(&whole, w.Policy.EvictDaemonsOccupied)
	}
	why += fmt.Sprintf(": %d to evict, %d wait for a budget, %d terminating", now, len(waits), leaving)
	if len(waits) > 0 {
		why += "; " + strings.Join(waits, "; ")
	}
	w.HeldWhy("node", string(n.Name), decision.RuleInterrupted, why)
}

// BudgetsBlock says which budgets keep a pod from being evicted now: the Eviction API
// refuses one that is selected by two.
func (w *Planner) BudgetsBlock(pod *cluster.Pod) string {
	if len(pod.Budgets) > 1 && !pod.Unstarted {
		return "has more than one PodDisruptionBudget"
	}
	return w.budgetBlocks(pod)
}

// timeLeft is how much time a machine has, for the grace of its pods: a pod whose end the
// kubelet still reports makes room for its successor.
func (w *Planner) timeLeft(in *cluster.Instance) time.Duration {
	if in.Interruption.By.IsZero() {
		return w.Policy.MaxGracefulTermination
	}
	return max(in.Interruption.By.Sub(w.Now).Truncate(time.Second), time.Second)
}

// InterruptionWords says in words that the cloud ends a machine.
func InterruptionWords(in *cluster.Instance) string {
	if by := in.Interruption.By; !by.IsZero() {
		return fmt.Sprintf("the cloud ends its machine by %s (%s)", round.Stamp(by), in.Interruption.Why)
	}
	return fmt.Sprintf("the cloud ends its machine (%s)", in.Interruption.Why)
}

// markedBy is the rule by which the agent cordoned a node; empty: none was written down.
func markedBy(n *cluster.Node) string {
	_, rule, _ := strings.Cut(n.Annotations[cluster.AnnotationCordoned], " ")
	return rule
}

// markTime reads the time of marking from the taint's value; a value that is none, or one of before the Node or of the future,
// counts as now.
func markTime(n *cluster.Node, now time.Time) time.Time {
	t, _ := round.Taint(n, cluster.TaintToBeDeleted)
	sec, err := strconv.ParseInt(t.Value, 10, 64)
	if at := time.Unix(sec, 0); err == nil && at.Before(now) && !at.Before(n.Created) {
		return at
	}
	return now
}

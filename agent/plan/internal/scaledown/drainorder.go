package scaledown

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// step is the one that a pod belongs to; those below the first belong to the first.
func (w *Planner) step(pod *cluster.Pod) int {
	priority := w.Snapshot.Classes[pod.Class].Priority
	at := 0
	for i := range w.Policy.DrainPriority {
		if w.Policy.DrainPriority[i].Priority <= priority {
			at = i
		}
	}
	return at
}

// graceOf is how long a pod may take to end.
func (w *Planner) graceOf(pod *cluster.Pod) time.Duration {
	if len(w.Policy.DrainPriority) == 0 {
		return min(pod.GracePeriod.Duration(), w.Policy.MaxGracefulTermination)
	}
	return min(pod.GracePeriod.Duration(), w.Policy.DrainPriority[w.step(pod)].Grace)
}

// patience is how long a drain may take beyond the first eviction: with steps one after
// the other, their graces add up.
func (w *Planner) patience(c *round.DrainPlan) time.Duration {
	if len(w.Policy.DrainPriority) == 0 {
		return c.Grace + w.Policy.MaxPodEvictionTime
	}
	var all time.Duration
	for _, s := range w.Policy.DrainPriority {
		all += s.Grace + w.Policy.MaxPodEvictionTime
	}
	return all
}

// deadline is when the drain of a node is given up that has carried the mark since first.
func (w *Planner) deadline(n *round.Node, c *round.DrainPlan, first time.Time) time.Time {
	patience := w.Policy.DelayAfterTaint + w.patience(c)
	if disruption.Replaces(markedBy(n.Node)) {
		patience += max(round.OrElse(w.Groups[n.Group].Options.ReplaceDrainTime, w.Policy.ReplaceDrainTime)-w.Policy.MaxPodEvictionTime, 0)
	}
	return round.Later(markTime(n.Node, w.Now), first).Add(patience)
}

// wave lists the pods of a node that the drain evicts now: all, or those of the first step
// that still has some, terminating ones included.
func (w *Planner) wave(n *round.Node) []*cluster.Pod {
	first := len(w.Policy.DrainPriority)
	for i := range n.Pods {
		if pod := &n.Pods[i]; !w.Ignored(pod) && !completes(pod) {
			first = min(first, w.step(pod))
		}
	}
	return slices.DeleteFunc(w.Movable(n), func(pod *cluster.Pod) bool { return w.step(pod) != first })
}

// evictDaemons asks DaemonSet pods to end before their node does. It is a courtesy: a
// drain does not wait for them, and those that came after the mark are left alone.
func (w *Planner) evictDaemons(n *round.Node, byDefault bool) {
	marked := markTime(n.Node, w.Now)
	pods := round.Sorted(n.Pods)
	for i := range pods {
		pod := &pods[i]
		asked := pod.Asked().EvictDaemon
		if !round.Daemon(pod) || pod.Mirror || pod.Finished || !pod.Deleting.IsZero() || pod.Created.Time().After(marked) || asked != "true" && (asked != "" || !byDefault) {
			continue
		}
		if w.BudgetsBlock(pod) != "" {
			continue
		}
		w.spend(pod)
		w.Act(decision.Evict{Pod: pod.Key, UID: pod.UID, Node: n.Name, Grace: w.graceOf(pod)})
	}
}

// delayed says which annotation keeps a drained node from being terminated, as long as
// the delay may last.
func (w *Planner) delayed(n *round.Node) string {
	keys := slices.Sorted(maps.Keys(n.Annotations))
	first := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, cluster.AnnotationDelay) })
	if first < 0 {
		return ""
	}
	since, ok := w.Memory.Emptied[n.Name]
	if !ok {
		since = w.Now
	}
	round.Set(&w.Next.Emptied, n.Name, since)
	due := since.Add(w.Policy.NodeDeletionDelayTimeout)
	if w.Reached(due) {
		return ""
	}
	w.WakeAt(due)
	return fmt.Sprintf("drained; waits until %s for whoever put the annotation %s", round.Stamp(due), keys[first])
}

// optOutUntil tells until when an annotation with a time keeps a pod or a node; empty: not
// any more, or never.
func (w *Planner) optOutUntil(created time.Time, d time.Duration) string {
	if d <= 0 {
		return ""
	}
	until := created.Add(d)
	if w.Reached(until) {
		return ""
	}
	w.WakeAt(until)
	return fmt.Sprintf("annotated %s until %s", cluster.AnnotationDoNotDisrupt, round.Stamp(until))
}

// OptOutNow says which annotation keeps a node now.
func (w *Planner) OptOutNow(n *cluster.Node) string {
	if why := round.OptedOut(n); why != "" {
		return why
	}
	v, ok := n.Annotations[cluster.AnnotationDoNotDisrupt]
	if !ok {
		return ""
	}
	d, _ := time.ParseDuration(v) // else 0: OptedOut has judged what is no time
	return w.optOutUntil(n.Created, d)
}

// Requested tells that somebody asked for a node to go.
func Requested(n *cluster.Node) bool { return n.Annotations[cluster.AnnotationRequested] == "true" }

// imbalance is, by candidate, how far the candidate's group would be below the largest
// of its balance set when it went after the candidates before it. Candidates of groups
// that are not balanced have none.
func (w *Planner) imbalance(list []Candidate) {
	gone := make([]int, len(w.Groups))
	for i := range list {
		g := w.Nodes[list[i].Node].Group
		set := w.Peers(g)
		if len(set) == 1 {
			continue
		}
		gone[g]++
		most := 0
		for _, o := range set {
			most = max(most, w.Groups[o].CorrectedTarget-w.Groups[o].Removing)
		}
		list[i].below = max(most-(w.Groups[g].CorrectedTarget-w.Groups[g].Removing-gone[g]), 0)
	}
}

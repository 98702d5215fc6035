package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// step is the one that a pod belongs to; those below the first belong to the first.
func (w *downPlanner) step(pod *cluster.Pod) int {
	priority := w.s.Classes[pod.Class].Priority
	at := 0
	for i := range w.p.DrainPriority {
		if w.p.DrainPriority[i].Priority <= priority {
			at = i
		}
	}
	return at
}

// graceOf is how long a pod may take to end.
func (w *downPlanner) graceOf(pod *cluster.Pod) time.Duration {
	if len(w.p.DrainPriority) == 0 {
		return min(pod.GracePeriod.Duration(), w.p.MaxGracefulTermination)
	}
	return min(pod.GracePeriod.Duration(), w.p.DrainPriority[w.step(pod)].Grace)
}

// patience is how long a drain may take beyond the first eviction: with steps one after
// the other, their graces add up.
func (w *downPlanner) patience(c *drainPlan) time.Duration {
	if len(w.p.DrainPriority) == 0 {
		return c.grace + w.p.MaxPodEvictionTime
	}
	var all time.Duration
	for _, s := range w.p.DrainPriority {
		all += s.Grace + w.p.MaxPodEvictionTime
	}
	return all
}

// wave is what of a node's pods is to be evicted now: all, or those of the first step
// that still has some, terminating ones included.
func (w *downPlanner) wave(n *node) []*cluster.Pod {
	all := w.movable(n)
	if len(w.p.DrainPriority) < 2 {
		return all
	}
	first := len(w.p.DrainPriority)
	for i := range n.Pods {
		if pod := &n.Pods[i]; !w.ignored(pod) {
			first = min(first, w.step(pod))
		}
	}
	return slices.DeleteFunc(all, func(pod *cluster.Pod) bool { return w.step(pod) != first })
}

// evictDaemons asks DaemonSet pods to end before their node does. It is a courtesy: a
// drain does not wait for them, and those that came after the mark are left alone.
func (w *downPlanner) evictDaemons(n *node, byDefault bool) {
	marked := markTime(n.Node, w.now)
	pods := sorted(n.Pods)
	for i := range pods {
		pod := &pods[i]
		asked := pod.Asked().EvictDaemon
		if !daemon(pod) || pod.Mirror || pod.Finished || !pod.Deleting.IsZero() || pod.Created.Time().After(marked) || asked == "false" || asked != "true" && !byDefault {
			continue
		}
		if len(pod.Budgets) > 1 || len(pod.Budgets) == 1 && w.budget[pod.Budgets[0]] < 1 {
			continue
		}
		for _, b := range pod.Budgets {
			w.budget[b]--
		}
		w.act(decision.Evict{Pod: pod.Key, UID: pod.UID, Node: n.Name, Grace: w.graceOf(pod)})
	}
}

// delayed says which annotation keeps a drained node from being terminated, as long as
// the delay may last.
func (w *downPlanner) delayed(n *node) string {
	var first string
	for key := range n.Annotations {
		if strings.HasPrefix(key, cluster.AnnotationDelay) && (first == "" || key < first) {
			first = key
		}
	}
	if first == "" {
		return ""
	}
	since, ok := w.in.Emptied[n.Name]
	if !ok {
		since = w.now
	}
	set(&w.out.Emptied, n.Name, since)
	due := since.Add(w.p.NodeDeletionDelayTimeout)
	if w.reached(due) {
		return ""
	}
	w.wakeAt(due)
	return fmt.Sprintf("drained; waits until %s for whoever put the annotation %s", stamp(due), first)
}

// keptFor tells until when an annotation with a time keeps a pod or a node; empty: not
// any more, or never.
func (w *downPlanner) keptFor(created time.Time, d time.Duration) string {
	if d <= 0 {
		return ""
	}
	until := created.Add(d)
	if w.reached(until) {
		return ""
	}
	w.wakeAt(until)
	return fmt.Sprintf("annotated %s until %s", annotationDoNotDisrupt, stamp(until))
}

// optOutNow says which annotation keeps a node now.
func (w *downPlanner) optOutNow(n *cluster.Node) string {
	if why := optedOut(n); why != "" {
		return why
	}
	v, ok := n.Annotations[annotationDoNotDisrupt]
	if !ok {
		return ""
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return ""
	}
	return w.keptFor(n.Created, d)
}

// requested tells that somebody asked for a node to go.
func requested(n *cluster.Node) bool { return n.Annotations[cluster.AnnotationRequested] == "true" }

// imbalance is, by candidate, how far the candidate's group would be below the largest
// of its balance set when it went after the candidates before it. Candidates of groups
// that are not balanced have none, and any tells whether one is.
func (w *downPlanner) imbalance(list []candidate) (any bool) {
	gone := make([]int, len(w.groups))
	for i := range list {
		g := w.nodes[list[i].node].group
		set := w.peers(g)
		if len(set) == 1 {
			continue
		}
		any = true
		gone[g]++
		most := 0
		for _, o := range set {
			most = max(most, w.groups[o].target-w.groups[o].removing)
		}
		list[i].below = max(most-(w.groups[g].target-w.groups[g].removing-gone[g]), 0)
	}
	return any
}

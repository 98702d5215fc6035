package scaledown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// blockers are the reasons why a pod must not be evicted. All of them are asked for
// every pod: a "yes, safe" never hides a budget, as it does where the first decisive
// rule wins.
var blockers = []struct {
	name string
	why  func(w *Planner, pod *cluster.Pod) string
}{
	{"safe-to-evict=false", func(_ *Planner, pod *cluster.Pod) string {
		return when(pod.SafeToEvict == "false", "annotated safe-to-evict=false")
	}},
	{"safe-to-evict is not understood", func(_ *Planner, pod *cluster.Pod) string {
		return when(!cluster.KnownSafeToEvict(pod.SafeToEvict), fmt.Sprintf("annotated %s=%q, which is none of true, false and %s: the pod stays", cluster.AnnotationSafeToEvict, pod.SafeToEvict, cluster.SafeOnCompletion))
	}},
	{"do-not-disrupt", func(_ *Planner, pod *cluster.Pod) string {
		return when(pod.DoNotDisrupt, "annotated "+cluster.AnnotationDoNotDisrupt)
	}},
	{"do-not-disrupt for a time", func(w *Planner, pod *cluster.Pod) string {
		return w.optOutUntil(pod.Created.Time(), pod.Asked().KeepFor)
	}},
	{"no controller", func(_ *Planner, pod *cluster.Pod) string {
		return when(pod.Owner == nil && pod.SafeToEvict != "true", "has no controller to make it again")
	}},
	{"custom controller", func(w *Planner, pod *cluster.Pod) string {
		if !w.Policy.SkipNodesWithCustomPods || pod.Owner == nil || slices.Contains(replicated, pod.Owner.Kind) || pod.SafeToEvict == "true" {
			return ""
		}
		return fmt.Sprintf("is of %s %s, a custom controller that may not make it again", pod.Owner.Kind, pod.Owner.Name)
	}},
	{"controller is gone", func(w *Planner, pod *cluster.Pod) string {
		if pod.Owner == nil || !slices.Contains(w.Snapshot.GoneControllers, pod.Owner.UID) || pod.SafeToEvict == "true" {
			return ""
		}
		return fmt.Sprintf("is of %s %s, which is gone and does not make it again", pod.Owner.Kind, pod.Owner.Name)
	}},
	{"local storage", func(w *Planner, pod *cluster.Pod) string {
		return when(w.Policy.SkipNodesWithLocalStorage && pod.LocalStorage != "" && pod.SafeToEvict != "true", "keeps data on the node in volume "+pod.LocalStorage)
	}},
	{"kube-system", func(w *Planner, pod *cluster.Pod) string {
		return when(w.Policy.SkipNodesWithSystemPods && strings.HasPrefix(string(pod.Key), "kube-system/") && len(pod.Budgets) == 0 && pod.SafeToEvict != "true",
			"is in kube-system and has no PodDisruptionBudget")
	}},
	{"budget", func(_ *Planner, pod *cluster.Pod) string {
		if len(pod.Budgets) < 2 || pod.Unstarted { // one alone is asked every time: DrainPlanOf
			return ""
		}
		return "has more than one PodDisruptionBudget: " + strings.Join(slices.Sorted(slices.Values(pod.Budgets)), ", ")
	}},
	{"not judged", func(w *Planner, pod *cluster.Pod) string {
		c := &w.Snapshot.Classes[pod.Class]
		if c.TooLarge {
			return "has constraints that are not judged, for their size: " + c.NotUnderstood[0]
		}
		return when(len(c.NotUnderstood) > 0, "uses what this version does not judge: "+strings.Join(c.NotUnderstood, ", "))
	}},
}

// replicated are the kinds of controllers that make a pod again which is evicted, as Cluster Autoscaler has them.
var replicated = []string{"ReplicaSet", "StatefulSet", "Job", "ReplicationController"}

// BlockerCompletion is the name of the reason why a pod that runs to its end is not evicted.
const BlockerCompletion = "on-completion"

// completes tells a pod that runs to its end: it is never evicted by a drain, and needs no room elsewhere. What would keep
// an evicted pod on its node (no controller, local storage, a budget) says nothing of it.
func completes(pod *cluster.Pod) bool { return pod.SafeToEvict == cluster.SafeOnCompletion }

func completionWords(pods []*cluster.Pod) string {
	words := fmt.Sprintf("pod %s runs to its end (safe-to-evict=%s)", pods[0].Key, cluster.SafeOnCompletion)
	if more := len(pods) - 1; more > 0 {
		words = fmt.Sprintf("%s, and %d more", words, more)
	}
	return words
}

func when(holds bool, words string) string {
	if holds {
		return words
	}
	return ""
}

// budgetBlocks follows the Eviction API: a budget that is not known allows nothing (and
// a pod with two is refused, which is among the blockers).
func (w *Planner) budgetBlocks(pod *cluster.Pod) string {
	if len(pod.Budgets) == 1 && w.Budget[pod.Budgets[0]] < 1 && !w.unguarded(pod) {
		return "PodDisruptionBudget " + pod.Budgets[0] + " allows no disruption"
	}
	return ""
}

// unguarded tells a pod that the Eviction API lets go whatever its budgets allow, because it has not started, or that its only budget
// lets go because it is not Ready.
func (w *Planner) unguarded(pod *cluster.Pod) bool {
	return pod.Unstarted || pod.Unready && len(pod.Budgets) == 1 && slices.ContainsFunc(w.Snapshot.Budgets, func(b cluster.Budget) bool { return b.Unready && b.Key == pod.Budgets[0] })
}

// spend takes the eviction of a pod from its budgets.
func (w *Planner) spend(pod *cluster.Pod) {
	for _, b := range pod.Budgets {
		if !w.unguarded(pod) {
			w.Budget[b] = max(w.Budget[b]-1, 0)
		}
	}
}

// fillDrainPlan fills in what follows from the pods themselves, which come sorted by key.
func (w *Planner) fillDrainPlan(c *round.DrainPlan, pods []cluster.Pod) {
	for i := range pods {
		pod := &pods[i]
		if w.Ignored(pod) {
			continue
		}
		if pod.Deleting.IsZero() && completes(pod) {
			c.Completing = append(c.Completing, pod)
			continue
		}
		c.Grace = max(c.Grace, w.graceOf(pod))
		if !pod.Deleting.IsZero() {
			c.Terminating++
			w.WakeAt(pod.Deleting.Add(round.TerminatingSlack + time.Second))
			continue
		}
		c.Movable++
		if len(pod.Budgets) > 0 {
			c.Budgeted = append(c.Budgeted, pod)
		}
		if w.Expendable(pod) {
			continue
		}
		w.Cache.Count.Add(pod.Class, 1)
		for k := range blockers {
			if why := blockers[k].why(w, pod); why != "" {
				c.Hard = append(c.Hard, "pod "+string(pod.Key)+" "+why)
			}
		}
	}
	slices.Sort(c.Hard)
	rank := w.Cache.Classes.Rank
	c.Classes = w.Cache.Count.Take(func(a, b int32) int { return cmp.Compare(rank[a], rank[b]) })
}

// podsToDrain is a node's drain plan as far as budgets are not asked.
func (w *Planner) podsToDrain(n *round.Node) round.DrainPlan {
	changes := n.Facts.Timed || len(w.Snapshot.GoneControllers) > 0 // beside the node's pods
	if !n.Facts.DrainKnown && !changes {
		n.Facts.DrainKnown = true
		w.fillDrainPlan(&n.Facts.Drain, round.Sorted(n.Pods))
	}
	c := n.Facts.Drain
	if changes {
		c = round.DrainPlan{}
		w.fillDrainPlan(&c, round.Sorted(n.Pods))
	}
	return c
}

// DrainPlanOf is a node's drain plan with what budgets say now.
func (w *Planner) DrainPlanOf(n *round.Node) round.DrainPlan {
	c := w.podsToDrain(n)
	c.Blocked = slices.Clip(c.Hard)
	for _, pod := range c.Budgeted {
		if why := w.budgetBlocks(pod); why != "" && !w.Expendable(pod) {
			c.Blocked = append(c.Blocked, "pod "+string(pod.Key)+" "+why)
		}
	}
	slices.Sort(c.Blocked)
	return c
}

// Movable lists the pods that are to be evicted, by name.
func (w *Planner) Movable(n *round.Node) []*cluster.Pod {
	return slices.DeleteFunc(w.Running(n), completes)
}

// Running lists the pods that a drain does not leave alone and that are not terminating, by name.
func (w *Planner) Running(n *round.Node) []*cluster.Pod {
	var out []*cluster.Pod
	pods := round.Sorted(n.Pods)
	for i := range pods {
		if pod := &pods[i]; pod.Deleting.IsZero() && !w.Ignored(pod) {
			out = append(out, pod)
		}
	}
	return out
}

// Resume goes on with the nodes that carry a mark. The mark is on the Node itself, so
// a drain outlives this process.
func (w *Planner) Resume() {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		switch {
		case n.Original != nil:
		case !round.ToBeDeleted(n.Node) && round.CordonedByUs(n.Node) && w.Snapshot.Stale == "":
			// Also where somebody has uncordoned it: the annotation alone would make
			// their next cordon look like ours.
			w.Act(decision.Uncordon{Node: n.Name, UID: n.UID, Rule: decision.RuleHalfMark, Why: "it carries our cordon without its mark"})
		case !round.ToBeDeleted(n.Node):
		case !round.CordonedByUs(n.Node):
			w.Held("node", string(n.Name), decision.RuleNotOurs, "marked for deletion by somebody else; remove the taint %s to get it back", cluster.TaintToBeDeleted)
			if n.Group >= 0 {
				w.Groups[n.Group].Removing++
			}
		default:
			w.drain(i)
		}
	}
}

// drain takes the next step with one node that carries our mark.
func (w *Planner) drain(i int) {
	n := &w.Nodes[i]
	n.Removing, w.Uncacheable = true, true // markTime may be now
	first, seen := w.Memory.Draining[n.Name]
	if !seen {
		first = w.Now
	}
	if n.State != round.StateMarked {
		w.Held("node", string(n.Name), decision.RuleDraining, "marked, and its instance is on its way out or not known")
		return
	}
	g := &w.Groups[n.Group]
	round.Set(&w.Next.Draining, n.Name, first)
	waits := func(rule, why string) {
		g.Removing++
		w.Held("node", string(n.Name), rule, "marked, and waits: %s", why)
	}
	rule, frozen := w.DeletionsFrozen(g)
	if rule != "" && rule != decision.RuleKeeps {
		waits(rule, frozen)
		return
	}
	c := w.DrainPlanOf(n)
	deadline := w.deadline(n, &c, first)
	if w.takeBack(i, g, &c, deadline) {
		return
	}
	if rule == decision.RuleKeeps {
		waits(rule, frozen) // the mark itself is the agent's own, and was asked about above
		return
	}
	g.Removing++
	if start := markTime(n.Node, w.Now).Add(w.Policy.DelayAfterTaint); !w.Reached(start) {
		w.WakeAt(start)
		w.removals.add(&c)
		w.Held("node", string(n.Name), decision.RuleDraining, "marked; waits until %s for pods that were on their way", round.Stamp(start))
		return
	}
	switch {
	case c.Movable+c.Terminating+len(c.Completing) == 0:
		w.terminate(n, g, &c, decision.Terminate{Rule: decision.RuleEmpty, Why: "drained: no pod that could be moved is left"})
		return
	case c.Movable+c.Terminating == 0:
		w.Held("node", string(n.Name), decision.RuleCompletion, "marked, and waits: %s", completionWords(c.Completing))
		return
	case w.Reached(deadline): // takeBack leaves it so where the drain is forced
		w.terminate(n, g, &c, w.Disruption.Forced(c.Movable+c.Terminating, deadline))
		return
	}
	w.removals.add(&c)
	w.evict(n, &c)
	w.evictDaemons(n, w.Policy.EvictDaemonsOccupied)
}

// terminate ends the machine of a node that is drained, or whose drain is not waited for any longer, unless somebody delays it.
func (w *Planner) terminate(n *round.Node, g *round.Group, c *round.DrainPlan, a decision.Terminate) {
	g.Shrinks = true
	if why := w.delayed(n); why != "" {
		w.removals.add(c)
		w.Held("node", string(n.Name), decision.RuleDraining, "%s", why)
		return
	}
	if why := w.Disruption.Unproven(n); why != "" && !Requested(n.Node) && markedBy(n.Node) != decision.RuleInterrupted {
		w.removals.add(c)
		w.Held("node", string(n.Name), decision.RuleCanary, "drained, and its machine waits: %s", why)
		return
	}
	if g.Busy != "" {
		w.removals.add(c)
		w.Held("node", string(n.Name), decision.RuleCloudBusy, "drained, and its machine waits: %s", g.Busy)
		return
	}
	w.evictDaemons(n, w.Policy.EvictDaemonsEmpty)
	a.Group, a.Instance, a.Node, a.NodeUID = g.ID, n.Instance.ID, n.Name, n.UID
	w.Act(a)
}

// DeletionsFrozen says why nothing may be deleted from a group now.
func (w *Planner) DeletionsFrozen(g *round.Group) (rule, why string) {
	switch {
	case w.Snapshot.Stale != "":
		return decision.RuleStale, "the cluster's facts may be old: " + w.Snapshot.Stale
	case w.Unhealthy != "":
		return decision.RuleUnhealthy, w.Unhealthy
	case !w.Fresh(g):
		return decision.RuleGroupStale, "the group's facts are old"
	case w.Paused(g) != "":
		return decision.RuleOperator, w.Paused(g)
	case g.Keeps != "":
		return decision.RuleKeeps, g.Keeps
	case g.Bought:
		return decision.RuleOneWay, "the group grows in this round"
	}
	return "", ""
}

// evict asks for as many evictions as the budgets allow now.
func (w *Planner) evict(n *round.Node, c *round.DrainPlan) {
	waiting, now := 0, w.wave(n)
	for _, pod := range now {
		if w.budgetBlocks(pod) != "" {
			waiting++
			continue
		}
		w.spend(pod)
		w.Act(decision.Evict{Pod: pod.Key, UID: pod.UID, Node: n.Name, Grace: w.graceOf(pod)})
	}
	words := fmt.Sprintf("draining: %d to evict, %d wait for a budget, %d terminating", len(now)-waiting, waiting, c.Terminating)
	if later := c.Movable - len(now); later > 0 {
		words += fmt.Sprintf(", %d of a higher priority come after them", later)
	}
	if len(c.Completing) > 0 {
		words += "; " + completionWords(c.Completing)
	}
	w.Held("node", string(n.Name), decision.RuleDraining, "%s", words)
}

// BlockersOf are all reasons why a pod must not be evicted, budgets as they are now.
func (w *Planner) BlockersOf(pod *cluster.Pod) []decision.Blocker {
	for k := range round.IgnoredPods {
		if round.IgnoredPods[k].Is(w.State, pod) {
			return nil
		}
	}
	if !pod.Deleting.IsZero() || w.Expendable(pod) {
		return nil
	}
	var out []decision.Blocker
	if completes(pod) {
		return []decision.Blocker{{Pod: pod.Key, Name: BlockerCompletion, Why: fmt.Sprintf("runs to its end (safe-to-evict=%s): the node goes when it has ended", cluster.SafeOnCompletion)}}
	}
	for k := range blockers {
		if why := blockers[k].why(w, pod); why != "" {
			out = append(out, decision.Blocker{Pod: pod.Key, Name: blockers[k].name, Why: why})
		}
	}
	if why := w.budgetBlocks(pod); why != "" {
		out = append(out, decision.Blocker{Pod: pod.Key, Name: "budget", Why: why})
	}
	return out
}

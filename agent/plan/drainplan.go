package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// blockers are the reasons why a pod must not be evicted. All of them are asked for
// every pod: a "yes, safe" never hides a budget, as it does where the first decisive
// rule wins.
var blockers = []struct {
	name string
	why  func(w *downPlanner, pod *cluster.Pod) string
}{
	{"safe-to-evict=false", func(_ *downPlanner, pod *cluster.Pod) string {
		return when(pod.SafeToEvict == "false", "annotated safe-to-evict=false")
	}},
	{"do-not-disrupt", func(_ *downPlanner, pod *cluster.Pod) string {
		return when(pod.DoNotDisrupt, "annotated karpenter.sh/do-not-disrupt")
	}},
	{"do-not-disrupt for a time", func(w *downPlanner, pod *cluster.Pod) string {
		return w.keptFor(pod.Created.Time(), pod.Asked().KeepFor)
	}},
	{"no controller", func(_ *downPlanner, pod *cluster.Pod) string {
		return when(pod.Owner == nil && pod.SafeToEvict != "true", "has no controller to make it again")
	}},
	{"local storage", func(w *downPlanner, pod *cluster.Pod) string {
		return when(w.p.SkipNodesWithLocalStorage && pod.LocalStorage != "" && pod.SafeToEvict != "true", "keeps data on the node in volume "+pod.LocalStorage)
	}},
	{"kube-system", func(w *downPlanner, pod *cluster.Pod) string {
		return when(w.p.SkipNodesWithSystemPods && strings.HasPrefix(string(pod.Key), "kube-system/") && len(pod.Budgets) == 0 && pod.SafeToEvict != "true",
			"is in kube-system and has no PodDisruptionBudget")
	}},
	{"budget", func(_ *downPlanner, pod *cluster.Pod) string {
		if len(pod.Budgets) < 2 { // one alone is asked every time: drainPlanOf
			return ""
		}
		return "has more than one PodDisruptionBudget: " + strings.Join(slices.Sorted(slices.Values(pod.Budgets)), ", ")
	}},
	{"not judged", func(w *downPlanner, pod *cluster.Pod) string {
		features := w.s.Classes[pod.Class].NotUnderstood
		return when(len(features) > 0, "uses what this version does not judge: "+strings.Join(features, ", "))
	}},
}

func when(holds bool, words string) string {
	if holds {
		return words
	}
	return ""
}

// budgetBlocks follows the Eviction API: a budget that is not known allows nothing (and
// a pod with two is refused, which is among the blockers).
func (w *downPlanner) budgetBlocks(pod *cluster.Pod) string {
	if len(pod.Budgets) == 1 && w.budget[pod.Budgets[0]] < 1 {
		return "PodDisruptionBudget " + pod.Budgets[0] + " allows no disruption"
	}
	return ""
}

// fillDrainPlan fills in what follows from the pods themselves, which come sorted by key.
func (w *downPlanner) fillDrainPlan(c *drainPlan, pods []cluster.Pod) {
	for i := range pods {
		pod := &pods[i]
		if w.ignored(pod) {
			continue
		}
		c.grace = max(c.grace, w.graceOf(pod))
		if !pod.Deleting.IsZero() {
			c.terminating++
			w.wakeAt(pod.Deleting.Add(terminatingSlack + time.Second))
			continue
		}
		c.movable++
		if len(pod.Budgets) > 0 {
			c.budgeted = append(c.budgeted, pod)
		}
		if w.expendable(pod) {
			continue
		}
		w.e.count.add(pod.Class, 1)
		for k := range blockers {
			if why := blockers[k].why(w, pod); why != "" {
				c.hard = append(c.hard, "pod "+string(pod.Key)+" "+why)
			}
		}
	}
	slices.Sort(c.hard)
	rank := w.e.classes.rank
	c.classes = w.e.count.take(func(a, b int32) int { return cmp.Compare(rank[a], rank[b]) })
}

// podsToDrain is a node's drain plan as far as budgets are not asked.
func (w *downPlanner) podsToDrain(n *node) drainPlan {
	if !n.f.drainKnown && !n.f.timed {
		n.f.drainKnown = true
		w.fillDrainPlan(&n.f.drain, sorted(n.Pods))
	}
	c := n.f.drain
	if n.f.timed {
		w.fillDrainPlan(&c, sorted(n.Pods))
	}
	return c
}

// drainPlanOf is a node's drain plan with what budgets say now.
func (w *downPlanner) drainPlanOf(n *node) drainPlan {
	c := w.podsToDrain(n)
	c.blocked = slices.Clip(c.hard)
	for _, pod := range c.budgeted {
		if why := w.budgetBlocks(pod); why != "" && !w.expendable(pod) {
			c.blocked = append(c.blocked, "pod "+string(pod.Key)+" "+why)
		}
	}
	if len(c.blocked) > len(c.hard) {
		slices.Sort(c.blocked)
	}
	return c
}

// movable lists the pods that are to be evicted, by name.
func (w *downPlanner) movable(n *node) []*cluster.Pod {
	var out []*cluster.Pod
	pods := sorted(n.Pods)
	for i := range pods {
		if pod := &pods[i]; pod.Deleting.IsZero() && !w.ignored(pod) {
			out = append(out, pod)
		}
	}
	return out
}

// resume goes on with the nodes that carry a mark. The mark is on the Node itself, so
// a drain outlives this process.
func (w *downPlanner) resume() {
	for i := range w.nodes {
		n := &w.nodes[i]
		switch {
		case n.original != nil:
		case !toBeDeleted(n.Node) && cordonedByUs(n.Node) && w.s.Stale == "":
			// Also where somebody has uncordoned it: the annotation alone would make
			// their next cordon look like ours.
			w.act(decision.Uncordon{Node: n.Name, UID: n.UID, Rule: decision.RuleHalfMark, Why: "it carries our cordon without its mark"})
		case !toBeDeleted(n.Node):
		case !cordonedByUs(n.Node):
			w.held("node", string(n.Name), decision.RuleNotOurs, "marked for deletion by somebody else; remove the taint %s to get it back", cluster.TaintToBeDeleted)
			if n.group >= 0 {
				w.groups[n.group].removing++
			}
		default:
			w.drain(i)
		}
	}
}

// drain takes the next step with one node that carries our mark.
func (w *downPlanner) drain(i int) {
	n := &w.nodes[i]
	n.removing, w.uncacheable = true, true // markTime may be now
	first, seen := w.in.Draining[n.Name]
	if !seen {
		first = w.now
	}
	if n.group < 0 || n.state != stateMarked {
		w.held("node", string(n.Name), decision.RuleDraining, "marked, and its instance is on its way out or not known")
		return
	}
	g := &w.groups[n.group]
	set(&w.out.Draining, n.Name, first)
	waits := func(rule, why string) {
		g.removing++
		w.held("node", string(n.Name), rule, "marked, and waits: %s", why)
	}
	rule, frozen := w.deletionsFrozen(g)
	if rule != "" && rule != decision.RuleKeeps {
		waits(rule, frozen)
		return
	}
	c := w.drainPlanOf(n)
	if why := w.giveUp(i, g, &c, later(markTime(n.Node, w.now), first)); why != "" {
		n.removing = false
		delete(w.out.Draining, n.Name)
		w.postpone(w.now.Add(w.p.DelayAfterFailure))
		w.act(decision.Uncordon{Node: n.Name, UID: n.UID, Rule: decision.RuleTookBack, Why: why})
		w.held("node", string(n.Name), decision.RuleTookBack, "stays: %s", why)
		return
	}
	if rule == decision.RuleKeeps {
		waits(rule, frozen) // the mark itself is the agent's own, and was asked about above
		return
	}
	g.removing++
	if start := markTime(n.Node, w.now).Add(w.p.DelayAfterTaint); !w.reached(start) {
		w.wakeAt(start)
		if c.movable+c.terminating == 0 {
			w.emptying++
		} else {
			w.draining++
		}
		w.held("node", string(n.Name), decision.RuleDraining, "marked; waits until %s for pods that were on their way", stamp(start))
		return
	}
	if c.movable+c.terminating == 0 {
		g.shrinks = true
		if why := w.delayed(n); why != "" {
			w.emptying++
			w.held("node", string(n.Name), decision.RuleDraining, "%s", why)
			return
		}
		if g.Busy != "" {
			w.emptying++
			w.held("node", string(n.Name), decision.RuleCloudBusy, "drained, and its machine waits: %s", g.Busy)
			return
		}
		w.evictDaemons(n, w.p.EvictDaemonsEmpty)
		w.act(decision.Terminate{Group: g.ID, Instance: n.inst.ID, Node: n.Name, NodeUID: n.UID, Rule: decision.RuleEmpty, Why: "drained: no pod that could be moved is left"})
		return
	}
	w.draining++
	w.evict(n, &c)
	w.evictDaemons(n, w.p.EvictDaemonsOccupied)
}

// deletionsFrozen says why nothing may be deleted from a group now.
func (w *downPlanner) deletionsFrozen(g *group) (rule, why string) {
	switch {
	case w.s.Stale != "":
		return decision.RuleStale, "the cluster's facts may be old: " + w.s.Stale
	case w.unhealthy != "":
		return decision.RuleUnhealthy, w.unhealthy
	case !w.fresh(g):
		return decision.RuleGroupStale, "the group's facts are old"
	case w.paused(g) != "":
		return decision.RuleOperator, w.paused(g)
	case g.Keeps != "":
		return decision.RuleKeeps, g.Keeps
	case g.bought:
		return decision.RuleOneWay, "the group grows in this round"
	}
	return "", ""
}

// giveUp says why a mark is taken back; empty: the drain goes on.
func (w *downPlanner) giveUp(i int, g *group, c *drainPlan, since time.Time) string {
	n := &w.nodes[i]
	deadline := since.Add(w.p.DelayAfterTaint + w.patience(c))
	switch {
	case markedBy(n.Node) == decision.RuleInterrupted:
		return "the cloud does not say any more that it ends the machine"
	case n.inUse:
		return "pending pods need it"
	case !w.p.ScaleDown:
		return "scale-down is switched off"
	case w.optOutNow(n.Node) != "":
		return w.optOutNow(n.Node)
	case g.target-g.removing <= g.Min:
		return fmt.Sprintf("the group is at its minimum of %d", g.Min)
	case len(c.hard) > 0:
		return strings.Join(c.hard, "; ")
	case c.movable+c.terminating > 0 && w.reached(deadline):
		return fmt.Sprintf("%s did not leave by %s", pods(c.movable+c.terminating), stamp(deadline))
	}
	if pod, ok := w.relocate(i, c.classes); !ok {
		return fmt.Sprintf("pod %s has room nowhere else any more", pod)
	}
	w.wakeAt(deadline)
	return ""
}

// evict asks for as many evictions as the budgets allow now.
func (w *downPlanner) evict(n *node, c *drainPlan) {
	waiting, now := 0, w.wave(n)
	for _, pod := range now {
		if len(pod.Budgets) == 1 {
			if w.budget[pod.Budgets[0]] < 1 {
				waiting++
				continue
			}
			w.budget[pod.Budgets[0]]--
		}
		w.act(decision.Evict{Pod: pod.Key, UID: pod.UID, Node: n.Name, Grace: w.graceOf(pod)})
	}
	words := fmt.Sprintf("draining: %d to evict, %d wait for a budget, %d terminating", len(now)-waiting, waiting, c.terminating)
	if later := c.movable - len(now); later > 0 {
		words += fmt.Sprintf(", %d of a higher priority come after them", later)
	}
	w.held("node", string(n.Name), decision.RuleDraining, "%s", words)
}

// markTime reads the time of marking from the taint's value; a value that is none
// counts as now.
func markTime(n *cluster.Node, now time.Time) time.Time {
	t, _ := taint(n, cluster.TaintToBeDeleted)
	sec, err := strconv.ParseInt(t.Value, 10, 64)
	if at := time.Unix(sec, 0); err == nil && at.Before(now) {
		return at
	}
	return now
}

// blockersOf are all reasons why a pod must not be evicted, budgets as they are now.
func (w *downPlanner) blockersOf(pod *cluster.Pod) []decision.Blocker {
	for k := range ignoredPods {
		if ignoredPods[k].is(w.roundState, pod) {
			return nil
		}
	}
	if !pod.Deleting.IsZero() || w.expendable(pod) {
		return nil
	}
	var out []decision.Blocker
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

package scaledown

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Candidate is a node that may not be needed.
type Candidate struct {
	Node      int
	nonEmpty  int // 1: pods have to be moved
	util      float64
	Unready   bool
	requested bool              // somebody asked for it to go
	below     int               // how far its group would be below the largest of its balance set
	since     time.Time         // since when it is not needed
	waits     int               // 0: its timer runs already, 1: it would begin now
	looked    int               // 0: the last round had no looks left for it
	why       disruption.Reason // why it is replaced; zero: it is not
	turn      int               // among the nodes that are replaced; see turnOf
	completes int               // 1: pods on it run to their end, so that it cannot go yet

	late []round.ClassCount // see tentative
}

// Decide finds the nodes whose pods could live elsewhere, keeps their timers and
// marks those whose time is over.
// It costs candidates, and for each of them relocate, until the looks of the round are used up.
func (w *Planner) Decide() {
	if !w.Policy.ScaleDown {
		return
	}
	if w.Snapshot.Stale != "" {
		w.Next.Unneeded = maps.Clone(w.Memory.Unneeded)
		return
	}
	rule, why := w.Cooldown()
	all := w.candidates()
	defer w.tellRelocation()
	for i := range all {
		c := &all[i]
		if c.replaced() && w.heldBack(c) { // the nodes before it may have used the budget up
			continue
		}
		cargo, unneeded := w.unneeded(c)
		if !unneeded {
			continue
		}
		n := &w.Nodes[c.Node]
		g := &w.Groups[n.Group]
		name := string(n.Name)
		due, because := w.DueOf(c, g)
		if !w.Reached(due) {
			w.WakeAt(due)
			w.HeldWhy("node", name, decision.RuleUnneededFor, n.Facts.DueWords(due))
			continue
		}
		if rule != "" && (rule != decision.RuleCooldown || !c.requested && !c.replaced()) {
			w.Held("node", name, rule, "not needed, and stays: %s", why)
			continue
		}
		if r, y := w.spared(c); r != "" {
			w.Held("node", name, r, "not needed, and stays: %s", y)
			continue
		}
		if r, y := w.DeletionsFrozen(g); r != "" {
			w.Held("node", name, r, "not needed, and stays: %s", y)
			continue
		}
		if why := w.waitsInTurn(c); why != "" {
			w.Held("node", name, decision.RuleBatch, "not needed, and waits: %s", why)
			continue
		}
		if limit, full := w.removals.full(&cargo, w.Policy); full {
			w.Held("node", name, decision.RuleBatch, "not needed, and waits: %d nodes go at once", limit)
			continue
		}
		if why := w.uncertain(c); why != "" {
			w.Held("node", name, decision.RuleBatch, "not needed, and waits: %s", why)
			continue
		}
		w.removals.add(&cargo)
		w.cordonNode(c, because, round.Pods(cargo.Movable))
	}
	w.orderReplacements(rule, why)
}

// cordonNode marks a node that goes.
func (w *Planner) cordonNode(c *Candidate, rule, pods string) {
	n := &w.Nodes[c.Node]
	w.noteMarked(c)
	w.noteGoing(c.Node)
	w.Disruption.Add(c.Node)
	w.Groups[n.Group].Shrinks = true
	w.WakeAt(w.Now.Add(w.Policy.DelayAfterTaint))
	words := fmt.Sprintf("utilisation %.0f%%, %s to move", c.util*100, pods)
	if c.replaced() {
		words = c.why.Why + "; " + words
	}
	w.Act(decision.Cordon{Node: n.Name, UID: n.UID, Rule: rule, Why: words})
}

// DueOf returns when a candidate may go, and by which rule.
func (w *Planner) DueOf(c *Candidate, g *round.Group) (time.Time, string) {
	n := &w.Nodes[c.Node]
	switch {
	case Requested(n.Node):
		return w.Now, decision.RuleRequested
	case c.replaced():
		return w.Now, c.why.Rule
	}
	if c.Unready {
		return w.Next.Unready[n.Name].Add(round.OrElse(g.Options.ScaleDownUnreadyTime, w.Policy.UnreadyFor)), decision.RuleUnready
	}
	return w.Next.Unneeded[n.Name].Add(round.OrElse(g.Options.ScaleDownUnneededTime, w.Policy.UnneededFor)), decision.RuleUnneeded
}

// Cooldown says why no node is marked in this round.
func (w *Planner) Cooldown() (rule, why string) {
	var added time.Time
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Group >= 0 {
			added = round.Later(added, n.Created)
		}
	}
	for _, r := range w.Next.Resized {
		added = round.Later(added, r.At)
	}
	switch until := added.Add(w.Policy.DelayAfterAdd); {
	case w.Grew:
		return decision.RuleGrowing, "this round grows"
	case w.Unjudged:
		return decision.RuleGrowing, "a pod that cannot be judged here waits for the scheduler"
	case !w.Reached(w.Next.ScaleDownAfter):
		w.WakeAt(w.Next.ScaleDownAfter)
		return decision.RuleFailed, "scale-down failed shortly ago; next try at " + round.Stamp(w.Next.ScaleDownAfter)
	case !w.Reached(until):
		w.WakeAt(until)
		return decision.RuleCooldown, "the cluster grew shortly ago; next try at " + round.Stamp(until)
	}
	return "", ""
}

// candidates are the nodes that could go as far as they themselves are concerned:
// empty ones first, then those that have been waiting longest, then the least used.
// It costs N log N.
func (w *Planner) candidates() []Candidate {
	out := w.cache.candidates[:0]
	defer func() { w.cache.candidates = out }()
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.ControlPlane || n.Group < 0 || n.Deleting || n.Removing || n.Facts.ToBeDeleted || n.State == round.StateUpcoming {
			if n.State == round.StateUpcoming && n.Ready != cluster.StatusTrue {
				w.WakeAt(n.Created.Add(w.Startup(n)))
			}
			continue
		}
		c := Candidate{Node: i, Unready: n.Ready != cluster.StatusTrue, requested: Requested(n.Node)}
		if c.why = w.Disruption.Reason(i); c.replaced() && w.heldBack(&c) {
			c.why = disruption.Reason{} // it may be idle
		}
		if rule, why := w.notRemovable(n, &c); rule != "" {
			w.HeldWhy("node", string(n.Name), rule, why)
			if since, runs := w.Memory.Unneeded[n.Name]; runs && rule == decision.RuleInUse && n.OnlyRelocated {
				// The scheduler may put the moved pods elsewhere; if it does not, the
				// node's use will show.
				round.Set(&w.Next.Unneeded, n.Name, since)
			}
			continue
		}
		plan := w.podsToDrain(n)
		c.nonEmpty, c.completes, c.turn = min(plan.Movable, 1), min(len(plan.Completing), 1), w.turnOf(&c)
		c.since = w.Memory.Unneeded[n.Name]
		if c.since.IsZero() { // after the others, also those whose timer began in this moment: time alone changes no order
			c.since, c.waits = w.Now, 1
			if _, skipped := slices.BinarySearch(w.Memory.Unlooked, n.Name); !skipped {
				c.looked = 1
			}
		}
		out = append(out, c)
	}
	slices.SortFunc(out, compareCandidates)
	w.imbalance(out)
	slices.SortFunc(out, compareCandidates)
	return out
}

// compareCandidates orders the candidates: the node that is removed first comes first. Those with pods that run to their end cannot go
// yet, and keep no other from going.
func compareCandidates(a, b Candidate) int {
	return cmp.Or(boolInt(b.requested)-boolInt(a.requested), a.turn-b.turn, a.completes-b.completes, a.nonEmpty-b.nonEmpty, a.below-b.below, a.waits-b.waits, a.looked-b.looked,
		a.since.Compare(b.since), cmp.Compare(a.util, b.util), a.Node-b.Node)
}

// notRemovable says why a node is no candidate.
func (w *Planner) notRemovable(n *round.Node, c *Candidate) (rule, why string) {
	if n.Instance.Phase != cluster.PhaseRunning || !n.Instance.Member {
		return decision.RuleInstance, fmt.Sprintf("its instance %s is %q or no member of its group", n.Instance.ID, n.Instance.Phase)
	}
	if _, told := w.Next.Deleted[n.Instance.ID]; told {
		return decision.RuleInstance, "its instance was told to go"
	}
	if why := w.OptOutNow(n.Node); why != "" {
		return decision.RuleOptOut, why
	}
	if c.Unready && !c.requested && !c.replaced() && !w.Policy.ScaleDownUnready {
		return decision.RuleUnready, "it is not Ready, and such nodes are kept (AUTOSCALER_SCALING_SCALE_DOWN_UNREADY)"
	}
	if n.Unschedulable && !n.Facts.CordonedByUs {
		return decision.RuleNotOurs, "cordoned by somebody else"
	}
	if n.InUse {
		return decision.RuleInUse, "pods that are to come count on it"
	}
	if !c.requested && !c.replaced() {
		if why := w.Disruption.StaysForHalt(n); why != "" {
			return decision.RuleHalted, why
		}
		if why := w.Disruption.StaysFor(c.Node); why != "" {
			return decision.RuleInUse, why
		}
	}
	c.util = w.Utilisation(n)
	limit := w.Threshold(n)
	if !c.Unready && c.util > limit && !c.requested && !c.replaced() {
		return decision.RuleBusy, w.cache.busyWords(c.util, limit)
	}
	return "", ""
}

// unneeded tells whether a candidate's pods have room elsewhere, beside those of the
// candidates before it, and then keeps its timer. It returns what there is to drain.
func (w *Planner) unneeded(c *Candidate) (found round.DrainPlan, ok bool) {
	n := &w.Nodes[c.Node]
	g := &w.Groups[n.Group]
	name := string(n.Name)
	found = w.DrainPlanOf(n) // budgets may have been used up by the candidates before it
	switch {
	case len(found.Blocked) > 0 && !(c.replaced() && w.Disruption.Forces() && len(found.Hard) == 0):
		w.Held("node", name, decision.RuleBlocked, "%s", strings.Join(found.Blocked, "; "))
		w.keepTimer(c, &found)
		return found, false
	case n.InUse:
		w.Held("node", name, decision.RuleInUse, "pods of another node that goes count on it")
		if _, runs := w.Memory.Unneeded[n.Name]; runs {
			round.Set(&w.Next.Unneeded, n.Name, c.since)
		}
		return found, false
	case c.replaced() && (g.CorrectedTarget-g.Removing <= g.Min || growth.KeepsTotals(w.State, n) != "") && len(found.Completing) == 0:
		w.order(c, cmp.Or(growth.KeepsTotals(w.State, n), fmt.Sprintf("the group is at its minimum of %d", g.Min)), true)
		return found, false
	case g.CorrectedTarget-g.Removing <= g.Min:
		w.Held("node", name, decision.RuleAtMin, "the group is at its minimum of %d", g.Min)
		return found, false
	case growth.KeepsTotals(w.State, n) != "":
		w.Held("node", name, decision.RuleTotalsMin, "%s", growth.KeepsTotals(w.State, n))
		return found, false
	}
	if len(found.Completing) > 0 && !Requested(n.Node) {
		w.awaitCompletion(c, &found)
		return found, false
	}
	r := w.relocate(c.Node, found.Classes, !c.Unready && !Requested(n.Node))
	if r.Rule != "" && w.spent() {
		w.HeldWhy("node", name, decision.RuleNoRoom, "not looked at: this round has looked for room for enough pods, and the next one begins with this node")
		w.Next.Unlooked = append(w.Next.Unlooked, n.Name)
		if _, runs := w.Memory.Unneeded[n.Name]; runs {
			round.Set(&w.Next.Unneeded, n.Name, c.since)
		}
		return found, false
	}
	if r.Rule == decision.RuleNoRoom && c.replaced() {
		w.order(c, r.Why, false)
		return found, false
	}
	if r.Rule != "" {
		w.HeldWhy("node", name, r.Rule, r.Why)
		return found, false
	}
	c.late = r.late
	n.Removing = true
	g.Removing++
	w.CountRemoval(n)
	for _, pod := range found.Budgeted {
		w.spend(pod)
	}
	round.Set(&w.Next.Unneeded, n.Name, c.since)
	return found, true
}

// awaitCompletion lets the time of a node run that would go, if pods on it did not run to their end: it goes when they
// have ended. Until then it takes pods as before (its soft taint lets kube-scheduler prefer others), and no other node counts
// on its going.
func (w *Planner) awaitCompletion(c *Candidate, found *round.DrainPlan) {
	n := &w.Nodes[c.Node]
	if r := w.Relocation(c.Node, found.Classes, !c.Unready); r.Rule != "" && !w.spent() {
		w.HeldWhy("node", string(n.Name), r.Rule, r.Why)
		return
	}
	round.Set(&w.Next.Unneeded, n.Name, c.since)
	w.Held("node", string(n.Name), decision.RuleCompletion, "not needed, and waits: %s", completionWords(found.Completing))
}

// noteMarked notes a node that is marked in this round, and whose pods wait for its Node object.
func (w *Planner) noteMarked(c *Candidate) {
	w.lateClasses()
	w.marked = append(w.marked, c.Node)
	for _, l := range c.late {
		w.late = append(w.late, int(l.Class))
	}
}

// keepTimer lets the time of a node run on that only a budget keeps: one that the
// candidates before it have used up in this round, or that is used up for now. Else
// twenty nodes under a budget of one would go one unneeded time after the other. A
// budget that never allowed anything starts no timer.
func (w *Planner) keepTimer(c *Candidate, found *round.DrainPlan) {
	n := &w.Nodes[c.Node]
	if len(found.Hard) > 0 {
		return
	}
	_, runs := w.Memory.Unneeded[n.Name]
	for _, pod := range found.Budgeted {
		for _, b := range pod.Budgets {
			runs = runs || w.Budget[b] < 1 && w.allowedAtFirst(b)
		}
	}
	if runs && (w.CanRelocate(c.Node, found.Classes) || w.spent()) {
		round.Set(&w.Next.Unneeded, n.Name, c.since)
	}
}

// allowedAtFirst tells whether a budget allowed anything when the round began.
func (w *Planner) allowedAtFirst(key string) bool {
	if w.allowed == nil {
		w.allowed = make(map[string]bool, len(w.Snapshot.Budgets))
		for _, b := range w.Snapshot.Budgets {
			w.allowed[b.Key] = b.Allowed > 0
		}
	}
	return w.allowed[key]
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

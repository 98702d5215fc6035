package scaledown

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
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
	heldBy    decision.Refusal  // what holds back its replacement
	turn      int               // among the nodes that are replaced; see turnOf
	untried   int               // how many programs on it have no pod on a machine of the source that it is replaced for
	completes int               // 1: pods on it run to their end, so that it cannot go yet

	drains round.DrainPlan
	late   []round.ClassCount // see tentative
}

// replaced tells that it goes to be replaced; asked, that it goes whether it is needed or not.
func (c *Candidate) replaced() bool { return c.why.Rule != "" }
func (c *Candidate) asked() bool    { return c.requested || c.replaced() }

// keepsDomains tells that its pods give up no domain of their topology spread for its going.
func (c *Candidate) keepsDomains() bool { return !c.Unready && !c.requested }

func (w *Planner) groupOf(c *Candidate) *round.Group { return &w.Groups[w.Nodes[c.Node].Group] }

// candidate is a node as the checks judge it. A node whose replacement is held back may be idle.
func (w *Planner) candidate(i int) Candidate {
	n := &w.Nodes[i]
	c := Candidate{Node: i, Unready: n.Ready != cluster.StatusTrue, requested: Requested(n.Node), util: w.Utilisation(n), why: w.Disruption.Reason(i)}
	if c.heldBy = w.heldBack(&c); c.heldBy.Rule != "" {
		c.why = disruption.Reason{}
	}
	return c
}

// heldBack is what keeps a node for now that is to be replaced.
func (w *Planner) heldBack(c *Candidate) (r decision.Refusal) {
	if c.replaced() {
		r.Rule, r.Why = w.Disruption.Hold(c.Node, c.why)
	}
	return r
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
	w.Cooldown() // before the round goes on to order machines
	all := w.candidates()
	defer w.tellRelocation()
	for i := range all {
		c := &all[i]
		name := string(w.Nodes[c.Node].Name)
		if held := w.heldBack(c); held.Rule != "" { // the nodes before it may have used the budget up
			w.HeldWhy("node", name, held.Rule, held.Why)
			continue
		}
		if !w.unneeded(c) {
			continue
		}
		switch rule, why := w.objection(roundChecks, c); rule {
		case "":
			w.removals.add(&c.drains)
			w.cordonNode(c)
		case decision.RuleUnneededFor:
			w.HeldWhy("node", name, rule, why)
		case decision.RuleBatch:
			w.Held("node", name, rule, "not needed, and waits: %s", why)
		default:
			w.Held("node", name, rule, "not needed, and stays: %s", why)
		}
	}
	w.orderReplacements()
}

// cordonNode marks a node that goes.
func (w *Planner) cordonNode(c *Candidate) {
	n := &w.Nodes[c.Node]
	w.noteMarked(c)
	w.Disruption.Add(c.Node)
	w.Groups[n.Group].Shrinks = true
	w.WakeAt(w.Now.Add(w.Policy.DelayAfterTaint))
	_, rule := w.DueOf(c)
	words := fmt.Sprintf("utilisation %.0f%%, %s to move", c.util*100, round.Pods(c.drains.Movable))
	if c.replaced() {
		words = c.why.Why + "; " + words
	}
	w.Act(decision.Cordon{Node: n.Name, UID: n.UID, Rule: rule, Why: words})
}

// DueOf returns when a candidate may go, and by which rule.
func (w *Planner) DueOf(c *Candidate) (time.Time, string) {
	n, o := &w.Nodes[c.Node], &w.groupOf(c).Options
	switch {
	case c.requested:
		return w.Now, decision.RuleRequested
	case c.replaced():
		return w.Now, c.why.Rule
	case c.Unready:
		return w.Next.Unready[n.Name].Add(round.OrElse(o.ScaleDownUnreadyTime, w.Policy.UnreadyFor)), decision.RuleUnready
	}
	return c.since.Add(round.OrElse(o.ScaleDownUnneededTime, w.Policy.UnneededFor)), decision.RuleUnneeded
}

// MayGo is when a node that has not been needed since a moment may go for that.
func (w *Planner) MayGo(i int, since time.Time) time.Time {
	c := Candidate{Node: i, Unready: w.Nodes[i].Ready != cluster.StatusTrue, requested: Requested(w.Nodes[i].Node), since: since}
	due, _ := w.DueOf(&c)
	return due
}

// Cooldown says why no node is marked in this round. It is worked out when it is first asked for, and costs N.
func (w *Planner) Cooldown() (rule, why string) {
	if !w.paused {
		w.paused = true
		w.pause.Rule, w.pause.Why = w.cooldown()
	}
	return w.pause.Rule, w.pause.Why
}

func (w *Planner) cooldown() (rule, why string) {
	if !w.Policy.ScaleDown {
		return decision.RuleCooldown, "scale-down is switched off (AUTOSCALER_SCALING_SCALE_DOWN)"
	}
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
		c := w.candidate(i)
		if c.heldBy.Rule != "" {
			w.HeldWhy("node", string(n.Name), c.heldBy.Rule, c.heldBy.Why)
		}
		if rule, why := w.objection(ownChecks, &c); rule != "" {
			w.HeldWhy("node", string(n.Name), rule, why)
			if since, runs := w.Memory.Unneeded[n.Name]; runs && rule == decision.RuleInUse && n.OnlyRelocated {
				// The scheduler may put the moved pods elsewhere; if it does not, the
				// node's use will show.
				round.Set(&w.Next.Unneeded, n.Name, since)
			}
			continue
		}
		plan := w.podsToDrain(n)
		c.nonEmpty, c.completes, c.turn = min(plan.Movable, 1), min(len(plan.Completing), 1), c.turnOf()
		if c.replaced() {
			c.untried = w.Disruption.Untried(i)
		}
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
	return cmp.Or(boolInt(b.requested)-boolInt(a.requested), a.turn-b.turn, a.completes-b.completes, a.nonEmpty-b.nonEmpty, b.untried-a.untried, a.below-b.below, a.waits-b.waits, a.looked-b.looked,
		a.since.Compare(b.since), cmp.Compare(a.util, b.util), a.Node-b.Node)
}

// unneeded tells whether a candidate's pods have room elsewhere, beside those of the
// candidates before it, and then keeps its timer. It notes what there is to drain.
func (w *Planner) unneeded(c *Candidate) bool {
	n := &w.Nodes[c.Node]
	name := string(n.Name)
	_, runs := w.Memory.Unneeded[n.Name]
	c.drains = w.DrainPlanOf(n) // budgets may have been used up by the candidates before it
	rule, why := w.objection(moveChecks, c)
	switch {
	case rule == decision.RuleCompletion:
		w.awaitCompletion(c, why)
		return false
	case c.replaced() && (rule == decision.RuleAtMin || rule == decision.RuleTotalsMin) && len(c.drains.Completing) == 0:
		w.order(c, why, true)
		return false
	case rule != "":
		w.HeldWhy("node", name, rule, why)
		if rule == decision.RuleInUse && runs || rule == decision.RuleBlocked && w.budgetAlone(c, runs) {
			round.Set(&w.Next.Unneeded, n.Name, c.since)
		}
		return false
	}
	r := w.relocate(c.Node, c.drains.Classes, c.keepsDomains())
	switch {
	case r.Rule == "":
	case w.spent():
		w.HeldWhy("node", name, decision.RuleNoRoom, "not looked at: this round has looked for room for enough pods, and the next one begins with this node")
		w.Next.Unlooked = append(w.Next.Unlooked, n.Name)
		if runs {
			round.Set(&w.Next.Unneeded, n.Name, c.since)
		}
		return false
	case r.Rule == decision.RuleNoRoom && c.replaced():
		w.order(c, r.Why, false)
		return false
	default:
		w.HeldWhy("node", name, r.Rule, r.Why)
		return false
	}
	c.late = r.late
	n.Removing = true
	w.groupOf(c).Removing++
	w.CountRemoval(n)
	for _, pod := range c.drains.Budgeted {
		w.spend(pod)
	}
	round.Set(&w.Next.Unneeded, n.Name, c.since)
	return true
}

// awaitCompletion lets the time of a node run that would go, if pods on it did not run to their end: it goes when they
// have ended. Until then it takes pods as before (its soft taint lets kube-scheduler prefer others), and no other node counts
// on its going.
func (w *Planner) awaitCompletion(c *Candidate, why string) {
	n := &w.Nodes[c.Node]
	if r := w.Relocation(c.Node, c.drains.Classes, !c.Unready); r.Rule != "" && !w.spent() {
		w.HeldWhy("node", string(n.Name), r.Rule, r.Why)
		return
	}
	round.Set(&w.Next.Unneeded, n.Name, c.since)
	w.Held("node", string(n.Name), decision.RuleCompletion, "not needed, and waits: %s", why)
}

// noteMarked notes a node that is marked in this round, and whose pods wait for its Node object.
func (w *Planner) noteMarked(c *Candidate) {
	w.lateClasses()
	w.marked = append(w.marked, c.Node)
	for _, l := range c.late {
		w.late = append(w.late, int(l.Class))
	}
}

// budgetAlone tells a node whose time runs on because only a budget keeps it: one that the
// candidates before it have used up in this round, or that is used up for now. Else
// twenty nodes under a budget of one would go one unneeded time after the other. A
// budget that never allowed anything starts no timer.
func (w *Planner) budgetAlone(c *Candidate, runs bool) bool {
	for _, pod := range c.drains.Budgeted {
		for _, b := range pod.Budgets {
			runs = runs || w.Budget[b] < 1 && w.allowedAtFirst(b)
		}
	}
	return len(c.drains.Hard) == 0 && runs && (w.CanRelocate(c.Node, c.drains.Classes) || w.spent())
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

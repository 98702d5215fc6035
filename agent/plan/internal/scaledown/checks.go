package scaledown

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// This file lists what keeps a node, in the order in which Decide asks. Decide stops at the first check that objects, and its
// words are the reason that is held; Checks asks all of them for explain.

// check is one condition for a node to go. keeps says why it does not hold, and takes nothing.
type check struct {
	rule  string
	holds string                                // what explain says where it holds; empty: nothing
	found func(w *Planner, c *Candidate) string // in place of holds, with numbers
	keeps func(w *Planner, c *Candidate) (why string)
	rules func(w *Planner, c *Candidate) (rule, why string) // in place of keeps, for a check by several rules
}

func (k *check) ask(w *Planner, c *Candidate) (rule, why string) {
	if k.rules != nil {
		return k.rules(w, c)
	}
	if why = k.keeps(w, c); why != "" {
		rule = k.rule
	}
	return rule, why
}

// ownChecks choose the candidates, by the node itself.
var ownChecks = []check{
	{rule: decision.RuleInstance, holds: "its instance runs and is a member of its group", keeps: func(w *Planner, c *Candidate) string {
		in := w.Nodes[c.Node].Instance
		if in.Phase != cluster.PhaseRunning || !in.Member {
			return fmt.Sprintf("its instance %s is %q or no member of its group", in.ID, in.Phase)
		}
		_, told := w.Next.Deleted[in.ID]
		return when(told, "its instance was told to go")
	}},
	{rule: decision.RuleOptOut, holds: "no annotation opts it out", keeps: func(w *Planner, c *Candidate) string { return w.OptOutNow(w.Nodes[c.Node].Node) }},
	{rule: decision.RuleUnready, keeps: func(w *Planner, c *Candidate) string {
		return when(c.Unready && !c.asked() && !w.Policy.ScaleDownUnready, "it is not Ready, and such nodes are kept (AUTOSCALER_SCALING_SCALE_DOWN_UNREADY)")
	}},
	{rule: decision.RuleNotOurs, holds: "nobody else has cordoned it", keeps: func(w *Planner, c *Candidate) string {
		n := &w.Nodes[c.Node]
		return when(n.Unschedulable && !n.Facts.CordonedByUs, "cordoned by somebody else")
	}},
	inUse,
	{rule: decision.RuleHalted, keeps: func(w *Planner, c *Candidate) string {
		return unasked(c, func() string { return w.Disruption.StaysForHalt(&w.Nodes[c.Node]) })
	}},
	{rule: decision.RuleBusy, found: func(w *Planner, c *Candidate) string {
		if limit := w.Threshold(&w.Nodes[c.Node]); c.util <= limit {
			return fmt.Sprintf("it is used little enough: utilisation %s, at most %s", percent(c.util), percent(limit))
		}
		return fmt.Sprintf("its utilisation of %s does not keep it: it is not Ready, or is to go for another reason", percent(c.util))
	}, keeps: func(w *Planner, c *Candidate) string {
		if limit := w.Threshold(&w.Nodes[c.Node]); !c.Unready && c.util > limit && !c.asked() {
			return w.cache.busyWords(c.util, limit)
		}
		return ""
	}},
	{rule: decision.RuleInUse, keeps: func(w *Planner, c *Candidate) string {
		return unasked(c, func() string { return w.Disruption.StaysFor(c.Node) })
	}},
	{rule: decision.RuleCanary, keeps: func(w *Planner, c *Candidate) string {
		return unasked(c, func() string { return w.Disruption.Unproven(&w.Nodes[c.Node]) })
	}},
}

var inUse = check{rule: decision.RuleInUse, holds: "no pod that is to come counts on it", keeps: func(w *Planner, c *Candidate) string {
	n := &w.Nodes[c.Node]
	if n.OnlyRelocated {
		return "pods of another node that goes count on it"
	}
	return when(n.InUse, "pods that are to come count on it")
}}

// moveChecks tell whether a candidate is needed, room aside. The candidates before it may have used up what they ask about.
var moveChecks = []check{
	{rule: decision.RuleBlocked, holds: "every pod on it may be evicted", keeps: func(w *Planner, c *Candidate) string {
		return when(!(c.replaced() && w.Disruption.Forces() && len(c.drains.Hard) == 0), strings.Join(c.drains.Blocked, "; "))
	}},
	{rule: inUse.rule, keeps: inUse.keeps},
	{rule: decision.RuleAtMin, found: func(w *Planner, c *Candidate) string {
		g := w.groupOf(c)
		return fmt.Sprintf("its group has more machines than its minimum: %d, at least %d", g.CorrectedTarget-g.Removing, g.Min)
	}, keeps: func(w *Planner, c *Candidate) string { return atMinimum(w.groupOf(c)) }},
	{rule: decision.RuleTotalsMin, holds: "the cluster has more than its least cores, memory and extended resources", keeps: func(w *Planner, c *Candidate) string {
		return growth.KeepsTotals(w.State, &w.Nodes[c.Node])
	}},
	{rule: decision.RuleCompletion, keeps: func(_ *Planner, c *Candidate) string {
		if len(c.drains.Completing) == 0 || c.requested {
			return ""
		}
		return completionWords(c.drains.Completing)
	}},
}

// roomCheck is asked of a node that nothing else keeps. Decide asks relocate, which gives the same answer and takes the room.
var roomCheck = check{rule: decision.RuleNoRoom, holds: "its pods have room elsewhere", rules: func(w *Planner, c *Candidate) (rule, why string) {
	r := w.Relocation(c.Node, c.drains.Classes, c.keepsDomains())
	c.late = r.late
	return r.Rule, r.Why
}}

// roundChecks tell whether a node goes in this round that is not needed.
var roundChecks = []check{
	{rule: decision.RuleUnneededFor, holds: "its time is over", keeps: func(w *Planner, c *Candidate) string {
		due, _ := w.DueOf(c)
		if w.Reached(due) {
			return ""
		}
		w.WakeAt(due)
		return w.Nodes[c.Node].Facts.DueWords(due)
	}},
	{rule: decision.RuleCooldown, holds: "no pause after a scale-up or a failure", rules: func(w *Planner, c *Candidate) (rule, why string) {
		if rule, why = w.Cooldown(); rule == decision.RuleCooldown && c.asked() && w.Policy.ScaleDown {
			return "", ""
		}
		return rule, why
	}},
	{rule: decision.RuleBreaker, keeps: func(w *Planner, c *Candidate) string {
		return unasked(c, func() string { return w.Disruption.Breaker(c.Node) })
	}},
	{rule: decision.RuleDisruption, keeps: func(w *Planner, c *Candidate) string {
		if c.replaced() { // heldBack has asked
			return ""
		}
		return w.Disruption.Full(c.Node, c.reason())
	}},
	{rules: func(w *Planner, c *Candidate) (rule, why string) { return w.DeletionsFrozen(w.groupOf(c)) }},
	{rule: decision.RuleBatch, keeps: (*Planner).waitsInTurn},
	batch,
}

var batch = check{rule: decision.RuleBatch, keeps: func(w *Planner, c *Candidate) string {
	if limit, full := w.removals.full(&c.drains, w.Policy); full {
		return fmt.Sprintf("%d nodes go at once", limit)
	}
	return ""
}}

// unasked is why a node stays that nobody asked to go.
func unasked(c *Candidate, why func() string) string {
	if c.asked() {
		return ""
	}
	return why()
}

func atMinimum(g *round.Group) string {
	if g.CorrectedTarget-g.Removing <= g.Min {
		return fmt.Sprintf("the group is at its minimum of %d", g.Min)
	}
	return ""
}

// objection is the first check of a list that does not hold; empty: all hold.
func (w *Planner) objection(list []check, c *Candidate) (rule, why string) {
	for i := 0; i < len(list) && rule == ""; i++ {
		rule, why = list[i].ask(w, c)
	}
	return rule, why
}

// Checks tells what each condition for a node to go finds, beyond the first that does not hold, too.
func (w *Planner) Checks(i int) (out []decision.Check) {
	c := w.candidate(i)
	c.drains, c.since = w.DrainPlanOf(&w.Nodes[i]), w.Memory.Unneeded[w.Nodes[i].Name]
	add := func(rule, why, id, holds string) {
		line := decision.Check{Rule: rule, Why: why}
		if rule == "" {
			line = decision.Check{Rule: id, OK: true, Why: holds}
		}
		if line.Why != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	if why := w.Disruption.Reason(i); why.Rule != "" {
		add("", "", why.Rule, why.Why+": it is to be replaced")
		add(c.heldBy.Rule, c.heldBy.Why, decision.RuleDisruption, "the disruption budgets let it go")
	}
	for _, k := range slices.Concat(ownChecks, moveChecks, []check{roomCheck}, roundChecks) {
		rule, why := k.ask(w, &c)
		holds := k.holds
		if k.found != nil {
			holds = k.found(w, &c)
		}
		add(rule, why, k.rule, holds)
	}
	return out
}

// KeepsAll lists what keeps all nodes of a group.
func (w *Planner) KeepsAll(g *round.Group) (out []decision.Verdict) {
	if why := atMinimum(g); why != "" {
		out = append(out, decision.Verdict{Rule: decision.RuleAtMin, Why: why})
	}
	for _, ask := range []func(*round.Group) (rule, why string){func(*round.Group) (rule, why string) { return w.Cooldown() }, w.DeletionsFrozen} {
		if rule, why := ask(g); rule != "" {
			out = append(out, decision.Verdict{Rule: rule, Why: why})
		}
	}
	return out
}

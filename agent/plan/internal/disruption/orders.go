package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// emptyFirst is a value of Policy.ReplaceAtMax.
const emptyFirst = "empty-first"

// due is when a machine that was ordered in place of a node is no longer waited for.
func (r *Round) due(x *decision.Replacement) time.Time {
	o := cluster.Options{}
	if g, ok := r.ByID[x.Group]; ok {
		o = r.Groups[g].Options
	}
	return x.Ordered.Add(round.OrElse(o.MaxNodeProvisionTime, r.Policy.MaxNodeProvisionTime) + round.OrElse(o.MaxNodeStartupTime, r.Policy.MaxNodeStartupTime))
}

// carryReplacements keeps the orders of nodes that still are to be replaced, and of those of which the cloud does not tell the
// instance now: a half answer takes no order back.
func (r *Round) carryReplacements() {
	for _, x := range r.Memory.Replacements {
		if i, is := r.ByName[x.Node]; is && r.stands(&x, i) {
			r.Next.Replacements = append(r.Next.Replacements, x)
		}
	}
}

// stands tells whether an order still is for its node.
func (r *Round) stands(x *decision.Replacement, i int) bool {
	n := &r.Nodes[i]
	if n.Group >= 0 {
		if _, told := r.Next.Deleted[n.Instance.ID]; told {
			return false
		}
	}
	if x.Rule == decision.RuleConsolidate {
		return r.dearStands(x, i)
	}
	at, known := r.ByID[x.Group]
	if !known || r.Reached(r.due(x).Add(r.Patience(&r.Groups[at]))) { // enough time passes before the agent tries once more
		return false
	}
	return n.Group < 0 || n.Group == at && r.Reason(i).Rule != ""
}

// order is the machine that was ordered in place of a node; nil: none.
func (r *Round) order(name cluster.NodeName) *decision.Replacement {
	i, ok := slices.BinarySearchFunc(r.Next.Replacements, name, func(x decision.Replacement, name cluster.NodeName) int {
		return strings.Compare(string(x.Node), string(name))
	})
	if !ok {
		return nil
	}
	return &r.Next.Replacements[i]
}

// Ordered tells whether a machine was ordered in place of a node.
func (r *Round) Ordered(i int) bool { return r.order(r.Nodes[i].Name) != nil }

// arrived is how many machines of the group are Ready that came after an order. It costs the nodes of the group.
func (r *Round) arrived(x *decision.Replacement) (n int) {
	g, known := r.ByID[x.Group]
	if !known {
		return 0
	}
	for _, i := range r.groups[g].members {
		if o := &r.Nodes[i]; o.State == round.StateReady && cameAfter(o, x) {
			n++
		}
	}
	return n
}

// cameAfter tells a node that joined after an order. The API server tells whole seconds.
func cameAfter(n *round.Node, x *decision.Replacement) bool {
	return !n.Created.Before(x.Ordered.Truncate(time.Second))
}

// CameFor says in place of which node a machine has come, which is not idle for that; empty: of none. It costs the orders.
func (r *Round) CameFor(n *round.Node) string {
	for i := range r.Next.Replacements {
		if x := &r.Next.Replacements[i]; cameAfter(n, x) && x.Group == r.Groups[n.Group].ID && x.Node != n.Name {
			return fmt.Sprintf("it has come in place of node %s", x.Node)
		}
	}
	return ""
}

// Order orders a machine in place of a node whose pods have no room for the reason that is told, or says what it waits for.
// It tells a node that is emptied first, because its group is at its maximum.
func (r *Round) Order(i int, why string) (emptyFirst bool) {
	n := &r.Nodes[i]
	g := &r.Groups[n.Group]
	held := func(format string, args ...any) {
		r.Held("node", string(n.Name), decision.RuleReplace, "%s", r.Reason(i).Why+"; "+fmt.Sprintf(format, args...))
	}
	if x := r.order(n.Name); x != nil {
		due := r.due(x)
		r.WakeAt(due)
		switch {
		case x.Rule == decision.RuleConsolidate:
			held("%s", why)
		case r.Reached(due):
			held("the machine that was ordered in its place at %s did not help (%s); another one may be ordered at %s", round.Stamp(x.Ordered), why, round.Stamp(due.Add(r.Patience(g))))
		case r.arrived(x) > 0:
			held("the machine that was ordered in its place at %s has come, and %s", round.Stamp(x.Ordered), why)
		default:
			held("it waits for the machine that was ordered in its place at %s", round.Stamp(x.Ordered))
		}
		return false
	}
	if halted := r.Halted(n.Group); halted != "" {
		held("%s, and no machine is ordered in its place while the rollout of its group is halted", why)
		return false
	}
	if free := r.unclaimed(n.Group); free > 0 {
		held("it waits for a machine of its group that is coming (%s)", why)
		return false
	}
	if limit := growth.Of(r.State, g, 1); limit.Count < 1 {
		if g.Grow == 0 && r.EmptiesFirst(n) {
			return true
		}
		held("%s, and no machine can be ordered in its place: the group is held or full [%s] %s", why, limit.Rule, limit.Why)
		return false
	}
	if g.Shrinks {
		held("%s, and a machine is ordered in its place when no other change of the group is under way", why)
		r.WakeAt(r.Now.Add(time.Second))
		return false
	}
	held("%s: a machine is ordered in its place", why)
	g.Grow++
	own := &r.groups[n.Group]
	own.ordered = append(own.ordered, string(n.Name))
	r.Next.Replacements = append(r.Next.Replacements, decision.Replacement{Node: n.Name, Group: g.ID, Rule: r.Reason(i).Rule, Ordered: r.Now})
	r.sortReplacements()
	r.Add(i)
	return false
}

// EmptiesFirst tells a node that is emptied although its pods have no room, because no limit but the maximum of its group, or of
// the cluster, keeps a machine from being ordered in its place, and the operator wants it so.
func (r *Round) EmptiesFirst(n *round.Node) bool {
	g := &r.Groups[n.Group]
	limit := growth.Of(r.State, g, 1)
	return r.Policy.ReplaceAtMax == emptyFirst && (limit.Rule == decision.RuleMax || limit.Rule == decision.RuleTotals) && g.CorrectedTarget > g.Min
}

// Cordoned notes that a node is cordoned. Where it has no order and another node of its group has one whose machine has
// come, the room that it found is that machine's: the order is its own from now on, and the other node may get another one.
func (r *Round) Cordoned(i int) {
	n := &r.Nodes[i]
	if r.Add(i); r.Reason(i).Rule == "" || r.order(n.Name) != nil {
		return
	}
	for k := range r.Next.Replacements {
		if x := &r.Next.Replacements[k]; x.Rule != decision.RuleConsolidate && x.Group == r.Groups[n.Group].ID && r.arrived(x) > 0 && r.Nodes[r.ByName[x.Node]].State != round.StateMarked {
			x.Node, x.Rule = n.Name, r.Reason(i).Rule
			r.sortReplacements()
			return
		}
	}
}

func (r *Round) sortReplacements() {
	slices.SortFunc(r.Next.Replacements, func(a, b decision.Replacement) int { return strings.Compare(string(a.Node), string(b.Node)) })
}

// unclaimed is how many machines of a group are coming that were ordered in place of no node that is known. After a
// restart one of them may be for a node that is to go.
func (r *Round) unclaimed(g int) int {
	coming := r.Groups[g].Upcoming + r.Groups[g].Grow
	for _, i := range r.groups[g].members {
		if r.Nodes[i].State == round.StateUpcoming {
			coming++
		}
	}
	for k := range r.Next.Replacements {
		if x := &r.Next.Replacements[k]; x.Group == r.Groups[g].ID {
			coming -= max(r.wanted(x)-r.arrived(x), 0)
		}
	}
	return coming
}

// Grow asks for the machines that the round has ordered, in one change for each group.
func (r *Round) Grow() {
	for k := range r.groups {
		g, names := &r.Groups[k], r.groups[k].ordered
		if len(names) == 0 {
			continue
		}
		g.Bought, r.Grew = true, true
		slices.Sort(names)
		why := "in place of " + strings.Join(names, ", ")
		if len(names) == 1 {
			why += ": " + r.Reason(r.ByName[cluster.NodeName(names[0])]).Why
		}
		r.WakeAt(r.Now.Add(time.Second))
		r.Act(decision.Grow{Group: g.ID, From: g.CorrectedTarget, To: g.Size + g.Grow, Rule: decision.RuleReplace, Why: why})
	}
}

// GivenUp tells a node that is left alone for a while.
func (r *Round) GivenUp(name cluster.NodeName) bool { _, is := r.Next.GivenUp[name]; return is }

// GiveUp notes that the drain of a node, or its replacement, was given up.
func (r *Round) GiveUp(name cluster.NodeName) { round.Set(&r.Next.GivenUp, name, r.Now) }

// Forces tells that the drain of a node that is replaced is not waited for beyond its time. Then a budget that allows no
// disruption does not keep such a node from being cordoned; what else blocks its drain does.
func (r *Round) Forces() bool { return r.Policy.ReplaceDrainOverdue == "force" }

// Forced ends a machine with the pods that are left on it, because its drain did not end in its time.
func (r *Round) Forced(pods int, deadline time.Time) decision.Terminate {
	return decision.Terminate{Forced: true, Rule: decision.RuleForced, Why: fmt.Sprintf("%s did not leave by %s, and end with the machine (AUTOSCALER_SCALING_REPLACE_DRAIN_OVERDUE=force)", round.Pods(pods), round.Stamp(deadline))}
}

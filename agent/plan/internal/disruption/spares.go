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

// startTime is how long a machine of a group may take until it can be used.
func (r *Round) startTime(g *cluster.Options) time.Duration {
	return round.OrElse(g.MaxNodeProvisionTime, r.Policy.MaxNodeProvisionTime) + round.OrElse(g.MaxNodeStartupTime, r.Policy.MaxNodeStartupTime)
}

// young tells a node that joined so short a time ago that it may be the spare machine of nodes that are to be replaced.
func (r *Round) young(n *round.Node) bool {
	return !r.Reached(n.Created.Add(r.startTime(&r.Groups[n.Group].Options)))
}

// empty tells a machine that could take the pods of a node that is replaced: it is Ready, and no pod is on it or counts on it.
func (r *Round) empty(i int) bool { return r.Nodes[i].State == round.StateReady && r.unused(i) }

func (r *Round) unused(i int) bool {
	n := &r.Nodes[i]
	return !n.Unschedulable && !n.InUse && len(r.working(n)) == 0 && r.Reason(i).Rule == ""
}

// spareMachines are the machines of a group that have come or are coming; one whose Node was deleted takes the place of one until it
// ends. idle tells that a machine has come long ago, and has still no pod: room on it is no help to the nodes that wait.
func (r *Round) spareMachines(g int) (coming, come int, idle bool) {
	coming = r.Groups[g].Upcoming + r.Groups[g].Lost + r.Groups[g].Grow
	for _, i := range r.groups[g].members {
		switch n := &r.Nodes[i]; {
		case n.State == round.StateUpcoming || n.State == round.StateOut && unready(n) && !n.Deleting && !r.toldToGo(n) && r.young(n) && r.unused(i):
			coming++ // also where it is not Ready for a moment
		case !r.empty(i) || n.Removing:
		case r.young(n):
			come++
		default:
			idle = true
		}
	}
	return coming, come, idle
}

// StaysFor says for what a machine is kept that nothing needs now; empty: for nothing. A young one without pods is room for the node that goes
// next. While nodes of its group are being drained for the present source, a machine of that source is kept whatever it holds: pods that
// came to it from several nodes may use little of it, and another one would be bought in its place.
func (r *Round) StaysFor(i int) string {
	n := &r.Nodes[i]
	if c := r.Next.Consolidation; c.UnderWay() && c.Group == r.Groups[n.Group].ID && r.young(n) && !c.Has(n.Name) {
		return "it has come for a consolidation: " + c.Words()
	}
	g := &r.groups[n.Group]
	spare := g.replaces() && r.young(n) && len(r.working(n)) == 0
	if rule, _ := r.suspended(n.Group); rule != "" || r.Halted(n.Group) != "" || !spare && !(g.rollout.going && r.fresh(n)) {
		return ""
	}
	what := "it has just come"
	if !spare {
		what = "nodes of its group are being drained for its source"
	}
	for _, k := range g.members {
		if k != i && r.Reason(k).Rule != "" && r.Nodes[k].State != round.StateMarked && !r.GivenUp(r.Nodes[k].Name) {
			return what + ", and node " + string(r.Nodes[k].Name) + " of its group is to be replaced"
		}
	}
	return ""
}

// Order asks for a spare machine for a node whose pods have no room for the reason that is told, unless one has come or is coming, or
// says what it waits for. holds tells whether a new machine of the group would have room for the pods; nil: they have room, and the
// group is at its minimum. It tells a node that is emptied first, because its group is at its maximum.
func (r *Round) Order(i int, why string, holds func() bool) (emptyFirst bool) {
	n := &r.Nodes[i]
	g, own := &r.Groups[n.Group], &r.groups[n.Group]
	held := func(format string, args ...any) {
		r.Held("node", string(n.Name), decision.RuleReplace, "%s", r.Reason(i).Why+"; "+fmt.Sprintf(format, args...))
	}
	if r.dear(n.Name) {
		held("%s", why)
		return false
	}
	if halted := r.Halted(n.Group); halted != "" {
		held("%s, and no machine is ordered in its place while the rollout of its group is halted", why)
		return false
	}
	coming, come, idle := r.spareMachines(n.Group)
	if own.wait++; own.wait <= coming+come {
		own.waiting = append(own.waiting, i)
		if lost := r.Groups[n.Group].Lost; lost > 0 && coming == lost {
			held("it waits for a machine of its group whose Node was deleted: until it is a Node again, or has ended (%s)", why)
		} else if coming > 0 {
			held("it waits for a machine of its group that is coming (%s)", why)
		} else {
			held("a machine of its group has come, and %s", why)
		}
		return false
	}
	if idle && holds != nil { // another one would help no more
		r.GiveUp(n.Name)
		held("machines of its group are empty, and %s: it is tried again at %s", why, round.Stamp(r.Now.Add(givenUpFor)))
		return false
	}
	if holds != nil && !holds() {
		own.wait--
		held("%s, and a new machine of its group would not have room for its pods either", why)
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
	own.waiting, own.ordered = append(own.waiting, i), append(own.ordered, string(n.Name))
	return false
}

// Waits tells a node for which a spare machine is coming, has come, or is ordered in this round.
func (r *Round) Waits(i int) bool {
	g := r.Nodes[i].Group
	return g >= 0 && slices.Contains(r.groups[g].waiting, i)
}

// EmptiesFirst tells a node that is emptied although its pods have no room, because no limit but the maximum of its group, or of
// the cluster, keeps a machine from being ordered in its place, and the operator wants it so.
func (r *Round) EmptiesFirst(n *round.Node) bool {
	g := &r.Groups[n.Group]
	limit := growth.Of(r.State, g, 1)
	return r.Policy.ReplaceAtMax == emptyFirst && (limit.Rule == decision.RuleMax || limit.Rule == decision.RuleTotals) && g.CorrectedTarget > g.Min
}

// Grow asks for the machines that are missing, in one change for each group.
func (r *Round) Grow() {
	dear := r.orderDear()
	for k := range r.groups {
		g, names := &r.Groups[k], r.groups[k].ordered
		if len(names) == 0 && k != dear {
			continue
		}
		g.Bought, r.Grew = true, true
		slices.Sort(names)
		rule, why := decision.RuleReplace, "in place of "+strings.Join(names, ", ")
		switch len(names) {
		case 0:
			rule, why = decision.RuleConsolidate, r.Next.Consolidation.Words()
		case 1:
			why += ": " + r.Reason(r.ByName[cluster.NodeName(names[0])]).Why
		}
		r.WakeAt(r.Now.Add(time.Second))
		r.Act(decision.Grow{Group: g.ID, From: g.CorrectedTarget, To: g.Size + g.Grow, Rule: rule, Why: why})
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

package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A node that is sick, drifted or expired goes as any other: the same relocation, the same drain. What package disruption adds is
// the reason, what holds it for now, and a machine in its place where its pods have no room. The node is cordoned
// when that machine is Ready and has started, because only then is there room for its pods.

// order is a node in whose place a machine is ordered, and why it cannot go as it is.
type order struct {
	node  int
	why   string
	atMin bool // that is all, and its pods may have room
}

// turnOf is the place of a node among those that are replaced, by reason; the others come after them.
func (c *Candidate) turnOf() int {
	if !c.replaced() {
		return len(cluster.Reasons)
	}
	return slices.Index(cluster.Reasons, c.why.Name)
}

// reason is the name by which budgets know why a node goes.
func (c *Candidate) reason() string {
	switch {
	case c.replaced():
		return c.why.Name
	case c.requested:
		return cluster.ReasonRequested
	}
	return cluster.ReasonIdle
}

// order notes that a machine is wanted in place of a node. From then on the node counts as one that goes.
func (w *Planner) order(c *Candidate, why string, atMin bool) {
	w.orders = append(w.orders, order{c.Node, why, atMin})
	w.Disruption.Add(c.Node)
}

// orderReplacements orders machines in place of nodes, unless nothing goes now. It costs podsFit for each
// machine that is ordered.
func (w *Planner) orderReplacements() {
	for _, o := range w.orders {
		n := &w.Nodes[o.node]
		g := &w.Groups[n.Group]
		rule, why := w.Cooldown()
		holds := func() bool { return w.newMachineHolds(o.node) }
		if o.atMin {
			holds = nil
		}
		if rule == "" || rule == decision.RuleCooldown {
			rule, why = w.DeletionsFrozen(g)
		}
		switch {
		case rule != "":
			w.Held("node", string(n.Name), rule, "%s; it stays: %s", w.Disruption.Reason(o.node).Why, why)
		case w.Disruption.Order(o.node, o.why, holds):
			c := &Candidate{Node: o.node, why: w.Disruption.Reason(o.node), util: w.Utilisation(n), drains: w.DrainPlanOf(n)}
			if rule, why := batch.ask(w, c); rule != "" {
				w.Held("node", string(n.Name), rule, "it waits: %s", why)
				continue
			}
			w.removals.add(&c.drains)
			w.cordonNode(c)
		}
	}
	w.Disruption.Grow()
}

// newMachineHolds tells whether a node's pods have room elsewhere with one more machine of its group. Pods whose place
// depends on other pods or on a volume are believed to have: they are judged when the machine is there.
func (w *Planner) newMachineHolds(node int) bool {
	n := &w.Nodes[node]
	if slices.ContainsFunc(w.DrainPlanOf(n).Classes, func(l round.ClassCount) bool { return w.onBoard().constrained(l.Class) }) {
		return true
	}
	a, ok := w.podsFit([]int{node}, &w.Groups[n.Group], 1)
	w.board.Rollback(a.mark)
	return ok
}

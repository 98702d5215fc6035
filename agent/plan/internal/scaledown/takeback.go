package scaledown

import (
	"fmt"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// takeBack takes our mark from a node whose drain is not to go on or cannot, and tells whether it did. After a drain that cannot go on
// scale-down waits, because the next one may fail alike; a drain that somebody called off says nothing of the next one.
func (w *Planner) takeBack(i int, g *round.Group, c *round.DrainPlan, deadline time.Time) bool {
	n := &w.Nodes[i]
	by := markedBy(n.Node)
	why := w.calledOff(i, g)
	if why == "" {
		if why = w.failed(i, c, deadline); why == "" {
			w.WakeAt(deadline)
			return false
		}
		w.Postpone(w.Now.Add(w.Policy.DelayAfterFailure))
	}
	n.Removing = false
	delete(w.Next.Draining, n.Name)
	if by == decision.RuleConsolidate || disruption.Replaces(by) && w.Reached(deadline) {
		w.Disruption.GiveUp(n.Name)
	}
	w.Act(decision.Uncordon{Node: n.Name, UID: n.UID, Rule: decision.RuleTookBack, Why: why})
	w.Held("node", string(n.Name), decision.RuleTookBack, "stays: %s", why)
	return true
}

// calledOff says why the operator, the cloud, or the reason of its removal asks no more that a node goes; empty: it is to go.
func (w *Planner) calledOff(i int, g *round.Group) string {
	n := &w.Nodes[i]
	by := markedBy(n.Node)
	switch why := w.Disruption.TakenBack(n.Group, by); {
	case why != "":
		return why
	case by == decision.RuleInterrupted:
		return "the cloud does not say any more that it ends the machine"
	case !w.Policy.ScaleDown:
		return "scale-down is switched off"
	case w.OptOutNow(n.Node) != "":
		return w.OptOutNow(n.Node)
	case by == decision.RuleRequested && !Requested(n.Node):
		return "the annotation " + cluster.AnnotationRequested + " is gone"
	case atMinimum(g) != "":
		return atMinimum(g)
	}
	return ""
}

// failed says why the pods of a node cannot leave it, or why they need it; empty: the drain goes on. A launch template that is switched back and
// forth counts as well: each switch would otherwise order machines at once.
func (w *Planner) failed(i int, c *round.DrainPlan, deadline time.Time) string {
	n := &w.Nodes[i]
	replaced := disruption.Replaces(markedBy(n.Node))
	emptied := replaced && w.Disruption.EmptiesFirst(n)
	switch {
	case replaced && w.Disruption.Reason(i).Rule == "":
		return "nothing asks for its replacement any more"
	case n.InUse && !emptied:
		return "pending pods need it"
	case len(c.Completing) > 0 && !Requested(n.Node):
		return completionWords(c.Completing)
	case len(c.Hard) > 0:
		return strings.Join(c.Hard, "; ")
	case c.Movable+c.Terminating > 0 && w.Reached(deadline) && !(replaced && w.Disruption.Forces()):
		return fmt.Sprintf("%s did not leave by %s", round.Pods(c.Movable+c.Terminating), round.Stamp(deadline))
	}
	if r := w.relocate(i, c.Classes, false); !emptied {
		return r.Why
	}
	return ""
}

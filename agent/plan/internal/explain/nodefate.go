package explain

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// fate says whether a node stays, goes or waits, and why. It follows from the actions of the plan, from the mark on
// the node and from the state of its machine, and not from the rules of verdicts: a list of
// rules that remove nodes misses the next rule (issue 39: a node that was replaced "stays").
type fate int

const (
	remaining fate = iota
	removed        // this round takes a step to remove it, or an earlier one did and nothing takes that back
	replaced       // the agent has ordered machines in its place, and removes it when these are Ready
	notOurs        // somebody else removes it, or it has no group of the agent's
	starting       // it is on its way to Ready
	vanishing      // its Node object is being deleted
)

// fateOf returns the fate of a node. An action of this round outranks what it found.
func (e *explainer) fateOf(n *round.Node) fate {
	for _, a := range e.plan.Actions {
		switch a := a.(type) {
		case decision.Uncordon:
			if a.Node == n.Name {
				return remaining
			}
		case decision.Cordon:
			if a.Node == n.Name {
				return removed
			}
		case decision.Evict:
			if a.Node == n.Name && !n.ControlPlane {
				return removed
			}
		case decision.Terminate:
			if a.Node == n.Name {
				return removed
			}
		}
	}
	switch {
	case n.ControlPlane:
		return remaining
	case round.ToBeDeleted(n.Node) && !round.CordonedByUs(n.Node):
		return notOurs
	case round.ToBeDeleted(n.Node), e.machineEnds(n):
		return removed
	case n.Group < 0:
		return notOurs
	case n.Deleting:
		return vanishing
	case e.beingReplaced(n):
		return replaced
	case n.State == round.StateUpcoming && (n.Ready == cluster.StatusTrue || len(e.out.Verdicts) == 0):
		return starting
	}
	return remaining
}

// machineEnds tells whether the cloud ends the node's machine, because the agent asked for it
// or of its own accord.
func (e *explainer) machineEnds(n *round.Node) bool {
	if n.Instance == nil {
		return false
	}
	_, told := e.end.Next.Deleted[n.Instance.ID]
	return told || n.Instance.Interruption != nil || n.Instance.Phase == cluster.PhaseDeleting || n.Instance.Phase == cluster.PhaseGone
}

// beingReplaced tells whether the machines that replace the node have been ordered, or have come.
func (e *explainer) beingReplaced(n *round.Node) bool {
	return e.end.Next.Consolidation.UnderWay() && e.consolidation(n) != nil || e.end.ScaleDown.Disruption.Waits(e.end.ByName[n.Name])
}

// consolidation is the consolidation that a node is part of, or would be; nil: there is none.
func (e *explainer) consolidation(n *round.Node) *decision.Consolidation {
	if s := e.end.Next.Consolidation; s.Has(n.Name) {
		return s
	}
	return nil
}

// addReplacement adds what the round holds of the cluster about the replacement of the node.
func (e *explainer) addReplacement(n *round.Node) {
	if e.consolidation(n) == nil {
		return
	}
	for _, v := range e.out.Cluster {
		if v.Rule == decision.RuleConsolidate {
			e.out.Verdicts = append(e.out.Verdicts, v)
		}
	}
}

// nodeSummary says in one sentence what becomes of the node, and why.
func (e *explainer) nodeSummary(n *round.Node) string {
	f := e.fateOf(n)
	switch f {
	case replaced:
		switch c := e.consolidation(n); {
		case c == nil:
			return "it goes when a machine of its group has come and has room for its pods: " + e.firstWhy() + " [" + decision.RuleReplace + "]"
		case c.Machines == 0:
			return "it goes: " + c.Words() + " [" + decision.RuleConsolidate + "]"
		}
		return "it goes when the machines that replace it are Ready: " + e.consolidation(n).Words() + " [" + decision.RuleConsolidate + "]"
	case starting:
		if n.Ready == cluster.StatusTrue && len(e.out.Verdicts) > 0 {
			return "it is " + e.firstWhy()
		}
		return "it is starting: pods count on it, and it is not looked at for removal before " + e.at(n.Created.Add(e.end.Startup(n)))
	case vanishing:
		return "it is being deleted"
	case removed:
		return "it goes: " + e.whyRemoved(n)
	case notOurs:
		if n.Group < 0 {
			return "it stays: no node group of the agent's has an instance for it, so it is not the agent's to remove (its provider ID is " + orNone(n.ProviderID) + ")"
		}
		return "the agent does not remove it: " + e.firstWhy()
	}
	if n.ControlPlane {
		return "it stays: a control-plane node is never touched"
	}
	return "it stays: " + e.whyRemains(n)
}

// whyRemoved is the step of this round, or else what the node waits for, with the rule.
func (e *explainer) whyRemoved(n *round.Node) string {
	why, told := "the cloud ends its machine", false
	if len(e.out.Verdicts) > 0 {
		why = e.out.Verdicts[0].Why + " [" + e.out.Verdicts[0].Rule + "]"
		told = e.out.Verdicts[0].Rule == decision.RuleConsolidate
	}
	if s := e.consolidation(n); s != nil && !told {
		why += "; " + s.Words()
	}
	return why
}

// whyRemains is the first verdict, or else the first condition for it to go that fails, and a
// replacement that may come.
func (e *explainer) whyRemains(n *round.Node) string {
	why := e.firstWhy()
	for _, v := range e.out.Verdicts[min(1, len(e.out.Verdicts)):] {
		if v.Rule == decision.RuleConsolidate && e.consolidation(n) != nil {
			why += "; " + v.Why + " [" + v.Rule + "]"
		}
	}
	return why
}

// firstWhy is the first verdict, or else the first condition for the node to go that fails.
func (e *explainer) firstWhy() string {
	if len(e.out.Verdicts) > 0 {
		return e.out.Verdicts[0].Why
	}
	for _, c := range e.out.Node.Checks {
		if !c.OK {
			return c.Why
		}
	}
	return "nothing removes it"
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

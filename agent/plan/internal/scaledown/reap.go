package scaledown

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// ReapInstances terminates the instances that never became Nodes: on fresh facts only, none
// that may back a Node, and a bounded number at once. The bound is one for each group and
// apart from removals, since no pod moves.
func (w *Planner) ReapInstances() {
	for i := range w.Groups {
		g := &w.Groups[i]
		slices.SortFunc(g.Reapable, func(a, b round.Reapable) int { return strings.Compare(string(a.Instance.ID), string(b.Instance.ID)) })
		most := min(g.CorrectedTarget-g.Min, w.Policy.MaxEmptyAtOnce)
		for _, d := range g.Reapable {
			rule, why := w.keepsInstance(g, d.Instance)
			switch {
			case rule != "":
			case g.CorrectedTarget-g.Removing <= g.Min:
				rule, why = decision.RuleInstanceMin, fmt.Sprintf("the group is at its minimum of %d, so the cloud would not let it go: terminate it by hand", g.Min)
			case g.Removing >= most:
				rule, why = decision.RuleBatch, "enough instances go at once"
			default:
				g.Removing++
				g.Shrinks = true
				w.Act(decision.Terminate{Group: g.ID, Instance: d.Instance.ID, Rule: d.Rule, Why: d.Why})
				continue
			}
			w.Held("instance", string(d.Instance.ID), rule, "%s; it should go [%s]: %s", why, d.Rule, d.Why)
		}
	}
}

// keepsInstance says why an instance without a Node must be kept.
func (w *Planner) keepsInstance(g *round.Group, in *cluster.Instance) (rule, why string) {
	if rule, why := w.DeletionsFrozen(g); rule != "" {
		return rule, why
	}
	if g.Busy != "" {
		return decision.RuleCloudBusy, g.Busy
	}
	if n, ok := w.Identity.Claimed[in.ID]; ok {
		return decision.RuleClaimed, fmt.Sprintf("node %s may be this instance", n)
	}
	if in.Phase == cluster.PhaseFailed {
		return "", ""
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Instance == nil && !n.ControlPlane && n.ProviderID == "" && !n.Created.Before(in.Created.Add(-time.Minute)) {
			return decision.RuleClaimed, fmt.Sprintf("node %s has no provider ID and matches no instance, so it may be this one", n.Name)
		}
	}
	return "", ""
}

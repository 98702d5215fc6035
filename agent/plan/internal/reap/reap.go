// Package reap terminates the instances that never became Nodes: Instances(round.State).
//
// Layer 4. It refuses to end an instance on old facts, one that may back a Node, and one below the minimum of its group.
package reap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Instances terminates the instances that never became Nodes: on fresh facts only, none
// that may back a Node, and a bounded number at once. The bound is one for each group and
// apart from removals, since no pod moves.
func Instances(w *round.State) {
	for i := range w.Groups {
		g := &w.Groups[i]
		slices.SortFunc(g.Reapable, func(a, b round.Reapable) int { return strings.Compare(string(a.Instance.ID), string(b.Instance.ID)) })
		most := min(g.CorrectedTarget-g.Min, w.Policy.MaxEmptyAtOnce)
		for _, d := range g.Reapable {
			rule, why := keep(w, g, d.Instance)
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

// keep says why an instance without a Node must be kept.
func keep(w *round.State, g *round.Group, in *cluster.Instance) (rule, why string) {
	switch {
	case w.Snapshot.Stale != "":
		return decision.RuleStale, "the cluster's facts may be old: " + w.Snapshot.Stale
	case !w.Fresh(g):
		return decision.RuleGroupStale, "the group's facts are old"
	case w.Unhealthy != "":
		return decision.RuleUnhealthy, w.Unhealthy
	case w.Paused(g) != "":
		return decision.RuleOperator, w.Paused(g)
	case g.Keeps != "":
		return decision.RuleKeeps, g.Keeps
	case g.Busy != "":
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

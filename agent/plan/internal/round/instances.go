package round

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// reapable is an instance that ought to go without ever having been a Node.
type reapable struct {
	in   *cluster.Instance
	rule string
	why  string
}

// instanceFailed counts the failure of an instance that the cloud could not start.
func (w *State) instanceFailed(g *Group, in *cluster.Instance) {
	f := cluster.Failure{Cause: cluster.CauseOther, Text: "the cloud could not start " + string(in.ID), At: in.Created}
	if in.Failure != nil {
		f = *in.Failure
	}
	if !f.At.IsZero() {
		g.failed = append(g.failed, f)
	}
	g.reapable = append(g.reapable, reapable{in, decision.RuleNotStarted, f.Text})
}

// instanceLate counts the failure of an instance that never became a Node.
func (w *State) instanceLate(g *Group, in *cluster.Instance, due time.Time) {
	text := fmt.Sprintf("%s has not become a Node by %s; look at its console log and at the join token", in.ID, Stamp(due))
	g.failed = append(g.failed, cluster.Failure{Cause: cluster.CauseNoJoin, Text: text, At: due})
	g.reapable = append(g.reapable, reapable{in, decision.RuleNoJoin, text})
}

// ReapInstances terminates the instances that never became Nodes, on fresh facts
// only, a bounded number at once, and none that may back a Node.
func (w *State) ReapInstances() {
	for i := range w.Groups {
		g := &w.Groups[i]
		slices.SortFunc(g.reapable, func(a, b reapable) int { return strings.Compare(string(a.in.ID), string(b.in.ID)) })
		room := min(g.CorrectedTarget-g.Min, w.Policy.MaxEmptyAtOnce)
		for _, d := range g.reapable {
			rule, why := w.keepInstance(g, d.in)
			switch {
			case rule != "":
			case g.CorrectedTarget-g.Removing <= g.Min:
				rule, why = decision.RuleInstanceMin, fmt.Sprintf("the group is at its minimum of %d, so the cloud would not let it go: terminate it by hand", g.Min)
			case g.Removing >= room:
				rule, why = decision.RuleBatch, "enough instances go at once"
			default:
				g.Removing++
				g.Shrinks = true
				w.Act(decision.Terminate{Group: g.ID, Instance: d.in.ID, Rule: d.rule, Why: d.why})
				continue
			}
			w.Held("instance", string(d.in.ID), rule, "%s; it should go [%s]: %s", why, d.rule, d.why)
		}
	}
}

// keepInstance says why an instance without a Node must be kept.
func (w *State) keepInstance(g *Group, in *cluster.Instance) (rule, why string) {
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
	if n, ok := w.id.Claimed[in.ID]; ok {
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

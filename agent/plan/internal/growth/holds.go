package growth

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// hold is one reason why a group cannot be grown at all.
type hold struct {
	rule string
	why  func(w *round.State, g *round.Group) string // empty: it does not hold the group
}

// holds are asked in this order, and the first one that holds a group is its verdict. Explain
// lists all that hold it.
var holds = []hold{
	{decision.RuleBounds, func(_ *round.State, g *round.Group) string {
		return words(g.Min < 0 || g.Max < g.Min, "invalid bounds: minimum %d, maximum %d; set a maximum that is not below the minimum", g.Min, g.Max)
	}},
	{decision.RuleOperator, func(w *round.State, g *round.Group) string { return w.Paused(g) }},
	{decision.RuleGroupStale, func(_ *round.State, g *round.Group) string {
		return words(g.Stale != "", "the group's facts are old: %s", g.Stale)
	}},
	{decision.RulePaused, func(_ *round.State, g *round.Group) string { return g.Paused }},
	{decision.RuleCloudBusy, func(_ *round.State, g *round.Group) string { return g.Busy }},
	{decision.RuleTemplate, func(_ *round.State, g *round.Group) string {
		return words(g.TemplateStale != "", "what its next machine would be is old: %s", g.TemplateStale)
	}},
	{decision.RuleTemplate, func(_ *round.State, g *round.Group) string {
		return words(g.Template.Unknown != "", "template unknown: %s", g.Template.Unknown)
	}},
	{decision.RuleBackoff, ownBackoff},
	{decision.RuleQuota, quotaBackoff},
	{decision.RuleGroupHealth, unhealthy},
}

// roundHolds follow from what this round has decided before scale-up. They are asked once and
// after holds: later decisions of the round do not change the verdict.
var roundHolds = []hold{
	{decision.RuleOneWay, func(_ *round.State, g *round.Group) string {
		return words(g.Shrinks, "the group shrinks in this round")
	}},
	{decision.RuleMax, func(_ *round.State, g *round.Group) string {
		return words(g.Size >= g.Max && g.CorrectedTarget >= g.Min, "at its maximum of %d", g.Max)
	}},
}

func words(holds bool, format string, args ...any) string {
	if !holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// Judge says for every group whether it can be grown at all in this round.
func Judge(w *round.State) {
	lag := newReadLag(w)
	for i := range w.Groups {
		g := &w.Groups[i]
		g.Growth = verdict(w, g, lag)
		if !g.CanGrow() && g.Growth.Rule != decision.RuleMax {
			w.Held("group", string(g.ID), g.Growth.Rule, "%s", g.Growth.Why)
		}
	}
}

func verdict(w *round.State, g *round.Group, lag *readLag) decision.GrowthLimit {
	for _, list := range [...][]hold{holds, roundHolds} {
		for i := range list {
			if why := list[i].why(w, g); why != "" {
				return decision.GrowthLimit{Rule: list[i].rule, Why: why}
			}
		}
	}
	if why := lag.why(g); why != "" {
		return decision.GrowthLimit{Rule: decision.RuleAhead, Why: why}
	}
	return decision.GrowthLimit{}
}

// Reasons are everything that keeps a group from adding a machine now: the verdict of this
// round, whatever else holds the group, and the limit that is reached.
func Reasons(w *round.State, g *round.Group) []decision.GrowthLimit {
	var out []decision.GrowthLimit
	add := func(rule, why string) {
		l := decision.GrowthLimit{Rule: rule, Why: why}
		if why != "" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	add(g.Growth.Rule, g.Growth.Why)
	for i := range holds {
		switch h := &holds[i]; h.rule {
		case decision.RuleBackoff:
			for k := range w.Next.Backoff {
				if b := &w.Next.Backoff[k]; b.Group == g.ID && b.Active(w.Now) {
					add(h.rule, backoffWords(b))
				}
			}
		case decision.RuleQuota: // it is named only where it is the verdict
		default:
			add(h.rule, h.why(w, g))
		}
	}
	if l := limitsOf(w, g, 1); l.count == 0 {
		add(l.rule, l.inWords().Why)
	}
	return out
}

// unhealthy holds a group of which too many nodes are not Ready while the cluster is well:
// one machine more would likely be no better (by the cluster's own thresholds, as in Cluster
// Autoscaler). When the whole cluster is not well, the network is the likelier cause:
// deletions are frozen, and pending pods get machines.
func unhealthy(w *round.State, g *round.Group) string {
	sick := w.Unhealthy == "" && g.Unready > w.Policy.OKTotalUnready && g.Unready*100 > w.Policy.MaxTotalUnreadyPercent*g.Nodes
	return words(sick, "%d of %d of its nodes are not Ready", g.Unready, g.Nodes)
}

func ownBackoff(w *round.State, g *round.Group) string {
	b := longest(w, func(b *decision.Backoff) bool { return b.Group == g.ID })
	if b == nil {
		return ""
	}
	return backoffWords(b)
}

func quotaBackoff(w *round.State, g *round.Group) string {
	b := longest(w, func(b *decision.Backoff) bool { return b.Group != g.ID && sharesQuota(w, g, b) })
	if b == nil {
		return ""
	}
	return fmt.Sprintf("shares the quota of group %s, which is backed off until %s: %s", b.Group, round.Stamp(b.Until), b.Text)
}

func backoffWords(b *decision.Backoff) string {
	return fmt.Sprintf("backed off until %s (%s): %s", round.Stamp(b.Until), b.Cause, b.Text)
}

// longest returns the backoff that ends last of those that are active and concern a group.
func longest(w *round.State, concerns func(*decision.Backoff) bool) *decision.Backoff {
	var found *decision.Backoff
	for i := range w.Next.Backoff {
		b := &w.Next.Backoff[i]
		if w.Reached(b.Until) || !concerns(b) {
			continue
		}
		if found == nil || cmp.Or(b.Until.Compare(found.Until), cmp.Compare(found.Cause, b.Cause), cmp.Compare(found.Group, b.Group)) > 0 {
			found = b
		}
	}
	if found != nil {
		w.WakeAt(found.Until)
	}
	return found
}

// sharesQuota tells whether the backoff of another group concerns a group too: the cloud
// refused for a quota that both count against. A group that the cloud no longer lists says
// nothing about the name of its quota, so its backoff concerns every group.
func sharesQuota(w *round.State, g *round.Group, b *decision.Backoff) bool {
	if b.Cause != cluster.CauseQuota {
		return false
	}
	i, ok := w.ByID[b.Group]
	if !ok {
		return true
	}
	refused := &w.Groups[i]
	return refused.Provider == g.Provider && (refused.Quota == "" || g.Quota == "" || refused.Quota == g.Quota)
}

// EnforceMin plans the machines that a group lacks to its minimum. Pods may use them.
func EnforceMin(w *round.State) {
	if !w.Policy.EnforceMin {
		return
	}
	for i := range w.Groups {
		g := &w.Groups[i]
		if !g.CanGrow() || g.CorrectedTarget >= g.Min {
			continue
		}
		g.Raise = true
		missing := max(g.Min-g.Size, 0)
		l := Of(w, g, missing)
		if l.Count < missing {
			w.Held("group", string(g.ID), l.Rule, "below its minimum of %d: %s", g.Min, l.Why)
		}
		g.Grow += l.Count
	}
}

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func (e *explainer) group() {
	w := e.end
	i, ok := w.byID[cluster.GroupID(e.q.Name)]
	if !ok {
		names := make([]string, len(w.groups))
		for k := range w.groups {
			names[k] = string(w.groups[k].ID)
		}
		e.missing("node group", names)
		return
	}
	g := &w.groups[i]
	e.out.Found = true
	f := &decision.GroupFacts{Provider: g.Provider, Min: g.Min, Max: g.Max, Target: g.Target, Counted: g.target, Instances: g.members, Nodes: g.nodes, Upcoming: g.upcoming, Removing: g.removing,
		ReadAt: g.ReadAt, Failures: g.Failures, Warnings: g.Warnings, Template: e.templateOf(g)}
	e.out.Group = f
	for _, b := range w.out.Backoff {
		if b.Group == g.ID {
			f.Backoff = append(f.Backoff, b)
		}
	}
	for _, to := range w.out.Reservations {
		if to.Group == g.ID {
			f.Reserved += len(to.Pods)
		}
	}
	e.growth(i, f)
	e.shrinking(i, f)
	for k := range w.nodes {
		if since, ok := w.out.Unneeded[w.nodes[k].Name]; ok && w.nodes[k].group == i {
			set(&f.Unneeded, w.nodes[k].Name, since)
		}
	}
	e.out.Verdicts = e.groupVerdicts(g)
	e.out.Summary = groupSummary(f, e.out.Verdicts)
}

// groupVerdicts are what this round does and holds of the group and of its instances
// that are no Nodes.
func (e *explainer) groupVerdicts(g *group) []decision.Verdict {
	out := []decision.Verdict{}
	for _, a := range e.plan.Actions {
		switch a := a.(type) {
		case decision.Grow:
			if a.Group == g.ID {
				out = append(out, decision.Verdict{Rule: a.Rule, Why: fmt.Sprintf("this round grows it %d->%d for %s; %s", a.From, a.To, pods(len(a.Pods)+a.Expected), a.Why)})
			}
		case decision.Terminate:
			if a.Group == g.ID {
				out = append(out, decision.Verdict{Rule: a.Rule, Why: "this round terminates it: " + a.Why, About: strings.TrimSpace(string(a.Instance) + " " + string(a.Node))})
			}
		}
	}
	out = append(out, e.heldOf("group", e.q.Name)...)
	for k := range g.Instances {
		id := string(g.Instances[k].ID)
		for _, v := range e.heldOf("instance", id) {
			v.About = id
			out = append(out, v)
		}
	}
	return out
}

// growth lists everything that keeps the group from growing. The first is the one
// that the round counted.
func (e *explainer) growth(i int, f *decision.GroupFacts) {
	w, g := e.end, &e.end.groups[i]
	add := func(rule, why string) {
		v := decision.Verdict{Rule: rule, Why: why}
		if rule != "" && !slices.Contains(f.NoGrowth, v) {
			f.NoGrowth = append(f.NoGrowth, v)
		}
	}
	add(g.rule, g.why)
	if why := w.paused(g); why != "" {
		add(decision.RuleOperator, why)
	}
	if g.Stale != "" {
		add(decision.RuleGroupStale, "the group's facts are old: "+g.Stale)
	}
	if g.Paused != "" {
		add(decision.RulePaused, g.Paused)
	}
	if g.Busy != "" {
		add(decision.RuleCloudBusy, g.Busy)
	}
	if g.Template.Unknown != "" {
		add(decision.RuleTemplate, "template unknown: "+g.Template.Unknown)
	}
	for _, b := range f.Backoff {
		if b.Until.After(w.now) {
			add(decision.RuleBackoff, fmt.Sprintf("backed off until %s (%s): %s", stamp(b.Until), b.Cause, b.Text))
		}
	}
	if why := w.sick(g); why != "" {
		add(decision.RuleGroupHealth, why)
	}
	if n, why := w.allowed(g, 1); n == 0 {
		rule := decision.RuleTotals
		if g.size+g.grow >= g.Max {
			rule = decision.RuleMax
		}
		add(rule, why)
	}
	f.CanGrow = len(f.NoGrowth) == 0
}

// shrinking lists everything that keeps all of the group's nodes.
func (e *explainer) shrinking(i int, f *decision.GroupFacts) {
	g := &e.down.groups[i]
	add := func(rule string, fails bool, bad, _ string) {
		if fails {
			f.NoShrink = append(f.NoShrink, decision.Verdict{Rule: rule, Why: bad})
		}
	}
	add(decision.RuleAtMin, g.target-g.removing <= g.Min, fmt.Sprintf("at its minimum of %d", g.Min), "")
	e.clusterHolds(g, add)
	f.CanShrink = len(f.NoShrink) == 0
}

// templateOf describes the group's next machine.
func (e *explainer) templateOf(g *group) decision.TemplateFacts {
	t := decision.TemplateFacts{Spec: g.Template.Spec, Unknown: g.Template.Unknown, Allocatable: g.Template.Allocatable, Labels: g.Template.Labels, Taints: g.Template.Taints}
	if t.Unknown == "" {
		t.DaemonSets = e.end.daemonSetsOf(g)
	}
	return t
}

func groupSummary(f *decision.GroupFacts, verdicts []decision.Verdict) string {
	grow, shrink := "it can grow", "and shrink"
	if !f.CanGrow {
		grow = "it cannot grow: " + f.NoGrowth[0].Why
	}
	if !f.CanShrink {
		shrink = "and cannot shrink now: " + f.NoShrink[0].Why
	}
	said := fmt.Sprintf("%d of %d..%d machines, %d Nodes", f.Counted, f.Min, f.Max, f.Nodes)
	if f.Upcoming > 0 {
		said += fmt.Sprintf(", %d coming", f.Upcoming)
	}
	for _, v := range verdicts {
		if v.Rule == decision.RuleGrow || v.Rule == decision.RuleMin {
			return said + "; " + v.Why
		}
	}
	return said + "; " + grow + ", " + shrink
}

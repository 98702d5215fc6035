package explain

import (
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

func (e *explainer) group() {
	w := e.end
	i, ok := w.ByID[cluster.GroupID(e.q.Name)]
	if !ok {
		names := make([]string, len(w.Groups))
		for k := range w.Groups {
			names[k] = string(w.Groups[k].ID)
		}
		e.missing("node group", names)
		return
	}
	g := &w.Groups[i]
	e.out.Found = true
	f := &decision.GroupFacts{Provider: g.Provider, Min: g.Min, Max: g.Max, Target: g.Target, Counted: g.CorrectedTarget, Instances: g.Members, Nodes: g.Nodes, Upcoming: g.Upcoming, Removing: g.Removing,
		ReadAt: g.ReadAt, Failures: g.Failures, Warnings: g.Warnings, Template: e.templateOf(g)}
	e.out.Group = f
	for _, b := range w.Next.Backoff {
		if b.Group == g.ID {
			f.Backoff = append(f.Backoff, b)
		}
	}
	for _, to := range w.Next.Reservations {
		if to.Group == g.ID {
			f.Reserved += len(to.Pods)
		}
	}
	for _, l := range growth.Reasons(w.State, g) {
		f.NoGrowth = append(f.NoGrowth, decision.Verdict{Rule: l.Rule, Why: l.Why})
	}
	f.CanGrow = len(f.NoGrowth) == 0
	e.shrinking(i, f)
	for k := range w.Nodes {
		if since, ok := w.Next.Unneeded[w.Nodes[k].Name]; ok && w.Nodes[k].Group == i {
			round.Set(&f.Unneeded, w.Nodes[k].Name, since)
		}
	}
	e.out.Verdicts = e.groupVerdicts(g)
	e.out.Summary = groupSummary(f, e.out.Verdicts)
}

// groupVerdicts are what this round does and holds of the group and of its instances
// that are no Nodes.
func (e *explainer) groupVerdicts(g *round.Group) []decision.Verdict {
	out := []decision.Verdict{}
	for _, a := range e.plan.Actions {
		switch a := a.(type) {
		case decision.Grow:
			if a.Group == g.ID {
				out = append(out, decision.Verdict{Rule: a.Rule, Why: fmt.Sprintf("this round grows it %d->%d for %s; %s", a.From, a.To, round.Pods(len(a.Pods)+a.Expected), a.Why)})
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

// shrinking lists everything that keeps all of the group's nodes.
func (e *explainer) shrinking(i int, f *decision.GroupFacts) {
	g := &e.down.Groups[i]
	add := func(rule string, fails bool, bad, _ string) {
		if fails {
			f.NoShrink = append(f.NoShrink, decision.Verdict{Rule: rule, Why: bad})
		}
	}
	add(decision.RuleAtMin, g.CorrectedTarget-g.Removing <= g.Min, fmt.Sprintf("at its minimum of %d", g.Min), "")
	e.clusterHolds(g, add)
	f.CanShrink = len(f.NoShrink) == 0
}

// templateOf describes the group's next machine.
func (e *explainer) templateOf(g *round.Group) decision.TemplateFacts {
	t := decision.TemplateFacts{Spec: g.Template.Spec, Unknown: g.Template.Unknown, Allocatable: g.Template.Allocatable, Labels: g.Template.Labels, Taints: g.Template.Taints, Zones: e.end.ScaleUp.ZonesOf(g)}
	if t.Unknown == "" {
		t.DaemonSets = e.end.DaemonSetsOf(g)
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

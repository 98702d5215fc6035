package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
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
		Price: g.Price, PriceSource: g.PriceSource, ReadAt: g.ReadAt, Failures: g.Failures, Warnings: g.Warnings, Template: e.templateOf(g)}
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

// groupVerdicts list the actions and held reasons of this round about the group and its instances
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
	f.NoShrink = e.down.ScaleDown.KeepsAll(&e.down.Groups[i])
	f.CanShrink = len(f.NoShrink) == 0
}

// templateOf describes the group's next machine.
func (e *explainer) templateOf(g *round.Group) decision.TemplateFacts {
	t := decision.TemplateFacts{Spec: g.Template.Spec, Unknown: g.Template.Unknown, Allocatable: g.Template.Allocatable, Labels: g.Template.Labels, Taints: g.Template.Taints, Zones: e.end.ScaleUp.ZonesOf(g)}
	if t.Unknown == "" {
		t.DaemonShares = e.daemonShares(g)
		for _, s := range t.DaemonShares {
			t.DaemonSets = append(t.DaemonSets, s.DaemonSet)
		}
	}
	return t
}

// daemonShares list the room that each DaemonSet takes of the group's next machine, by name.
func (e *explainer) daemonShares(g *round.Group) (out []decision.DaemonShare) {
	_, shape := e.end.Template(g)
	s := e.end.Snapshot
	for d := range s.DaemonSets {
		ds := &s.DaemonSets[d]
		if !fit.DaemonRunsOn(&s.Classes[ds.Class], shape) {
			continue
		}
		takes, source := e.end.Shares().Requests(e.end.ByID[g.ID], d)
		out = append(out, decision.DaemonShare{DaemonSet: ds.Key, Requests: takes, Source: source, Why: whyShare(ds, source, takes, s.Classes[ds.Class].Requests)})
	}
	slices.SortFunc(out, func(a, b decision.DaemonShare) int { return strings.Compare(string(a.DaemonSet), string(b.DaemonSet)) })
	return out
}

// whyShare says in words from where it is known what a DaemonSet takes.
func whyShare(ds *cluster.DaemonSet, source decision.DaemonSource, takes, template cluster.Resources) string {
	says := ""
	if !takes.Equal(template) {
		says = fmt.Sprintf(", where its template says cpu %dm, memory %dMi", template.MilliCPU, template.Memory>>20)
	}
	switch source {
	case decision.DaemonOnGroup:
		return "its pods on nodes of this group request it" + says
	case decision.DaemonRemembered:
		return "its pods requested it on nodes that have gone" + says
	case decision.DaemonElsewhere:
		return "its pods on other nodes request it" + says
	}
	if ds.Completed != "" {
		return "its template says it, with what the API server adds: " + ds.Completed
	}
	return "its template says it"
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

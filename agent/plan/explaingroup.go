package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// GroupFacts is what Explain tells of a node group.
type GroupFacts struct {
	// Provider is the one of several that the group is of; empty where there is one.
	Provider string `json:"provider,omitempty"`

	Min    int `json:"min"`
	Max    int `json:"max"`
	Target int `json:"target"` // as the cloud was last read
	// Counted is the target that the engine reckons with: a read may be behind what was
	// asked for.
	Counted   int       `json:"countedTarget"`
	Instances int       `json:"instances"`
	Nodes     int       `json:"nodes"`
	Coming    int       `json:"coming"` // machines that are awaited and are not Nodes yet
	Leaving   int       `json:"leaving"`
	ReadAt    time.Time `json:"readAt"`
	CanGrow   bool      `json:"canGrow"`
	// NoGrowth are all reasons why it cannot grow now, the decisive one first.
	NoGrowth  []Verdict `json:"cannotGrow,omitempty"`
	CanShrink bool      `json:"canShrink"`
	NoShrink  []Verdict `json:"cannotShrink,omitempty"`
	// Backoff are its pauses, one for each cause.
	Backoff  []Backoff         `json:"backoff,omitempty"`
	Failures []cluster.Failure `json:"failures,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Template TemplateFacts     `json:"template"`
	// Unneeded are its nodes that nothing needs, and since when.
	Unneeded map[cluster.NodeName]time.Time `json:"unneeded,omitempty"`
	// Waiting is how many pods count on its coming machines.
	Waiting int `json:"promisedPods"`
}

// TemplateFacts describes the machine that the group would add.
type TemplateFacts struct {
	Spec        string            `json:"spec,omitempty"`
	Unknown     string            `json:"unknown,omitempty"`
	Allocatable cluster.Resources `json:"allocatable"`
	DaemonSets  []cluster.PodKey  `json:"daemonSets,omitempty"` // those that take room on it
	Labels      map[string]string `json:"labels,omitempty"`
	Taints      []cluster.Taint   `json:"taints,omitempty"`
	// Learnt is what the group's own nodes taught about it, in words.
	Learnt []string `json:"learnt,omitempty"`
}

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
	f := &GroupFacts{Provider: g.Provider, Min: g.Min, Max: g.Max, Target: g.Target, Counted: g.target, Instances: g.members, Nodes: g.nodes, Coming: g.coming, Leaving: g.leaving,
		ReadAt: g.ReadAt, Failures: g.Failures, Warnings: g.Warnings, Template: e.templateOf(g)}
	e.out.Group = f
	for _, b := range w.out.Backoff {
		if b.Group == g.ID {
			f.Backoff = append(f.Backoff, b)
		}
	}
	for _, to := range w.out.Promised {
		if to.Group == g.ID {
			f.Waiting += len(to.Pods)
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
func (e *explainer) groupVerdicts(g *group) []Verdict {
	out := []Verdict{}
	for _, a := range e.plan.Actions {
		switch a := a.(type) {
		case Grow:
			if a.Group == g.ID {
				out = append(out, Verdict{Rule: a.Rule, Why: fmt.Sprintf("this round grows it %d->%d for %s; %s", a.From, a.To, pods(len(a.Pods)+a.Expected), a.Why)})
			}
		case Terminate:
			if a.Group == g.ID {
				out = append(out, Verdict{Rule: a.Rule, Why: "this round terminates it: " + a.Why, About: strings.TrimSpace(string(a.Instance) + " " + string(a.Node))})
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
func (e *explainer) growth(i int, f *GroupFacts) {
	w, g := e.end, &e.end.groups[i]
	add := func(rule, why string) {
		v := Verdict{Rule: rule, Why: why}
		if rule != "" && !slices.Contains(f.NoGrowth, v) {
			f.NoGrowth = append(f.NoGrowth, v)
		}
	}
	add(g.rule, g.why)
	if why := w.paused(g); why != "" {
		add(RuleOperator, why)
	}
	if g.Stale != "" {
		add(RuleGroupStale, "the group's facts are old: "+g.Stale)
	}
	if g.Paused != "" {
		add(RulePaused, g.Paused)
	}
	if g.Busy != "" {
		add(RuleCloudBusy, g.Busy)
	}
	if g.TemplateStale != "" {
		add(RuleTemplate, "what its next machine would be is old: "+g.TemplateStale)
	}
	if g.Template.Unknown != "" {
		add(RuleTemplate, "template unknown: "+g.Template.Unknown)
	}
	for _, b := range f.Backoff {
		if b.Until.After(w.now) {
			add(RuleBackoff, fmt.Sprintf("backed off until %s (%s): %s", stamp(b.Until), b.Cause, b.Text))
		}
	}
	if why := w.sick(g); why != "" {
		add(RuleGroupHealth, why)
	}
	if n, why := w.allowed(g, 1); n == 0 {
		rule := RuleTotals
		if g.size+g.grow >= g.Max {
			rule = RuleMax
		}
		add(rule, why)
	}
	f.CanGrow = len(f.NoGrowth) == 0
}

// shrinking lists everything that keeps all of the group's nodes.
func (e *explainer) shrinking(i int, f *GroupFacts) {
	g := &e.down.groups[i]
	add := func(rule string, fails bool, bad, _ string) {
		if fails {
			f.NoShrink = append(f.NoShrink, Verdict{Rule: rule, Why: bad})
		}
	}
	add(RuleAtMin, g.target-g.leaving <= g.Min, fmt.Sprintf("at its minimum of %d", g.Min), "")
	e.gates(g, add)
	f.CanShrink = len(f.NoShrink) == 0
}

// templateOf describes the group's next machine.
func (e *explainer) templateOf(g *group) TemplateFacts {
	t := TemplateFacts{Spec: g.Template.Spec, Unknown: g.Template.Unknown, Allocatable: g.Template.Allocatable, Labels: g.Template.Labels, Taints: g.Template.Taints}
	if t.Unknown == "" {
		t.DaemonSets = e.end.daemonSetsOf(g)
	}
	return t
}

func groupSummary(f *GroupFacts, verdicts []Verdict) string {
	grow, shrink := "it can grow", "and shrink"
	if !f.CanGrow {
		grow = "it cannot grow: " + f.NoGrowth[0].Why
	}
	if !f.CanShrink {
		shrink = "and cannot shrink now: " + f.NoShrink[0].Why
	}
	said := fmt.Sprintf("%d of %d..%d machines, %d Nodes", f.Counted, f.Min, f.Max, f.Nodes)
	if f.Coming > 0 {
		said += fmt.Sprintf(", %d coming", f.Coming)
	}
	for _, v := range verdicts {
		if v.Rule == RuleGrow || v.Rule == RuleMin {
			return said + "; " + v.Why
		}
	}
	return said + "; " + grow + ", " + shrink
}

// daemonSetsOf are the DaemonSets that take room on the group's next machine.
func (w *world) daemonSetsOf(g *group) []cluster.PodKey {
	_, shape := w.template(g)
	var out []cluster.PodKey
	for i := range w.s.DaemonSets {
		if d := &w.s.DaemonSets[i]; fit.DaemonRunsOn(&w.s.Classes[d.Class], shape) {
			out = append(out, d.Key)
		}
	}
	slices.Sort(out)
	return out
}

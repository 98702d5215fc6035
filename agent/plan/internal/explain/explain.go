package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaledown"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaleup"
)

// explainer is one question being answered: the plan of the Snapshot, and the engine's
// own worlds at the moments that matter. Nothing is judged anew: every answer comes
// from these worlds through the engine's own functions.
type explainer struct {
	q    decision.Query
	plan decision.Plan
	held []decision.Held // as they were said, before equal ones were counted together
	end  Moment          // after the whole round
	up   Moment          // right before room is looked for: nothing of this round is placed
	down Moment          // right before scale-down: pending pods are placed
	out  decision.Explanation
}

// Moment is a round as far as it was played.
type Moment struct {
	*round.State
	ScaleUp   *scaleup.Planner
	ScaleDown *scaledown.Planner
}

// Explain answers a query from one round at three moments: up, right before room is
// looked for; down, right before scale-down; and end, before reasons are put in order.
func Explain(up, down, end Moment, q decision.Query) decision.Explanation {
	e := &explainer{q: q, up: up, down: down, end: end}
	e.held = slices.Clone(e.end.Plan.Held)
	slices.SortStableFunc(e.held, round.CompareHeld)
	e.end.Finish()
	e.plan = e.end.Plan
	e.out = decision.Explanation{Kind: q.Kind, Name: q.Name, At: end.Now, Verdicts: []decision.Verdict{}}
	e.out.Cluster = e.heldOf("cluster", "cluster")
	switch q.Kind {
	case "pod":
		e.pod()
	case "node":
		e.node()
	case "group":
		e.group()
	case "headroom":
		e.headroom(end.Policy.Headroom)
	default:
		e.out.Summary = fmt.Sprintf("there is no kind %q: ask for a pod, a node, a group or a headroom", q.Kind)
	}
	return e.out
}

// headroom says what of a headroom cannot be kept free.
func (e *explainer) headroom(all []cluster.Headroom) {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	if e.out.Found = slices.Contains(names, e.q.Name); !e.out.Found {
		e.missing("headroom", names)
		return
	}
	e.out.Verdicts = append(e.out.Verdicts, e.heldOf("headroom", e.q.Name)...)
	e.out.Summary = "it is kept free, or a machine for it is coming"
	if len(e.out.Verdicts) > 0 {
		e.out.Summary = e.out.Verdicts[0].Why
	}
}

// heldOf are the verdicts on one thing by its name.
func (e *explainer) heldOf(kind, name string) []decision.Verdict {
	var out []decision.Verdict
	for _, h := range e.held {
		if h.Kind == kind && h.Name == name {
			out = append(out, decision.Verdict{Rule: h.Rule, Why: h.Why})
		}
	}
	return out
}

// missing says that there is no such thing, and which names are near.
func (e *explainer) missing(what string, names []string) {
	var near []string
	for _, n := range names {
		if strings.Contains(n, e.q.Name) || strings.HasSuffix(e.q.Name, n) {
			near = append(near, n)
		}
	}
	slices.Sort(near)
	e.out.Summary = fmt.Sprintf("there is no %s %s", what, e.q.Name)
	if len(near) > 5 {
		near = append(near[:5], fmt.Sprintf("... (%d in all)", len(near)))
	}
	if len(near) > 0 {
		e.out.Summary += "; near: " + strings.Join(near, ", ")
	}
}

// sum counts equal words and writes them as kube-scheduler does. A node that lacks
// two resources counts under both, as there.
func sum(what string, refusals []decision.Refusal) decision.Judgement {
	j := decision.Judgement{Total: len(refusals), Refusals: refusals}
	counts := make(map[string]int)
	for _, r := range refusals {
		if r.Rule == "" {
			j.Could++
			continue
		}
		for _, words := range atoms(r) {
			counts[words]++
		}
	}
	said := make([]string, 0, len(counts))
	for words, n := range counts {
		said = append(said, fmt.Sprintf("%d %s", n, words))
	}
	slices.Sort(said)
	j.Words = fmt.Sprintf("%d/%d %s", j.Could, j.Total, what)
	if len(said) > 0 {
		j.Words += ": " + strings.Join(said, ", ")
	}
	return j
}

// atoms splits the words of a refusal where they name several resources.
func atoms(r decision.Refusal) []string {
	if r.Rule == RuleResources {
		return strings.Split(r.Why, ", ")
	}
	return []string{r.Why}
}

// Sum is every group's reason counted together and with the groups' names:
// "2 Insufficient cpu (groups a, b), 1 ... (group c)". Events carry it.
func Sum(refusals []decision.Refusal) string {
	groups := make(map[string][]string)
	for _, r := range refusals {
		for _, words := range atoms(r) {
			groups[words] = append(groups[words], r.Name)
		}
	}
	said := make([]string, 0, len(groups))
	for words, names := range groups {
		slices.Sort(names)
		label := "group "
		if len(names) > 1 {
			label = "groups "
		}
		if len(names) > 5 {
			names = append(names[:5:5], "...")
		}
		said = append(said, fmt.Sprintf("%d %s (%s%s)", len(groups[words]), words, label, strings.Join(names, ", ")))
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// at writes a time with how far it is from now.
func (e *explainer) at(t time.Time) string {
	switch d := t.Sub(e.out.At).Round(time.Second); {
	case d > 0:
		return fmt.Sprintf("%s (in %s)", round.Stamp(t), d)
	case d < 0:
		return fmt.Sprintf("%s (%s ago)", round.Stamp(t), -d)
	}
	return round.Stamp(t) + " (now)"
}

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaledown"
)

var stateNames = map[round.NodeState]string{round.StateOut: "out", round.StateReady: "ready", round.StateUpcoming: "starting", round.StateMarked: "marked"}

func (e *explainer) node() {
	w := e.down
	i, ok := w.ByName[cluster.NodeName(e.q.Name)]
	if !ok {
		names := make([]string, len(w.Nodes))
		for k := range w.Nodes {
			names[k] = string(w.Nodes[k].Name)
		}
		e.missing("node", names)
		return
	}
	n := &w.Nodes[i]
	e.out.Found = true
	if n.Original != nil {
		n.Node, n.Facts = n.Original, (&round.FactsAllocator{Dims: w.Dimensions.Len()}).Next()
		w.FillFacts(n.Facts, n.Original)
	}
	f := &decision.NodeFacts{State: stateNames[n.State], Utilisation: w.ScaleDown.Utilisation(n), Limit: w.ScaleDown.Threshold(n), UnreadyFrom: e.end.Next.Unready[n.Name]}
	e.out.Node = f
	e.out.Verdicts = append(e.actionsOn(n.Name), e.heldOf("node", e.q.Name)...)
	e.addReplacement(n)
	if n.Group >= 0 {
		f.Group, f.Instance, f.Phase = w.Groups[n.Group].ID, n.Instance.ID, n.Instance.Phase
		f.Drift = w.Drift(&w.Groups[n.Group])[n.Instance.ID]
	}
	switch {
	case n.Original != nil:
		e.interruption(n, f)
	case !n.ControlPlane && n.Group >= 0:
		e.drainOf(i, f)
		e.checks(i, f)
	}
	e.out.Summary = e.nodeSummary(n)
}

// interruption tells of a node whose machine the cloud ends: nothing but budgets counts.
func (e *explainer) interruption(n *round.Node, f *decision.NodeFacts) {
	c := e.down.ScaleDown.DrainPlanOf(n)
	f.Terminating, f.Ignored = c.Terminating, len(n.Pods)-c.Movable-c.Terminating-len(c.Completing)
	for _, pod := range e.down.ScaleDown.Running(n) {
		if why := e.down.ScaleDown.BudgetsBlock(pod); why != "" {
			f.Blockers = append(f.Blockers, decision.Blocker{Pod: pod.Key, Name: "budget", Why: why})
		}
	}
	f.Checks = []decision.Check{{Rule: decision.RuleInterrupted, OK: true, Why: scaledown.InterruptionWords(n.Instance)}}
}

// actionsOn are the verdicts of what this round does with a node.
func (e *explainer) actionsOn(name cluster.NodeName) []decision.Verdict {
	out := []decision.Verdict{}
	evictions := 0
	for _, a := range e.plan.Actions {
		switch a := a.(type) {
		case decision.Cordon:
			if a.Node == name {
				out = append(out, decision.Verdict{Rule: a.Rule, Why: "this round marks it for deletion: " + a.Why})
			}
		case decision.Uncordon:
			if a.Node == name {
				out = append(out, decision.Verdict{Rule: a.Rule, Why: "this round takes its mark back: " + a.Why})
			}
		case decision.Evict:
			if a.Node == name {
				evictions++
			}
		case decision.Terminate:
			if a.Node == name {
				out = append(out, decision.Verdict{Rule: a.Rule, Why: "this round terminates it: " + a.Why})
			}
		}
	}
	if evictions > 0 {
		out = append(out, decision.Verdict{Rule: decision.RuleResume, Why: "this round evicts " + round.Pods(evictions)})
	}
	return out
}

// drainOf tells what a drain of a node would meet.
func (e *explainer) drainOf(i int, f *decision.NodeFacts) {
	w := e.down.ScaleDown
	n := &w.Nodes[i]
	c := w.DrainPlanOf(n)
	f.Terminating, f.Ignored = c.Terminating, len(n.Pods)-c.Movable-c.Terminating-len(c.Completing)
	for k := range n.Pods {
		f.Blockers = append(f.Blockers, w.BlockersOf(&n.Pods[k])...)
	}
	slices.SortStableFunc(f.Blockers, func(a, b decision.Blocker) int { return strings.Compare(string(a.Pod), string(b.Pod)) })
	for _, pod := range w.Movable(n) {
		if !w.Expendable(pod) {
			f.Destinations = append(f.Destinations, destination(w, i, pod))
		}
	}
}

// checks are the conditions for a node to go, as scale-down asks them, and what keeps it from being replaced to save money.
func (e *explainer) checks(i int, f *decision.NodeFacts) {
	n := &e.down.Nodes[i]
	f.Checks = e.down.ScaleDown.Checks(i)
	e.roomTaken(n, f)
	if at := slices.IndexFunc(f.Checks, func(c decision.Check) bool { return c.Rule == decision.RuleUnneededFor }); at >= 0 {
		f.Checks[at] = e.timer(n, f)
	}
	e.savings(n, func(rule string, ok bool, why string) {
		f.Checks = append(f.Checks, decision.Check{Rule: rule, OK: ok, Why: why})
	})
}

// roomTaken corrects what is said of a node whose pods have room by themselves: the check is of this node alone, and the nodes
// that are unneeded before it take their room with them, or have used it up.
func (e *explainer) roomTaken(n *round.Node, f *decision.NodeFacts) {
	held := slices.IndexFunc(e.out.Verdicts, func(v decision.Verdict) bool { return v.Rule == decision.RuleNoRoom })
	at := slices.IndexFunc(f.Checks, func(c decision.Check) bool { return c.Rule == decision.RuleNoRoom && c.OK })
	if held < 0 || at < 0 {
		return
	}
	var first []string
	for name := range e.end.Next.Unneeded {
		if name != n.Name {
			first = append(first, string(name))
		}
	}
	if len(first) == 0 {
		return
	}
	slices.Sort(first)
	words := strings.Join(first[:min(len(first), 3)], ", ")
	if more := len(first) - 3; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	f.Checks[at] = decision.Check{Rule: decision.RuleNoRoom, Why: e.out.Verdicts[held].Why + " once " + words + " goes"}
}

// timer says since when the node could go, and when its time is over.
func (e *explainer) timer(n *round.Node, f *decision.NodeFacts) decision.Check {
	unready := n.Ready != cluster.StatusTrue
	f.Since = e.end.Next.Unneeded[n.Name]
	if f.Since.IsZero() && !unready {
		return decision.Check{Rule: decision.RuleUnneededFor, Why: fmt.Sprintf("it is needed now; when it no longer is, it waits for %s", round.OrElse(e.end.Groups[n.Group].Options.ScaleDownUnneededTime, e.end.Policy.UnneededFor))}
	}
	f.MayGo = e.end.ScaleDown.MayGo(e.end.ByName[n.Name], f.Since)
	words := "not needed since " + e.at(f.Since)
	if unready {
		words = "not Ready since " + e.at(f.UnreadyFrom)
	}
	return decision.Check{Rule: decision.RuleUnneededFor, OK: !e.end.Now.Before(f.MayGo), Why: words + ": its time is over at " + e.at(f.MayGo)}
}

// savings tells of a node that is kept from consolidation by a young pod, and of one that new pods keep away from.
func (e *explainer) savings(n *round.Node, add func(rule string, ok bool, why string)) {
	if w := e.end; w.Policy.Consolidates() && e.consolidation(n) == nil {
		if pod, due := w.ScaleDown.Disruption.YoungPod(n, true); pod != "" {
			add(decision.RuleConsolidate, false, fmt.Sprintf("cheaper machines do not replace it before %s: pod %s has run for less than an hour until then", e.at(due), pod))
		}
	}
	if a := e.end.Next.Avoided; a != nil && !a.Since[n.Name].IsZero() {
		add(decision.RuleSoft, true, "new pods keep away from it: its pods have had room on other nodes since "+e.at(a.Since[n.Name]))
	}
}

// destination looks for room for one pod alone, as scale-down does for all together.
// The words of those that refuse are only asked for when all do.
func destination(w *scaledown.Planner, from int, pod *cluster.Pod) decision.Destination {
	d := decision.Destination{Pod: pod.Key}
	look := func(ties func(int) (rule, words string)) bool {
		for k := range w.Nodes {
			n := &w.Nodes[k]
			if k == from || n.State != round.StateReady || n.Removing || binpack.MaxFit(n.Room, w.Dimensions.Class(pod.Class)) == 0 || !w.Passes(pod.Class, k) {
				continue
			}
			if rule, _ := ties(k); rule != "" {
				continue
			}
			if d.Could++; d.First == "" {
				d.First = n.Name
			}
		}
		return d.Could > 0
	}
	refused := make(map[int]decision.Refusal) // by node, what other pods have to say
	if st := w.Constraints(); st == nil || !st.Constrained(pod.Class) {
		look(func(int) (rule, words string) { return "", "" })
	} else if w.LookEmptied(from, func(st *fit.State) bool {
		return look(func(k int) (rule, words string) {
			rule, words = st.Refused(pod.Class, k)
			refused[k] = decision.Refusal{Rule: rule, Why: words}
			return rule, words
		})
	}) {
		d.Why = "when the Node object of this node is gone, which its topology spread counts until then (nodeTaintsPolicy: Ignore)"
	}
	if d.Could > 0 {
		return d
	}
	var refusals []decision.Refusal
	for k := range w.Nodes {
		if k != from {
			rule, why := w.NodeRefuses(k, pod.Class)
			if rule == "" {
				rule, why = refused[k].Rule, refused[k].Why
			}
			switch {
			case rule == "" && w.Nodes[k].State == round.StateUpcoming:
				rule, why = decision.RuleDraining, "node(s) have not started yet"
			case rule == "":
				rule, why = decision.RuleDraining, "node(s) are on their way out"
			}
			refusals = append(refusals, decision.Refusal{Name: string(w.Nodes[k].Name), Rule: rule, Why: why})
		}
	}
	if d.Why = "there is no other node"; len(refusals) > 0 {
		d.Why = sum("other nodes have room", refusals).Words
	}
	return d
}

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
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

// checks asks every condition for a node to go, with the engine's own functions.
func (e *explainer) checks(i int, f *decision.NodeFacts) {
	w := e.down.ScaleDown
	n := &w.Nodes[i]
	g := &w.Groups[n.Group]
	add := func(rule string, fails bool, bad, good string) {
		c := decision.Check{Rule: rule, OK: !fails, Why: good}
		if fails {
			c.Why = bad
		}
		f.Checks = append(f.Checks, c)
	}
	add(decision.RuleInstance, n.Instance.Phase != cluster.PhaseRunning || !n.Instance.Member, fmt.Sprintf("its instance %s is %q or no member of its group", n.Instance.ID, n.Instance.Phase), "its instance runs and is a member of its group")
	if _, told := w.Next.Deleted[n.Instance.ID]; told {
		add(decision.RuleInstance, true, "its instance was told to go", "")
	}
	add(decision.RuleOptOut, w.OptOutNow(n.Node) != "", w.OptOutNow(n.Node), "no annotation opts it out")
	add(decision.RuleNotOurs, n.Unschedulable && !round.CordonedByUs(n.Node), "cordoned by somebody else", "nobody else has cordoned it")
	add(decision.RuleInUse, n.InUse, "pods that are to come count on it", "no pod that is to come counts on it")
	unready, blocked := n.Ready != cluster.StatusTrue, slices.Clone(f.Blockers)
	replaced := replacement(w, i, add)
	asked := scaledown.Requested(n.Node) || replaced
	if unready && !w.Policy.ScaleDownUnready && !asked {
		add(decision.RuleUnready, true, "it is not Ready, and such nodes are kept (AUTOSCALER_SCALING_SCALE_DOWN_UNREADY)", "")
	}
	load := fmt.Sprintf("utilisation %.0f%%, limit %.0f%%", f.Utilisation*100, f.Limit*100)
	if scaledown.Requested(n.Node) {
		load += "; somebody asked for it to go [" + decision.RuleRequested + "], so its load does not keep it"
	}
	add(decision.RuleBusy, !unready && !asked && f.Utilisation > f.Limit, load, load)
	if cargo := w.DrainPlanOf(n); len(cargo.Completing) > 0 {
		add(decision.RuleCompletion, true, fmt.Sprintf("%s on it run to their end", round.Pods(len(cargo.Completing))), "")
		blocked = slices.DeleteFunc(blocked, func(b decision.Blocker) bool { return b.Name == scaledown.BlockerCompletion })
	}
	add(decision.RuleBlocked, len(blocked) > 0, fmt.Sprintf("%s may not be evicted", round.Pods(blockedPods(blocked))), "every pod on it may be evicted")
	size := fmt.Sprintf("group %s has %d machines, minimum %d", g.ID, g.CorrectedTarget-g.Removing, g.Min)
	add(decision.RuleAtMin, g.CorrectedTarget-g.Removing <= g.Min, size, size)
	add(decision.RuleTotalsMin, growth.KeepsTotals(w.State, n) != "", growth.KeepsTotals(w.State, n), "the cluster has more than its least cores, memory and extended resources")
	homeless := 0
	for _, d := range f.Destinations {
		if d.Could == 0 {
			homeless++
		}
	}
	move := w.Relocation(i, w.DrainPlanOf(n).Classes, !unready && !scaledown.Requested(n.Node))
	together := homeless == 0 && move.Rule != ""
	switch {
	case together && (move.Rule != decision.RuleNoRoom || move.Lost):
		add(move.Rule, true, move.Why, "")
	case homeless > 0:
		add(decision.RuleNoRoom, true, fmt.Sprintf("%d of %s have room nowhere else", homeless, round.Pods(len(f.Destinations))), "")
	default:
		add(decision.RuleNoRoom, together, "each of its pods has room elsewhere, but not all of them together", fmt.Sprintf("%s have room elsewhere", round.Pods(len(f.Destinations))))
	}
	if !replaced || scaledown.Requested(n.Node) {
		e.timers(n, g, f, add)
	}
	e.clusterHolds(g, add)
	e.savings(n, add)
}

// savings tells of a node that is kept from consolidation by a young pod, and of one that new pods keep away from.
func (e *explainer) savings(n *round.Node, add func(rule string, fails bool, bad, good string)) {
	if w := e.end; w.Policy.Consolidates() && e.consolidation(n) == nil {
		if pod, due := w.ScaleDown.Disruption.YoungPod(n); pod != "" {
			add(decision.RuleConsolidate, true, fmt.Sprintf("cheaper machines do not replace it before %s: pod %s has run for less than an hour until then", e.at(due), pod), "")
		}
	}
	if a := e.end.Next.Avoided; a != nil && !a.Since[n.Name].IsZero() {
		add(decision.RuleSoft, false, "", "new pods keep away from it: its pods have had room on other nodes since "+e.at(a.Since[n.Name]))
	}
}

// replacement tells why a node is to be replaced and what holds it, and whether it may go for that now.
func replacement(w *scaledown.Planner, i int, add func(rule string, fails bool, bad, good string)) bool {
	why := w.Disruption.Reason(i)
	if why.Rule == "" {
		return false
	}
	add(why.Rule, false, "", why.Why+": it is to be replaced")
	held, words := w.Disruption.Hold(i, why)
	add(cmp.Or(held, decision.RuleDisruption), held != "", words, "the disruption budgets let it go")
	return held == ""
}

func blockedPods(list []decision.Blocker) int {
	seen := map[cluster.PodKey]bool{}
	for _, b := range list {
		seen[b.Pod] = true
	}
	return len(seen)
}

// timers says since when the node could go, and when its time is over.
func (e *explainer) timers(n *round.Node, g *round.Group, f *decision.NodeFacts, add func(rule string, fails bool, bad, good string)) {
	since, runs := e.end.Next.Unneeded[n.Name]
	c := scaledown.Candidate{Unready: n.Ready != cluster.StatusTrue}
	if runs {
		f.Since = since
	}
	if !runs && !c.Unready {
		add(decision.RuleUnneededFor, true, fmt.Sprintf("it is needed now; when it no longer is, it waits for %s", round.OrElse(g.Options.ScaleDownUnneededTime, e.end.Policy.UnneededFor)), "")
		return
	}
	f.MayGo, _ = e.end.ScaleDown.DueOf(&scaledown.Candidate{Node: e.end.ByName[n.Name], Unready: c.Unready}, &e.end.Groups[n.Group])
	words := "not needed since " + e.at(since) + ": its time is over at " + e.at(f.MayGo)
	if c.Unready {
		words = "not Ready since " + e.at(f.UnreadyFrom) + ": its time is over at " + e.at(f.MayGo)
	}
	add(decision.RuleUnneededFor, e.end.Now.Before(f.MayGo), words, words)
}

// clusterHolds list the reasons that hold every node of the cluster or of the group.
func (e *explainer) clusterHolds(g *round.Group, add func(rule string, fails bool, bad, good string)) {
	if !e.end.Policy.ScaleDown {
		add(decision.RuleCooldown, true, "scale-down is switched off (AUTOSCALER_SCALING_SCALE_DOWN)", "")
	}
	if e.end.Snapshot.Stale != "" {
		add(decision.RuleStale, true, "the cluster's facts may be old: "+e.end.Snapshot.Stale, "")
		return
	}
	if rule, why := e.down.ScaleDown.Cooldown(); rule != "" {
		add(rule, true, why, "")
	} else {
		add(decision.RuleCooldown, false, "", "no pause after a scale-up or a failure")
	}
	if rule, why := e.down.ScaleDown.DeletionsFrozen(g); rule != "" {
		add(rule, true, why, "")
	}
}

// destination looks for room for one pod alone, as tryRelocate does for all together.
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
	if t := w.RelocationState(); t == nil || !t.State.Constrained(pod.Class) {
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

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

var stateNames = map[nodeState]string{stateOut: "out", stateReady: "ready", stateUpcoming: "starting", stateMarked: "marked"}

func (e *explainer) node() {
	w := e.down
	i, ok := w.byName[cluster.NodeName(e.q.Name)]
	if !ok {
		names := make([]string, len(w.nodes))
		for k := range w.nodes {
			names[k] = string(w.nodes[k].Name)
		}
		e.missing("node", names)
		return
	}
	n := &w.nodes[i]
	e.out.Found = true
	if n.original != nil {
		n.Node, n.f = n.original, (&factsAllocator{axes: w.space.Len()}).next()
		w.fillFacts(n.f, n.original)
	}
	f := &decision.NodeFacts{State: stateNames[n.state], Utilisation: w.utilisation(n), Limit: w.threshold(n), UnreadyFrom: e.end.out.Unready[n.Name]}
	e.out.Node = f
	e.out.Verdicts = append(e.actionsOn(n.Name), e.heldOf("node", e.q.Name)...)
	if n.group >= 0 {
		f.Group, f.Instance, f.Phase = w.groups[n.group].ID, n.inst.ID, n.inst.Phase
	}
	switch {
	case n.original != nil:
		e.interruption(n, f)
	case !n.ControlPlane && n.group >= 0:
		e.drainOf(i, f)
		e.checks(i, f)
	}
	e.out.Summary = e.nodeSummary(n, f)
}

// interruption tells of a node whose machine the cloud ends: nothing but budgets counts.
func (e *explainer) interruption(n *node, f *decision.NodeFacts) {
	c := e.down.scaleDown.drainPlanOf(n)
	f.Terminating, f.Ignored = c.terminating, len(n.Pods)-c.movable-c.terminating
	for _, pod := range e.down.scaleDown.movable(n) {
		if why := e.down.scaleDown.budgetsBlock(pod); why != "" {
			f.Blockers = append(f.Blockers, decision.Blocker{Pod: pod.Key, Name: "budget", Why: why})
		}
	}
	f.Checks = []decision.Check{{Rule: decision.RuleInterrupted, OK: true, Why: interruptionWords(n.inst)}}
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
		out = append(out, decision.Verdict{Rule: decision.RuleResume, Why: "this round evicts " + pods(evictions)})
	}
	return out
}

// drainOf tells what a drain of a node would meet.
func (e *explainer) drainOf(i int, f *decision.NodeFacts) {
	w := e.down.scaleDown
	n := &w.nodes[i]
	c := w.drainPlanOf(n)
	f.Terminating, f.Ignored = c.terminating, len(n.Pods)-c.movable-c.terminating
	for k := range n.Pods {
		f.Blockers = append(f.Blockers, w.blockersOf(&n.Pods[k])...)
	}
	slices.SortStableFunc(f.Blockers, func(a, b decision.Blocker) int { return strings.Compare(string(a.Pod), string(b.Pod)) })
	for _, pod := range w.movable(n) {
		if !w.expendable(pod) {
			f.Destinations = append(f.Destinations, destination(w, i, pod))
		}
	}
}

// checks asks every condition for a node to go, with the engine's own functions.
func (e *explainer) checks(i int, f *decision.NodeFacts) {
	w := e.down.scaleDown
	n := &w.nodes[i]
	g := &w.groups[n.group]
	add := func(rule string, fails bool, bad, good string) {
		c := decision.Check{Rule: rule, OK: !fails, Why: good}
		if fails {
			c.Why = bad
		}
		f.Checks = append(f.Checks, c)
	}
	add(decision.RuleInstance, n.inst.Phase != cluster.PhaseRunning || !n.inst.Member, fmt.Sprintf("its instance %s is %q or no member of its group", n.inst.ID, n.inst.Phase), "its instance runs and is a member of its group")
	if _, told := w.out.Deleted[n.inst.ID]; told {
		add(decision.RuleInstance, true, "its instance was told to go", "")
	}
	add(decision.RuleOptOut, w.optOutNow(n.Node) != "", w.optOutNow(n.Node), "no annotation opts it out")
	add(decision.RuleNotOurs, n.Unschedulable && !cordonedByUs(n.Node), "cordoned by somebody else", "nobody else has cordoned it")
	add(decision.RuleInUse, n.inUse, "pods that are to come count on it", "no pod that is to come counts on it")
	unready := n.Ready != cluster.StatusTrue
	load := fmt.Sprintf("utilisation %.0f%%, limit %.0f%%", f.Utilisation*100, f.Limit*100)
	if requested(n.Node) {
		load += "; somebody asked for it to go [" + decision.RuleRequested + "], so its load does not keep it"
	}
	add(decision.RuleBusy, !unready && !requested(n.Node) && f.Utilisation > f.Limit, load, load)
	add(decision.RuleBlocked, len(f.Blockers) > 0, fmt.Sprintf("%s may not be evicted", pods(blockedPods(f.Blockers))), "every pod on it may be evicted")
	size := fmt.Sprintf("group %s has %d machines, minimum %d", g.ID, g.target-g.removing, g.Min)
	add(decision.RuleAtMin, g.target-g.removing <= g.Min, size, size)
	add(decision.RuleTotalsMin, w.keepsTotals(n) != "", w.keepsTotals(n), "the cluster has more than its least cores, memory and extended resources")
	homeless := 0
	for _, d := range f.Destinations {
		if d.Could == 0 {
			homeless++
		}
	}
	together := homeless == 0 && !w.canRelocate(i, w.drainPlanOf(n).classes)
	switch {
	case homeless > 0:
		add(decision.RuleNoRoom, true, fmt.Sprintf("%d of %s have room nowhere else", homeless, pods(len(f.Destinations))), "")
	default:
		add(decision.RuleNoRoom, together, "each of its pods has room elsewhere, but not all of them together", fmt.Sprintf("%s have room elsewhere", pods(len(f.Destinations))))
	}
	e.timers(n, g, f, add)
	e.clusterHolds(g, add)
}

func blockedPods(list []decision.Blocker) int {
	seen := map[cluster.PodKey]bool{}
	for _, b := range list {
		seen[b.Pod] = true
	}
	return len(seen)
}

// timers says since when the node could go, and when its time is over.
func (e *explainer) timers(n *node, g *group, f *decision.NodeFacts, add func(rule string, fails bool, bad, good string)) {
	since, runs := e.end.out.Unneeded[n.Name]
	c := candidate{unready: n.Ready != cluster.StatusTrue}
	if runs {
		f.Since = since
	}
	if !runs && !c.unready {
		add(decision.RuleUnneededFor, true, fmt.Sprintf("it is needed now; when it no longer is, it waits for %s", orElse(g.Options.ScaleDownUnneededTime, e.end.p.UnneededFor)), "")
		return
	}
	f.MayGo, _ = e.end.scaleDown.dueOf(&candidate{node: e.end.byName[n.Name], unready: c.unready}, &e.end.groups[n.group])
	words := "not needed since " + e.at(since) + ": its time is over at " + e.at(f.MayGo)
	if c.unready {
		words = "not Ready since " + e.at(f.UnreadyFrom) + ": its time is over at " + e.at(f.MayGo)
	}
	add(decision.RuleUnneededFor, e.end.now.Before(f.MayGo), words, words)
}

// clusterHolds are what holds every node of the cluster or of the group.
func (e *explainer) clusterHolds(g *group, add func(rule string, fails bool, bad, good string)) {
	if !e.end.p.ScaleDown {
		add(decision.RuleCooldown, true, "scale-down is switched off (AUTOSCALER_SCALING_SCALE_DOWN)", "")
	}
	if e.end.s.Stale != "" {
		add(decision.RuleStale, true, "the cluster's facts may be old: "+e.end.s.Stale, "")
		return
	}
	if rule, why := e.down.scaleDown.cooldown(); rule != "" {
		add(rule, true, why, "")
	} else {
		add(decision.RuleCooldown, false, "", "no pause after a scale-up or a failure")
	}
	if rule, why := e.down.scaleDown.deletionsFrozen(g); rule != "" {
		add(rule, true, why, "")
	}
}

// nodeSummary says in one sentence whether the node stays, and why.
func (e *explainer) nodeSummary(n *node, f *decision.NodeFacts) string {
	switch {
	case n.ControlPlane:
		return "it stays: a control-plane node is never touched"
	case n.group < 0:
		return "it stays: no node group of the agent's has an instance for it, so it is not the agent's to remove (its provider ID is " + orNone(n.ProviderID) + ")"
	case len(e.out.Verdicts) > 0 && e.goes():
		return "it goes: " + e.out.Verdicts[0].Why
	case len(e.out.Verdicts) > 0:
		return "it stays: " + e.out.Verdicts[0].Why
	case n.Deleting:
		return "it is being deleted"
	case n.state == stateUpcoming:
		return "it is starting: pods count on it, and it is not looked at for removal before " + e.at(n.Created.Add(e.end.p.MaxNodeStartupTime))
	}
	for _, c := range f.Checks {
		if !c.OK {
			return "it stays: " + c.Why
		}
	}
	return "it stays"
}

// goes tells whether the plan is emptying or removing the node that is asked for.
func (e *explainer) goes() bool {
	switch e.out.Verdicts[0].Rule {
	case decision.RuleUnneeded, decision.RuleUnready, decision.RuleRequested, decision.RuleEmpty, decision.RuleResume, decision.RuleDraining, decision.RuleInterrupted:
		return true
	}
	return false
}

func orNone(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

// destination looks for room for one pod alone, as tryRelocate does for all together.
// The words of those that refuse are only asked for when all do.
func destination(w *downPlanner, from int, pod *cluster.Pod) decision.Destination {
	d := decision.Destination{Pod: pod.Key}
	ties := func(int) (rule, words string) { return "", "" }
	if t := w.relocationState(); t != nil && t.state.Constrained(pod.Class) {
		mark := t.state.Mark()
		defer t.state.Rollback(mark)
		t.state.Put(pod.Class, from, -1) // as its eviction will
		ties = func(k int) (rule, words string) { return t.state.Refused(pod.Class, k) }
	}
	for k := range w.nodes {
		n := &w.nodes[k]
		if k == from || n.state != stateReady || n.removing || fit.MaxFit(n.room, w.space.Class(pod.Class)) == 0 || !w.passes(pod.Class, k) {
			continue
		}
		if rule, _ := ties(k); rule != "" {
			continue
		}
		if d.Could++; d.First == "" {
			d.First = n.Name
		}
	}
	if d.Could > 0 {
		return d
	}
	var refusals []decision.Refusal
	for k := range w.nodes {
		if k != from {
			rule, why := w.nodeRefuses(k, pod.Class)
			if rule == "" {
				rule, why = ties(k)
			}
			switch {
			case rule == "" && w.nodes[k].state == stateUpcoming:
				rule, why = decision.RuleDraining, "node(s) are not Ready yet"
			case rule == "":
				rule, why = decision.RuleDraining, "node(s) are on their way out"
			}
			refusals = append(refusals, decision.Refusal{Name: string(w.nodes[k].Name), Rule: rule, Why: why})
		}
	}
	if d.Why = "there is no other node"; len(refusals) > 0 {
		d.Why = sum("other nodes have room", refusals).Words
	}
	return d
}

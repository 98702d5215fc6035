package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// The values of Policy.Consolidate. What is priced is consolidated where every group
// involved has a price; always also counts machines of one group where none has.
const (
	consolidateOff    = "off"
	consolidatePriced = "priced"
	consolidateAlways = "always"
)

// Bounds of one look for savings: nodes that are tried alone, nodes that are replaced
// together, machines that replace them, and how long one look is good for.
const (
	consolidateAlone    = 50
	consolidateTogether = 10
	consolidateMachines = 2
	consolidateLook     = time.Minute
)

// consolidate replaces nodes by fewer or cheaper machines: when the saving is large
// enough and has been real for long enough, the new machines come first, and the nodes
// are drained when these are Ready. One replacement at a time, and only while nothing
// else is going on.
func (w *downPlanner) consolidate() {
	s := w.in.Consolidation
	switch {
	case w.p.Consolidate == consolidateOff || w.p.Consolidate == "" || !w.p.ScaleDown:
		return
	case w.s.Stale != "" || w.unhealthy != "":
		w.out.Consolidation = s
		return
	case s != nil && !s.Started.IsZero():
		w.continueConsolidation(s)
		return
	case !w.quiescent():
		w.out.Consolidation = s
		return
	case s != nil && !w.reached(s.Looked.Add(consolidateLook)):
		w.out.Consolidation = s
		w.wakeAt(s.Looked.Add(consolidateLook))
		w.heldUntilDue(s)
		return
	}
	list := w.replaceable()
	if len(list) == 0 {
		return
	}
	if s == nil || w.saving(s, list) <= 0 {
		if s = w.bestReplacement(list); s == nil {
			return
		}
		s.Since = w.now
	}
	next := *s
	next.Looked = w.now
	w.out.Consolidation = &next
	if w.reached(next.Since.Add(w.p.ConsolidateAfter)) {
		w.startConsolidation(&next)
		return
	}
	w.wakeAt(w.now.Add(consolidateLook))
	w.heldUntilDue(&next)
}

// quiescent tells that nothing comes, goes or is decided in this round, and that no machine
// has gone within the unneeded time: one that is bought then would be a flap.
func (w *downPlanner) quiescent() bool {
	if len(w.plan.Actions) > 0 || w.unjudged || w.draining+w.emptying > 0 || !w.in.ShrunkAt.IsZero() && !w.reached(w.in.ShrunkAt.Add(w.p.UnneededFor)) {
		return false
	}
	if rule, _ := w.cooldown(); rule != "" {
		return false
	}
	for i := range w.groups {
		if g := &w.groups[i]; g.upcoming > 0 || g.removing > 0 || g.grow > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(w.nodes, func(n node) bool { return n.removing || n.state == stateMarked })
}

// replaceable are the nodes whose pods may all be moved, the least used first. Pods that
// are constrained to other pods, to a place or to a volume keep their node here.
func (w *downPlanner) replaceable() []int {
	type row struct {
		node int
		util float64
	}
	var rows []row
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.ControlPlane || n.group < 0 || n.state != stateReady || n.inUse || len(n.headroom) > 0 || w.p.Consolidate == consolidatePriced && w.groups[n.group].Price <= 0 {
			continue
		}
		c := candidate{node: i, requested: true}
		if rule, _ := w.notRemovable(n, &c); rule != "" && rule != decision.RuleBusy {
			continue
		}
		if rule, _ := w.deletionsFrozen(&w.groups[n.group]); rule != "" || w.keepsTotals(n) != "" {
			continue
		}
		if cargo := w.drainPlanOf(n); len(cargo.blocked)+cargo.terminating > 0 || slices.ContainsFunc(cargo.classes, func(l classCount) bool { return w.anchored(int(l.class)) }) {
			continue
		}
		rows = append(rows, row{i, w.utilisation(n)})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.util, b.util), cmp.Compare(a.node, b.node)) })
	out := make([]int, len(rows))
	for i := range rows {
		out[i] = rows[i].node
	}
	return out
}

// anchored tells a pod whose place depends on more than its node.
func (w *downPlanner) anchored(class int) bool {
	c, t := &w.s.Classes[class], w.relocationState()
	return t != nil && t.state.Constrained(class) || len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes)+len(c.NotUnderstood) > 0
}

// bestReplacement looks for the replacement that saves most: every node for itself, and the
// least used ones together.
func (w *downPlanner) bestReplacement(list []int) *decision.Consolidation {
	var best *decision.Consolidation
	most := 0.0
	try := func(nodes []int) {
		for _, s := range w.replacements(nodes) {
			// Of equal savings the first, which moves least; sums of prices are not exact.
			if worth := w.saving(&s, list); worth > most+1e-9 {
				best, most = &s, worth
			}
		}
	}
	for i := range min(len(list), consolidateAlone) {
		try(list[i : i+1])
	}
	for n := 2; n <= min(len(list), consolidateTogether); n++ {
		try(list[:n])
	}
	return best
}

// replacements are the replacements of a set of nodes that are worth a simulation, those with
// fewer machines first.
func (w *downPlanner) replacements(nodes []int) []decision.Consolidation {
	names := make([]cluster.NodeName, len(nodes))
	for i, n := range nodes {
		names[i] = w.nodes[n].Name
	}
	slices.Sort(names)
	out := []decision.Consolidation{{Nodes: names}}
	for m := 1; m <= consolidateMachines; m++ {
		for g := range w.groups {
			if gr := &w.groups[g]; gr.rule == "" && gr.Template.Unknown == "" {
				out = append(out, decision.Consolidation{Nodes: names, Group: gr.ID, Machines: m})
			}
		}
	}
	return out
}

// saving is what a replacement saves, as far as it is large enough, allowed, and every
// pod has room; 0: it is not to be done. list are the nodes that may be replaced.
func (w *downPlanner) saving(s *decision.Consolidation, list []int) float64 {
	var from []int
	for _, name := range s.Nodes {
		i, ok := w.byName[name]
		if !ok || !slices.Contains(list, i) {
			return 0
		}
		from = append(from, i)
	}
	before, after := w.prices(s, from)
	if before <= 0 || after > before*(1-w.p.ConsolidateSaving) || before-after <= 0 {
		return 0
	}
	less := make(map[int]int)
	for _, i := range from {
		less[w.nodes[i].group]++
	}
	for g, n := range less {
		gr := &w.groups[g]
		if gr.ID == s.Group {
			n -= s.Machines
		}
		if gr.target-n < gr.Min {
			return 0
		}
	}
	var to *group
	if s.Machines > 0 {
		g, ok := w.byID[s.Group]
		if !ok || w.groups[g].rule != "" || w.groups[g].Template.Unknown != "" {
			return 0
		}
		to = &w.groups[g]
		if n, _ := w.allowed(to, s.Machines); n < s.Machines {
			return 0
		}
	}
	if !w.podsFit(from, to, s.Machines) {
		return 0
	}
	return before - after
}

// prices is the price of what goes and of what comes; where a group has no price both
// are counted in machines, and what comes must be of the group of all that goes. No
// costs: the two cannot be compared.
func (w *downPlanner) prices(s *decision.Consolidation, from []int) (before, after float64) {
	priced := true
	for _, i := range from {
		price := w.groups[w.nodes[i].group].Price
		priced = priced && price > 0
		before += price
	}
	if s.Machines > 0 {
		price := w.groups[w.byID[s.Group]].Price
		priced = priced && price > 0
		after = price * float64(s.Machines)
	}
	if priced {
		return before, after
	}
	for _, i := range from {
		if w.p.Consolidate != consolidateAlways || s.Machines > 0 && w.groups[w.nodes[i].group].ID != s.Group {
			return 0, 0
		}
	}
	return float64(len(from)), float64(s.Machines)
}

// podsFit tells whether the pods of some nodes have room on the others and on so many
// machines of a group; those that are constrained to other pods only on the others. It takes
// nothing.
func (w *downPlanner) podsFit(from []int, to *group, machines int) bool {
	if w.cursors == nil {
		w.cursors = w.newCursors()
	}
	rooms := make([][]int64, machines)
	var shape *fit.NodeInfo
	for i := range rooms {
		var empty []int64
		empty, shape = w.template(to)
		rooms[i] = slices.Clone(empty)
	}
	a := tentative{unplaceable: -1}
	t := w.relocationState()
	if t != nil {
		a.mark = t.state.Mark()
	}
	for _, i := range from {
		w.nodes[i].removing = true
	}
	defer func() {
		for _, i := range from {
			w.nodes[i].removing = false
		}
		w.undoRelocation(&a)
		// Nodes that went in this simulation were passed by for good.
		w.cursors = nil
		if t != nil {
			t.restart()
		}
	}()
	for _, i := range from {
		a.classes = w.drainPlanOf(&w.nodes[i]).classes
		if t != nil {
			t.evicted = t.evicted[:0]
		}
		for _, l := range a.classes {
			left := int(w.relocateClass(t, i, l, &a))
			if left > 0 && (shape == nil || t != nil && t.state.Constrained(int(l.class)) || !fit.Passes(&w.s.Classes[l.class], shape)) {
				return false // a constrained pod on a machine that does not exist is not judged here
			}
			for r := range rooms {
				size := w.space.Class(int(l.class))
				n := min(fit.MaxFit(rooms[r], size), left)
				fit.Sub(rooms[r], size, n)
				left -= n
			}
			if left > 0 {
				return false
			}
		}
	}
	return true
}

// startConsolidation asks for the machines of a saving that has been real for long enough.
func (w *downPlanner) startConsolidation(s *decision.Consolidation) {
	s.Started = w.now
	w.wakeAt(w.now.Add(time.Second))
	if s.Machines == 0 {
		return
	}
	g := &w.groups[w.byID[s.Group]]
	g.grow += s.Machines
	g.bought, w.grew = true, true
	w.act(decision.Grow{Group: g.ID, From: g.target, To: g.size + g.grow, Rule: decision.RuleConsolidate, Why: s.Words()})
}

// continueConsolidation waits for the machines of a replacement, and ends it when its nodes have gone or
// its time is over. The nodes themselves are marked by scaleDown.
func (w *downPlanner) continueConsolidation(s *decision.Consolidation) {
	left := slices.ContainsFunc(s.Nodes, func(name cluster.NodeName) bool {
		i, ok := w.byName[name]
		return ok && w.nodes[i].state != stateOut
	})
	if !left {
		return
	}
	due := s.Started.Add(w.p.MaxNodeProvisionTime + w.p.MaxNodeStartupTime)
	if g, ok := w.byID[s.Group]; ok {
		o := &w.groups[g].Options
		due = s.Started.Add(orElse(o.MaxNodeProvisionTime, w.p.MaxNodeProvisionTime) + orElse(o.MaxNodeStartupTime, w.p.MaxNodeStartupTime))
	}
	if w.reached(due) {
		w.held("cluster", "cluster", decision.RuleConsolidate, "given up: %s", s.Words())
		return
	}
	w.wakeAt(due)
	w.out.Consolidation = s
	w.held("cluster", "cluster", decision.RuleConsolidate, "under way: %s", s.Words())
}

// replacementReady tells a node whose replacement is there, so that it goes now.
func (w *downPlanner) replacementReady(n *node) bool {
	s := w.in.Consolidation
	if s == nil || s.Started.IsZero() || w.p.Consolidate == consolidateOff || w.p.Consolidate == "" || !slices.Contains(s.Nodes, n.Name) {
		return false
	}
	here := 0
	for i := range w.nodes {
		o := &w.nodes[i]
		if o.group >= 0 && w.groups[o.group].ID == s.Group && o.state == stateReady && !o.Created.Before(s.Started.Truncate(time.Second)) {
			here++
		}
	}
	return here >= s.Machines
}

func (w *downPlanner) heldUntilDue(s *decision.Consolidation) {
	w.held("cluster", "cluster", decision.RuleConsolidate, "%s, if that is so until %s", s.Words(), stamp(s.Since.Add(w.p.ConsolidateAfter)))
}

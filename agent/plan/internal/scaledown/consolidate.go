package scaledown

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// The values of Policy.Consolidate. priced consolidates where every group
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

// Consolidate replaces nodes by fewer or cheaper machines: when the saving is large
// enough and has been real for long enough, the new machines come first, and the nodes
// are drained when these are Ready. One replacement at a time, and only while nothing
// else is going on.
func (w *Planner) Consolidate() {
	s := w.Memory.Consolidation
	switch {
	case w.Policy.Consolidate == consolidateOff || w.Policy.Consolidate == "" || !w.Policy.ScaleDown:
		return
	case w.Snapshot.Stale != "" || w.Unhealthy != "":
		w.Next.Consolidation = s
		return
	case s != nil && !s.Started.IsZero():
		w.continueConsolidation(s)
		return
	case !w.quiescent():
		w.Next.Consolidation = s
		return
	case s != nil && !w.Reached(s.Looked.Add(consolidateLook)):
		w.Next.Consolidation = s
		w.WakeAt(s.Looked.Add(consolidateLook))
		w.heldUntilDue(s)
		return
	}
	list := w.replaceable()
	if len(list) == 0 {
		return
	}
	w.looks = budget.Consolidation.Budget()
	defer w.tellConsolidation()
	if s == nil || w.costReduction(s, list) <= 0 {
		if s = w.bestReplacement(list); s == nil {
			return
		}
		s.Since = w.Now
	}
	next := *s
	next.Looked = w.Now
	w.Next.Consolidation = &next
	if w.Reached(next.Since.Add(w.Policy.ConsolidateAfter)) {
		w.startConsolidation(&next)
		return
	}
	w.WakeAt(w.Now.Add(consolidateLook))
	w.heldUntilDue(&next)
}

// quiescent tells that nothing comes, goes or is decided in this round, and that no machine
// has gone within the unneeded time: one that is bought then would be a flap.
func (w *Planner) quiescent() bool {
	if len(w.Plan.Actions)+len(w.Next.Replacements) > 0 || w.Unjudged || w.removals.any() || !w.Memory.ShrunkAt.IsZero() && !w.Reached(w.Memory.ShrunkAt.Add(w.Policy.UnneededFor)) {
		return false
	}
	if rule, _ := w.Cooldown(); rule != "" {
		return false
	}
	for i := range w.Groups {
		if g := &w.Groups[i]; g.Upcoming > 0 || g.Removing > 0 || g.Grow > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(w.Nodes, func(n round.Node) bool { return n.Removing || n.State == round.StateMarked })
}

// replaceable are the nodes whose pods may all be moved, the least used first. Pods that
// are constrained to other pods, to a place or to a volume keep their node here.
func (w *Planner) replaceable() []int {
	type row struct {
		node int
		util float64
	}
	var rows []row
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.ControlPlane || n.Group < 0 || n.State != round.StateReady || n.InUse || len(n.Headroom) > 0 || w.Policy.Consolidate == consolidatePriced && w.Groups[n.Group].Price <= 0 {
			continue
		}
		c := Candidate{Node: i, requested: true}
		if rule, _ := w.notRemovable(n, &c); rule != "" && rule != decision.RuleBusy {
			continue
		}
		if rule, _ := w.DeletionsFrozen(&w.Groups[n.Group]); rule != "" || growth.KeepsTotals(w.State, n) != "" || w.Disruption.Full(i, cluster.ReasonDear) != "" {
			continue
		}
		if cargo := w.DrainPlanOf(n); len(cargo.Blocked)+len(cargo.Completing)+cargo.Terminating > 0 || slices.ContainsFunc(cargo.Classes, func(l round.ClassCount) bool { return w.anchored(int(l.Class)) }) {
			continue
		}
		rows = append(rows, row{i, w.Utilisation(n)})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.util, b.util), cmp.Compare(a.node, b.node)) })
	out := make([]int, len(rows))
	for i := range rows {
		out[i] = rows[i].node
	}
	return out
}

// anchored tells a pod whose place depends on more than its node.
func (w *Planner) anchored(class int) bool {
	c, t := &w.Snapshot.Classes[class], w.RelocationState()
	return t != nil && t.State.Constrained(class) || len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes)+len(c.NotUnderstood) > 0
}

// bestReplacement looks for the replacement that saves most: every node for itself, and the
// least used ones together.
// It costs podsFit for 59 sets of nodes times 2*G, until the looks are used up.
func (w *Planner) bestReplacement(list []int) *decision.Consolidation {
	var best *decision.Consolidation
	most := 0.0
	try := func(nodes []int) {
		for _, s := range w.replacements(nodes) {
			if w.spent() {
				return
			}
			// Of equal savings the first, which moves least; sums of prices are not exact.
			if worth := w.costReduction(&s, list); worth > most+1e-9 {
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
func (w *Planner) replacements(nodes []int) []decision.Consolidation {
	names := make([]cluster.NodeName, len(nodes))
	for i, n := range nodes {
		names[i] = w.Nodes[n].Name
	}
	slices.Sort(names)
	out := []decision.Consolidation{{Nodes: names}}
	for m := 1; m <= consolidateMachines; m++ {
		for g := range w.Groups {
			if gr := &w.Groups[g]; gr.CanGrow() {
				out = append(out, decision.Consolidation{Nodes: names, Group: gr.ID, Machines: m})
			}
		}
	}
	return out
}

// costReduction is what a replacement saves, as far as it is large enough, allowed, and every
// pod has room; 0: it is not to be done. list are the nodes that may be replaced.
func (w *Planner) costReduction(s *decision.Consolidation, list []int) float64 {
	var from []int
	for _, name := range s.Nodes {
		i, ok := w.ByName[name]
		if !ok || !slices.Contains(list, i) {
			return 0
		}
		from = append(from, i)
	}
	before, after := w.prices(s, from)
	if before <= 0 || after > before*(1-w.Policy.ConsolidateSaving) || before-after <= 0 {
		return 0
	}
	less := make(map[int]int)
	for _, i := range from {
		less[w.Nodes[i].Group]++
	}
	for g, n := range less {
		gr := &w.Groups[g]
		if gr.ID == s.Group {
			n -= s.Machines
		}
		if gr.CorrectedTarget-n < gr.Min {
			return 0
		}
	}
	var to *round.Group
	if s.Machines > 0 {
		g, ok := w.ByID[s.Group]
		if !ok {
			return 0
		}
		to = &w.Groups[g]
		if growth.Count(w.State, to, s.Machines) < s.Machines {
			return 0
		}
	}
	if w.looks -= len(w.Nodes) + len(w.Cache.Classes.Representative); !w.podsFit(from, to, s.Machines) {
		return 0
	}
	return before - after
}

// prices is the price of what goes and of what comes; where a group has no price both
// are counted in machines, and what comes must be of the group of all that goes. No
// costs: the two cannot be compared.
func (w *Planner) prices(s *decision.Consolidation, from []int) (before, after float64) {
	priced := true
	for _, i := range from {
		price := w.Groups[w.Nodes[i].Group].Price
		priced = priced && price > 0
		before += price
	}
	if s.Machines > 0 {
		price := w.Groups[w.ByID[s.Group]].Price
		priced = priced && price > 0
		after = price * float64(s.Machines)
	}
	if priced {
		return before, after
	}
	for _, i := range from {
		if w.Policy.Consolidate != consolidateAlways || s.Machines > 0 && w.Groups[w.Nodes[i].Group].ID != s.Group {
			return 0, 0
		}
	}
	return float64(len(from)), float64(s.Machines)
}

// podsFit tells whether the pods of some nodes have room on the others and on so many
// machines of a group; pods with inter-pod constraints only on the others. It takes
// nothing.
// It costs N + C, and relocateClass for each class on the nodes.
func (w *Planner) podsFit(from []int, to *round.Group, machines int) bool {
	if w.cursors == nil {
		w.cursors = w.newCursors()
	}
	rooms := make([][]int64, machines)
	var shape *fit.NodeInfo
	for i := range rooms {
		var empty []int64
		empty, shape = w.Template(to)
		rooms[i] = slices.Clone(empty)
	}
	a := tentative{unplaceable: -1}
	t := w.RelocationState()
	if t != nil {
		a.mark = t.State.Mark()
	}
	for _, i := range from {
		w.Nodes[i].Removing = true
	}
	defer func() {
		for _, i := range from {
			w.Nodes[i].Removing = false
		}
		w.undoRelocation(&a)
		// Nodes that went in this simulation were passed by for good.
		w.cursors = nil
		if t != nil {
			t.restart()
		}
	}()
	for _, i := range from {
		a.classes = w.DrainPlanOf(&w.Nodes[i]).Classes
		for _, l := range a.classes {
			left := int(w.relocateClass(t, i, l, &a))
			if left > 0 && (shape == nil || t != nil && t.State.Constrained(int(l.Class)) || !fit.Passes(&w.Snapshot.Classes[l.Class], shape)) {
				return false // a constrained pod on a machine that does not exist is not judged here
			}
			for r := range rooms {
				size := w.Dimensions.Class(int(l.Class))
				n := min(binpack.MaxFit(rooms[r], size), left)
				binpack.Sub(rooms[r], size, n)
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
func (w *Planner) startConsolidation(s *decision.Consolidation) {
	s.Started = w.Now
	w.WakeAt(w.Now.Add(time.Second))
	if s.Machines == 0 {
		return
	}
	g := &w.Groups[w.ByID[s.Group]]
	g.Grow += s.Machines
	g.Bought, w.Grew = true, true
	w.Act(decision.Grow{Group: g.ID, From: g.CorrectedTarget, To: g.Size + g.Grow, Rule: decision.RuleConsolidate, Why: s.Words()})
}

// continueConsolidation waits for the machines of a replacement, and ends it when its nodes have gone or
// its time is over. The nodes themselves are marked by scaleDown.
func (w *Planner) continueConsolidation(s *decision.Consolidation) {
	left := slices.ContainsFunc(s.Nodes, func(name cluster.NodeName) bool {
		i, ok := w.ByName[name]
		return ok && w.Nodes[i].State != round.StateOut
	})
	if !left {
		return
	}
	due := s.Started.Add(w.Policy.MaxNodeProvisionTime + w.Policy.MaxNodeStartupTime)
	if g, ok := w.ByID[s.Group]; ok {
		o := &w.Groups[g].Options
		due = s.Started.Add(round.OrElse(o.MaxNodeProvisionTime, w.Policy.MaxNodeProvisionTime) + round.OrElse(o.MaxNodeStartupTime, w.Policy.MaxNodeStartupTime))
	}
	if w.Reached(due) {
		w.Held("cluster", "cluster", decision.RuleConsolidate, "given up: %s", s.Words())
		return
	}
	w.WakeAt(due)
	w.Next.Consolidation = s
	w.Held("cluster", "cluster", decision.RuleConsolidate, "under way: %s", s.Words())
}

// replacementReady tells a node whose replacement is there, so that it goes now.
func (w *Planner) replacementReady(n *round.Node) bool {
	s := w.Memory.Consolidation
	if s == nil || s.Started.IsZero() || w.Policy.Consolidate == consolidateOff || w.Policy.Consolidate == "" || !slices.Contains(s.Nodes, n.Name) {
		return false
	}
	here := 0
	for i := range w.Nodes {
		o := &w.Nodes[i]
		if o.Group >= 0 && w.Groups[o.Group].ID == s.Group && o.State == round.StateReady && !o.Created.Before(s.Started.Truncate(time.Second)) {
			here++
		}
	}
	return here >= s.Machines
}

func (w *Planner) heldUntilDue(s *decision.Consolidation) {
	w.Held("cluster", "cluster", decision.RuleConsolidate, "%s, if that is so until %s", s.Words(), round.Stamp(s.Since.Add(w.Policy.ConsolidateAfter)))
}

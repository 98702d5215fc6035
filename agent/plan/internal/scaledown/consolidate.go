package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/consolidation"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Consolidate looks for nodes that fewer or cheaper machines can replace.
func (w *Planner) Consolidate() {
	w.looks = budget.Consolidation.Budget()
	consolidation.New(w.State, w.Disruption, w).Decide()
	w.tellConsolidation()
}

// Removable tells a node that may go as far as it and its pods are concerned. Pods that are constrained to other pods, to a
// place or to a volume keep their node here.
func (w *Planner) Removable(i int) bool {
	n := &w.Nodes[i]
	c := Candidate{Node: i}
	if rule, _ := w.notRemovable(n, &c); rule != "" && rule != decision.RuleBusy {
		return false
	}
	if rule, _ := w.DeletionsFrozen(&w.Groups[n.Group]); rule != "" {
		return false
	}
	plan := w.DrainPlanOf(n)
	return len(plan.Blocked)+len(plan.Completing)+plan.Terminating == 0 && !slices.ContainsFunc(plan.Classes, func(l round.ClassCount) bool { return w.anchored(int(l.Class)) })
}

// Moved is how many pods of a node a drain would evict.
func (w *Planner) Moved(i int) int { return w.podsToDrain(&w.Nodes[i]).Movable }

// LooksSpent tells that the part that is at work has no looks left.
func (w *Planner) LooksSpent() bool { return w.spent() }

// Settled tells that no node goes now, and that none was bought a short time ago.
func (w *Planner) Settled() bool {
	rule, _ := w.Cooldown()
	return rule == "" && !w.removals.any()
}

// Fit tells whether the pods of some nodes have room on the others and on so many machines of a group. It costs N, C and podsFit.
func (w *Planner) Fit(from []int, to *round.Group, machines int) bool {
	w.looks -= len(w.Nodes) + len(w.Cache.Classes.Representative)
	return w.podsFit(from, to, machines)
}

// anchored tells a pod whose place depends on more than its node.
func (w *Planner) anchored(class int) bool {
	c, t := &w.Snapshot.Classes[class], w.RelocationState()
	return t != nil && t.State.Constrained(class) || len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes)+len(c.NotUnderstood) > 0
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

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

// Look counts looks of the part that is at work, and tells whether any are left.
func (w *Planner) Look(n int) bool {
	w.looks -= n
	return !w.spent()
}

// Settled tells that no node goes now, and that scale-down did not fail a short time ago. A machine that has just come holds
// nothing up: its pods are young, and where it came to save money the agent may have forgotten that in a restart.
func (w *Planner) Settled() bool {
	rule, _ := w.Cooldown()
	return (rule == "" || rule == decision.RuleCooldown) && !w.removals.any()
}

// Fit tells whether the pods of some nodes have room on the others and on so many machines of a group, and which nodes get some of
// them that nothing has needed so far. It costs N, C and podsFit.
func (w *Planner) Fit(from []int, to *round.Group, machines int) (idle []int, ok bool) {
	w.looks -= len(w.Nodes) + len(w.Cache.Classes.Representative)
	var unneeded []int // nodes that would go otherwise: here they stay
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Removing && n.State == round.StateReady {
			n.Removing, unneeded = false, append(unneeded, i)
		}
	}
	w.cursors = w.newCursors(unneeded)
	used, ok := w.podsFit(from, to, machines)
	for _, i := range unneeded {
		if w.Nodes[i].Removing = true; used[i] {
			idle = append(idle, i)
		}
	}
	return idle, ok
}

// anchored tells a pod whose place depends on more than its node.
func (w *Planner) anchored(class int) bool {
	c, t := &w.Snapshot.Classes[class], w.RelocationState()
	return t != nil && t.State.Constrained(class) || len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes)+len(c.NotUnderstood) > 0
}

// podsFit tells whether the pods of some nodes have room on the others and on so many
// machines of a group; pods with inter-pod constraints only on the others. It takes
// nothing, and tells which nodes it used.
// It costs N + C, and relocateClass for each class on the nodes.
func (w *Planner) podsFit(from []int, to *round.Group, machines int) (used map[int]bool, ok bool) {
	if w.cursors == nil {
		w.cursors = w.newCursors(nil)
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
				return nil, false // a constrained pod on a machine that does not exist is not judged here
			}
			for r := range rooms {
				size := w.Dimensions.Class(int(l.Class))
				n := min(binpack.MaxFit(rooms[r], size), left)
				binpack.Sub(rooms[r], size, n)
				left -= n
			}
			if left > 0 {
				return nil, false
			}
		}
	}
	used = make(map[int]bool, len(a.done))
	for _, m := range a.done {
		used[int(w.cursors.to[m.at])] = true
	}
	return used, true
}

package scaledown

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/consolidation"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/incoming"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Consolidate looks for nodes that fewer or cheaper machines can replace.
func (w *Planner) Consolidate() {
	w.looks = budget.Consolidation.Budget()
	consolidation.New(w.State, w.Disruption, w).Decide()
	w.tellConsolidation()
}

// Removable tells a node that may go as far as it and its pods are concerned.
func (w *Planner) Removable(i int) bool {
	c := w.candidate(i)
	if rule, _ := w.objection(ownChecks, &c); rule != "" && rule != decision.RuleBusy {
		return false
	}
	if rule, _ := w.DeletionsFrozen(w.groupOf(&c)); rule != "" {
		return false
	}
	plan := w.DrainPlanOf(&w.Nodes[i])
	return len(plan.Blocked)+len(plan.Completing)+plan.Terminating == 0
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
		if n := &w.Nodes[i]; n.Removing {
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

// podsFit tells whether the pods of some nodes have room on the others and on so many machines of a group, and give up no domain of
// their topology spread. It takes nothing, and tells which nodes it used.
// It costs N + C, and relocateClass for each class on the nodes.
func (w *Planner) podsFit(from []int, to *round.Group, machines int) (used map[int]bool, ok bool) {
	if w.cursors == nil {
		w.cursors = w.newCursors(nil)
	}
	a, t, st := tentative{unplaceable: -1}, w.RelocationState(), (*fit.State)(nil)
	if t != nil {
		st = t.State
		a.mark = st.Mark()
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
		a.classes = append(a.classes, w.DrainPlanOf(&w.Nodes[i]).Classes...)
	}
	w.beginConstrained(t, from, &a)
	for _, i := range from {
		w.Nodes[i].Removing = true
	}
	m := incoming.New(w.State, st, to, machines)
	for _, first := range []bool{true, false} { // constrained pods have fewer nodes to choose from
		for _, i := range from {
			for _, l := range w.DrainPlanOf(&w.Nodes[i]).Classes {
				if t.constrained(l.Class) == first && !w.fitsAlso(t, i, l, m, &a) {
					return nil, false
				}
			}
		}
	}
	if _, why := w.lostDomain(&a); why != "" {
		return nil, false
	}
	used = make(map[int]bool, len(a.done))
	for _, r := range a.done {
		used[int(w.cursors.to[r.at])] = true
	}
	return used, true
}

// fitsAlso tells whether pods of a class on a node have room on the others or on new machines, and takes it.
func (w *Planner) fitsAlso(t *relocationConstraints, from int, l round.ClassCount, m *incoming.Machines, a *tentative) bool {
	for l.N > 0 {
		before := l.N
		l.N = w.relocateClass(t, from, l, a)
		l.N = int32(m.Place(int(l.Class), int(l.N)))
		if l.N == before {
			return false
		}
	}
	return true
}

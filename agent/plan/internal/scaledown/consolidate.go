package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/consolidation"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// Consolidate looks for nodes that fewer or cheaper machines can replace.
func (w *Planner) Consolidate() {
	w.looks = round.ConsolidationPart.Budget()
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

// Fit tells whether the pods of some nodes have room on the others and on so many machines of a group, give up no domain of their
// topology spread, and which nodes get some of them that nothing has needed so far. It takes nothing. It costs N, and place for each
// class on the nodes.
func (w *Planner) Fit(from []int, to *round.Group, machines int) (idle []int, ok bool) {
	b := w.onBoard()
	w.looks -= len(w.Nodes) / looksPerNode
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Removing && n.State == round.StateReady {
			b.Stand(i, schedsim.Last) // it would go otherwise: here it stays
		}
	}
	a, ok := w.podsFit(from, to, machines)
	if ok {
		for _, p := range b.Placed(a.mark) {
			if p.Node < len(w.Nodes) && w.Nodes[p.Node].Removing && !slices.Contains(idle, p.Node) {
				idle = append(idle, p.Node)
			}
		}
		slices.Sort(idle)
	}
	b.Rollback(a.mark)
	return idle, ok
}

// looksPerNode is how many nodes Fit passes by for what a look costs.
const looksPerNode = 32

// Drawn tells whether pods that Fit has found room for also have a place where kube-scheduler's scores put each of them, in one order of their
// classes and backwards: on the other nodes, also those that go otherwise, and on the machines. It takes nothing, and costs Bind for each pod twice.
func (w *Planner) Drawn(from []int, to *round.Group, machines int) bool {
	return w.drawn(from, to, machines, false) && w.drawn(from, to, machines, true)
}

func (w *Planner) drawn(from []int, to *round.Group, machines int, backwards bool) bool {
	a := w.beginSet(from)
	b := w.board
	defer b.Rollback(a.mark)
	w.addMachines(to, machines)
	if backwards {
		a.classes = slices.Clone(a.classes)
		slices.Reverse(a.classes)
	}
	for _, l := range a.classes {
		if w.paid(func() int { return b.Bind(int(l.Class), int(l.N)) }) < l.N {
			return false
		}
	}
	return true
}

// beginSet begins a move of all pods of some nodes, which are emptied.
func (w *Planner) beginSet(from []int) attempt {
	var loads []round.ClassCount
	for _, i := range from {
		loads = append(loads, w.DrainPlanOf(&w.Nodes[i]).Classes...)
	}
	a := w.beginMove(loads)
	for _, i := range from {
		w.empty(i, w.DrainPlanOf(&w.Nodes[i]).Classes)
	}
	return a
}

// addMachines puts empty machines of a group on the board, where they come after the nodes.
func (w *Planner) addMachines(to *round.Group, n int) {
	for range n {
		room, shape := w.Template(to)
		at := w.board.AddNode(schedsim.Node{Info: shape, Allocatable: to.Template.Allocatable, Room: room, VolumeLimits: to.Template.VolumeLimits})
		w.board.Stand(at, schedsim.Last)
	}
}

// podsFit tells whether the pods of some nodes have room on the others and on so many machines of a group, and give up no domain of
// their topology spread. Machines come after nodes.
func (w *Planner) podsFit(from []int, to *round.Group, machines int) (a attempt, ok bool) {
	a = w.beginSet(from)
	w.addMachines(to, machines)
	for _, l := range a.classes {
		if w.place(l.Class, l.N, false) > 0 {
			return a, false
		}
	}
	_, why := w.lostDomain(&a)
	return a, why == ""
}

package scaledown

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A look asks whether a pod may go to a node. Its price is what it takes: 70 to 200 ns by a
// node's room, labels and taints, ten times that by the pods around.
const (
	relocationAgain = 10 * time.Second
)

// spent tells that the part that is at work has no looks left. From then on no pod finds room,
// so that its node stays.
func (w *Planner) spent() bool { return w.looks < 0 }

// tellRelocation counts the looks of a round, and tells of the nodes that there were none
// left for. They stay, and their timers run on. The next round, in ten seconds at most, begins
// with them, so that each node comes to its turn.
func (w *Planner) tellRelocation() {
	w.Spent.Add(round.RelocationPart, round.RelocationPart.Budget()-w.looks)
	if !w.spent() {
		return
	}
	slices.Sort(w.Next.Unlooked)
	w.BudgetSpent(round.RelocationPart, "%d nodes were not looked at and stay; the next round begins with them", len(w.Next.Unlooked))
	w.WakeAt(w.Now.Add(relocationAgain))
}

// tellConsolidation counts the looks of a search for savings, and tells where it ended early.
func (w *Planner) tellConsolidation() {
	w.Spent.Add(round.ConsolidationPart, round.ConsolidationPart.Budget()-w.looks)
	if w.spent() {
		w.BudgetSpent(round.ConsolidationPart, "the largest saving that was found by then counts")
	}
}

package round

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Part is a part of a round with a budget of steps of its own.
type Part int

// The parts whose steps are counted. Steps are counted and not timed, so that equal inputs
// give equal outputs on any machine.
const (
	PartSearch        Part = iota // scale-up's search among purchases, each held against a model of kube-scheduler
	PartPacking                   // scale-up's packing
	PartRelocation                // scale-down's search for room for the pods of a node
	PartConsolidation             // the search for fewer or cheaper machines
	parts
)

// Budget is how many steps the part may take in a round. They cost a second of processor time
// together.
func (p Part) Budget() int {
	return [parts]int{PartSearch: 1_200_000, PartPacking: binpack.ColumnPool, PartRelocation: 3_000_000, PartConsolidation: 2_000_000}[p]
}

// Parts are all parts, in the order of a round.
func Parts() []Part { return []Part{PartSearch, PartPacking, PartRelocation, PartConsolidation} }

func (p Part) String() string { return partNames[p] }

var partNames = [parts]string{"scale-up's search", "scale-up's packing", "scale-down's relocation", "consolidation"}

// budget is what a round has spent on its parts.
type budget struct {
	steps [parts]int
	told  [parts]bool
}

// CountSteps adds to the steps of a part.
func (w *State) CountSteps(p Part, n int) { w.budget.steps[p] += n }

// Steps is what a part has spent in this round.
func (w *State) Steps(p Part) int { return w.budget.steps[p] }

// BudgetSpent tells in the Plan that a part has no steps left and decides the rest coarsely,
// once a part.
func (w *State) BudgetSpent(p Part, format string, args ...any) {
	if w.budget.told[p] {
		return
	}
	w.budget.told[p] = true
	w.HeldWhy("cluster", "cluster", decision.RuleBudget, "the budget of "+p.String()+" is spent: "+fmt.Sprintf(format, args...))
}

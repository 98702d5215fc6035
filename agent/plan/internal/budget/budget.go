// Package budget has the parts of a round that search, and the budget of each in steps. Steps are
// counted and not timed, so that equal inputs give equal outputs on any machine. Small and apart: every searching part of the engine counts by it. It refuses to
// know what a part searches for, and to read a clock.
package budget

// Part is a part of a round with a budget of steps of its own.
type Part int

// The parts whose steps are counted, in the order of a round.
const (
	Search        Part = iota // scale-up's search among purchases, each held against a model of kube-scheduler
	Relocation                // scale-down's search for room for the pods of a node
	Consolidation             // the search for fewer or cheaper machines
	count
)

// Budget is how many steps the part may take in a round. The budgets of all parts cost a second
// of processor time together.
func (p Part) Budget() int {
	return [count]int{Search: 1_000_000, Relocation: 3_000_000, Consolidation: 2_000_000}[p]
}

// Parts are all parts, in the order of a round.
func Parts() []Part { return []Part{Search, Relocation, Consolidation} }

func (p Part) String() string {
	return [count]string{Search: "scale-up's search", Relocation: "scale-down's relocation", Consolidation: "consolidation"}[p]
}

// Spent counts the steps that a round has spent on each of its parts.
type Spent struct {
	steps [count]int
	told  [count]bool
}

// Add adds to the steps of a part.
func (s *Spent) Add(p Part, n int) { s.steps[p] += n }

// Of returns the steps that a part has spent.
func (s *Spent) Of(p Part) int { return s.steps[p] }

// TellOnce reports whether this is the first time that it is told that the part has no steps left.
func (s *Spent) TellOnce(p Part) bool {
	first := !s.told[p]
	s.told[p] = true
	return first
}

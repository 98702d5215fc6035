package round

// Part is a part of a round that searches, with a budget of steps of its own. Steps are counted and not timed, so that equal inputs give
// equal outputs on any machine.
type Part int

// The parts whose steps are counted, in the order of a round.
const (
	SearchSteps        Part = iota // scale-up's search among purchases, each held against a model of kube-scheduler
	RelocationSteps                // scale-down's search for room for the pods of a node
	ConsolidationSteps             // the search for fewer or cheaper machines
	partCount
)

// Budget is how many steps the part may take in a round. The budgets of all parts cost a second
// of processor time together.
func (p Part) Budget() int {
	return [partCount]int{SearchSteps: 1_000_000, RelocationSteps: 3_000_000, ConsolidationSteps: 2_000_000}[p]
}

// Parts are all parts, in the order of a round.
func Parts() []Part { return []Part{SearchSteps, RelocationSteps, ConsolidationSteps} }

func (p Part) String() string {
	return [partCount]string{SearchSteps: "scale-up's search", RelocationSteps: "scale-down's relocation", ConsolidationSteps: "consolidation"}[p]
}

// Spent counts the steps that a round has spent on each of its parts.
type Spent struct {
	steps [partCount]int
	told  [partCount]bool
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

package round

// Part is a part of a round with a budget of steps of its own.
type Part int

// The parts whose steps are counted, in the order of a round.
const (
	SearchPart        Part = iota // scale-up's search among purchases, each held against a model of kube-scheduler
	RelocationPart                // scale-down's search for room for the pods of a node
	ConsolidationPart             // the search for fewer or cheaper machines
	partCount
)

// Budget is how many steps the part may take in a round. The budgets of all parts cost a second
// of processor time together.
func (p Part) Budget() int {
	return [partCount]int{SearchPart: 1_000_000, RelocationPart: 3_000_000, ConsolidationPart: 2_000_000}[p]
}

// Parts are all parts, in the order of a round.
func Parts() []Part { return []Part{SearchPart, RelocationPart, ConsolidationPart} }

func (p Part) String() string {
	return [partCount]string{SearchPart: "scale-up's search", RelocationPart: "scale-down's relocation", ConsolidationPart: "consolidation"}[p]
}

// StepsSpent counts the steps that a round has spent on each of its parts.
type StepsSpent struct {
	steps [partCount]int
	told  [partCount]bool
}

// Add adds to the steps of a part.
func (s *StepsSpent) Add(p Part, n int) { s.steps[p] += n }

// Of returns the steps that a part has spent.
func (s *StepsSpent) Of(p Part) int { return s.steps[p] }

// TellOnce reports whether this is the first time that it is told that the part has no steps left.
func (s *StepsSpent) TellOnce(p Part) bool {
	first := !s.told[p]
	s.told[p] = true
	return first
}

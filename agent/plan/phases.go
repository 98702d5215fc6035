package plan

// Phase is a part of a round, for a caller that times it.
type Phase int

// The phases, in their order.
const (
	PhaseState     Phase = iota // what is there and what is coming is counted
	PhaseScaleUp                // room is found for pods, and bought
	PhaseScaleDown              // it is decided which nodes may go
)

// phaseAt are the steps that a phase begins with.
var phaseAt = map[string]Phase{steps[0].name: PhaseState, stepScaleUp: PhaseScaleUp, stepDrain: PhaseScaleDown}

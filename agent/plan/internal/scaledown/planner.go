package scaledown

import (
	"math"
	"strconv"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Cache is what one round worked out for the next.
type Cache struct {
	candidates []Candidate
	busy       map[utilisationKey]string // see busyWords
}

// Planner is one round of scale-down.
type Planner struct {
	*round.State
	// Disruption says which nodes are replaced, and what budgets allow.
	Disruption *disruption.Round

	cache    *Cache
	removals removals
	paused   bool // pause is known; see Cooldown
	pause    decision.Refusal
	allowed  map[string]bool // see allowedAtFirst
	// applied is every node with what is on it and with the pending pods of this round's
	// scale-up; nil: scale-up has not worked it out.
	applied *fit.State

	board     *board  // nil: not asked for yet
	marked    []int   // nodes that this round has marked
	orders    []order // nodes in whose place a machine is ordered
	late      []int   // see lateClasses
	lateKnown bool
	looks     int // that are left of the budget of the part that is at work
}

// utilisationKey is a utilisation in whole per cent and the limit that it is above.
type utilisationKey struct {
	percent int
	limit   float64
}

// maxBusyWords bounds how many are remembered in words: a utilisation beyond that is made
// of what nobody reports.
const maxBusyWords = 1000

// busyWords say that a node is used too much to go. Few of them differ.
func (e *Cache) busyWords(util, limit float64) string {
	if !(util < maxBusyWords/100) || len(e.busy) >= maxBusyWords {
		return "utilisation " + percent(util) + " is above " + percent(limit)
	}
	key := utilisationKey{int(math.RoundToEven(util * 100)), limit}
	words, ok := e.busy[key]
	if !ok {
		words = "utilisation " + percent(util) + " is above " + percent(limit)
		round.Set(&e.busy, key, words)
	}
	return words
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 0, 64) + "%" }

// New begins scale-down.
func New(w *round.State, c *Cache) *Planner {
	return &Planner{State: w, Disruption: disruption.New(w), cache: c, looks: round.RelocationPart.Budget()}
}

// Constraints judges the pods of constrained classes; nil: no class asks for anything of other pods or of volumes.
func (w *Planner) Constraints() *fit.State { return w.onBoard().state }

// SetApplied hands over what scale-up returned.
func (w *Planner) SetApplied(st *fit.State) { w.applied = st }

// Release lets go of what belongs to the round.
func (c *Cache) Release() { clear(c.candidates) }

package plan

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaledown"
)

// Engine decides round after round and keeps what one round worked out for the next,
// so that a round costs what changed. Its Decide gives exactly what the function
// Decide gives for the same three values; the zero Engine is ready, and knows nothing.
//
// It relies on the promise of a Snapshot: its values are never written to after they were
// handed in. Not safe for concurrent use.
type Engine struct {
	// Entered is told of each phase as it begins, so that a caller with a clock can time it;
	// nil: no caller asks. An answer from memory has no phases.
	Entered func(Phase)

	policy decision.Policy
	round  round.Cache
	down   scaledown.Cache

	cacheValid bool        // key is the input of a decision that may be given again
	key        decisionKey // the last one that was worked out
	plan       decision.Plan
	cached     bool // the last Decide was answered from memory
}

// decisionKey holds the inputs of a round that its answer depends on.
type decisionKey struct {
	s     cluster.Snapshot
	m     decision.Memory
	p     decision.Policy
	until time.Time // the answer may be another one from then on; zero: never
}

// maxCacheAge is how long an answer is believed without being worked out again, whatever it
// says itself.
const maxCacheAge = time.Minute

// Decide is the function Decide with a memory.
func (e *Engine) Decide(s cluster.Snapshot, m decision.Memory, p decision.Policy) (decision.Plan, decision.Memory) {
	if e.cached = e.cacheValid && e.sameInputs(&s, &m, &p); e.cached {
		return e.plan, e.key.m
	}
	if !round.SamePolicy(&e.policy, &p) {
		e.policy, e.round.Facts = p, nil
	}
	w := newRun(&e.round, &e.down, &s, &m, &p)
	for _, step := range steps {
		if phase, begins := phaseAt[step.name]; begins && e.Entered != nil {
			e.Entered(phase)
		}
		step.do(w)
	}
	e.remember(w.State, m)
	return w.Plan, w.Next
}

// Cached tells that the last Decide gave the Plan and the Memory of the one before it,
// because nothing that they depend on has changed.
func (e *Engine) Cached() bool { return e.cached }

// sameInputs tells that the last decision is the decision for these inputs too.
func (e *Engine) sameInputs(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) bool {
	l := &e.key
	if s.Now.Before(l.s.Now) || s.Now.Sub(l.s.Now) >= maxCacheAge || !l.until.IsZero() && !s.Now.Before(l.until) || len(s.Outcomes) > 0 {
		return false
	}
	if !round.Same(m, &l.m) || !round.SamePolicy(p, &l.p) || !round.SameSnapshot(s, &l.s) {
		return false
	}
	for i := range s.Groups {
		if was, is := &l.s.Groups[i], &s.Groups[i]; round.Fresh(was, l.s.Now, p) != round.Fresh(is, s.Now, p) || !readsAlike(m, was, is) {
			return false
		}
	}
	return true
}

// readsAlike tells that the moment of a group's read plays no part in the answer: it
// does only while a resize is awaited.
func readsAlike(m *decision.Memory, was, is *cluster.NodeGroup) bool {
	_, awaited := m.Resized[is.ID]
	return was.ReadAt.Equal(is.ReadAt) || !awaited
}

// remember remembers a round. Its answer stands for the next ones when it changed nothing:
// no action, no outcome to learn from, and the Memory that it was given.
func (e *Engine) remember(w *round.State, m decision.Memory) {
	e.cacheValid = !w.Uncacheable && len(w.Plan.Actions) == 0 && len(w.Snapshot.Outcomes) == 0 && equalMemory(m, w.Next)
	e.plan, e.key = decision.Plan{}, decisionKey{}
	if e.cacheValid {
		w.Next = m // the same maps: the next call with them is recognized by their address
		e.plan, e.key = w.Plan, decisionKey{s: *w.Given, m: m, p: *w.Policy, until: w.Until}
	}
	e.round.Held = len(w.Plan.Held)
	e.down.Release()
	clear(e.round.Nodes) // no Snapshot is kept alive by memory that is only waiting
}

// equalMemory compares two Memories. The large maps are compared by hand.
func equalMemory(a, b decision.Memory) bool {
	byTime := func(x, y time.Time) bool { return x.Equal(y) }
	equal := equalMaps(a.Unneeded, b.Unneeded, byTime) && equalMaps(a.Unready, b.Unready, byTime) &&
		a.Reservations.Equal(b.Reservations) && maps.Equal(a.ReservedMissing, b.ReservedMissing) && slices.Equal(a.MissingByMachine, b.MissingByMachine) &&
		equalMaps(a.Resized, b.Resized, func(x, y decision.Resized) bool { return x.To == y.To && x.At.Equal(y.At) && x.Seen.Equal(y.Seen) }) &&
		slices.EqualFunc(a.Backoff, b.Backoff, func(x, y decision.Backoff) bool {
			return x.Group == y.Group && x.Cause == y.Cause && x.Step == y.Step && x.Text == y.Text && x.Until.Equal(y.Until) && x.Last.Equal(y.Last)
		}) &&
		equalMaps(a.Unregistered, b.Unregistered, byTime) && equalMaps(a.Draining, b.Draining, byTime) &&
		equalMaps(a.Deleted, b.Deleted, byTime) && equalMaps(a.Short, b.Short, byTime) && a.ScaleDownAfter.Equal(b.ScaleDownAfter) && a.BurstOrdered.Equal(b.BurstOrdered) &&
		a.LittleFilled.Equal(b.LittleFilled)
	for _, m := range []*decision.Memory{&a, &b} {
		m.Unneeded, m.Unready, m.Resized, m.Backoff = nil, nil, nil, nil
		m.Reservations, m.ReservedMissing, m.MissingByMachine = nil, nil, nil
		m.Unregistered, m.Draining, m.Deleted, m.Short, m.ScaleDownAfter = nil, nil, nil, nil, time.Time{}
		m.BurstOrdered, m.LittleFilled = time.Time{}, time.Time{}
	}
	return equal && reflect.DeepEqual(a, b) // the fields that a later version added
}

func equalMaps[K comparable, V any](a, b map[K]V, eq func(V, V) bool) bool {
	return len(a) == len(b) && maps.EqualFunc(a, b, eq)
}

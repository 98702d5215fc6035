package report

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// The parts of a round in function_duration_seconds, beside "main".
const (
	stepState        = "updateClusterState" // the Snapshot and what the round counts in it
	stepScaleUp      = "scaleUp"            // finding room, and the calls that grow groups
	stepFindUnneeded = "findUnneeded"       // which nodes may go
	stepScaleDown    = "scaleDown"          // marks, evictions and terminations
)

// RoundTimes is how long the parts of one round took, by the names of Cluster
// Autoscaler's function_duration_seconds.
type RoundTimes struct {
	step  string // under way; "": none
	since time.Time
	took  map[string]time.Duration
}

// Begin starts the round with its look at the cluster.
func (r *RoundTimes) Begin() { r.enter(stepState) }

// Phase follows the engine.
func (r *RoundTimes) Phase(p plan.Phase) {
	switch p {
	case plan.PhaseState:
		r.enter(stepState)
	case plan.PhaseScaleUp:
		r.enter(stepScaleUp)
	case plan.PhaseScaleDown:
		r.enter(stepFindUnneeded)
	}
}

// Decided ends the part that is under way.
func (r *RoundTimes) Decided() { r.enter("") }

// enter ends the part that is under way and begins another.
func (r *RoundTimes) enter(step string) {
	now := time.Now()
	r.add(r.step, now.Sub(r.since))
	r.step, r.since = step, now
}

func (r *RoundTimes) add(step string, d time.Duration) {
	if step == "" {
		return
	}
	if r.took == nil {
		r.took = map[string]time.Duration{}
	}
	r.took[step] += d
}

// Acted adds the time of the actions: the executor grows groups first, then come marks,
// evictions and terminations.
func (r *RoundTimes) Acted(start time.Time, outcomes []cluster.Outcome) {
	grown, done := start, start
	for _, o := range outcomes {
		if o.Action == "grow" && o.At.After(grown) {
			grown = o.At
		}
		if o.At.After(done) {
			done = o.At
		}
	}
	if grown.After(start) {
		r.add(stepScaleUp, grown.Sub(start))
	}
	if done.After(grown) {
		r.add(stepScaleDown, done.Sub(grown))
	}
}

// PartsTook times the parts of one round.
func (m *Metrics) PartsTook(r *RoundTimes) {
	for step, d := range r.took {
		m.stepTook(step, d)
	}
}

// RoundTook times one whole round, actions included.
func (m *Metrics) RoundTook(d time.Duration) { m.stepTook("main", d) }

func (m *Metrics) stepTook(step string, d time.Duration) {
	m.duration.WithLabelValues(step).Observe(d.Seconds())
	m.quantile.WithLabelValues(step).Observe(d.Seconds())
}

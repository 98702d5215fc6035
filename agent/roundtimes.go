package agent

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// roundTimes is how long the parts of one round took, by the names of Cluster
// Autoscaler's function_duration_seconds.
type roundTimes struct {
	step  string // under way; "": none
	since time.Time
	took  map[string]time.Duration
}

// enter ends the part that is under way and begins another.
func (r *roundTimes) enter(step string) {
	now := time.Now()
	r.add(r.step, now.Sub(r.since))
	r.step, r.since = step, now
}

func (r *roundTimes) add(step string, d time.Duration) {
	if step == "" {
		return
	}
	if r.took == nil {
		r.took = map[string]time.Duration{}
	}
	r.took[step] += d
}

// phase follows the engine.
func (r *roundTimes) phase(p plan.Phase) {
	switch p {
	case plan.PhaseState:
		r.enter(report.StepState)
	case plan.PhaseScaleUp:
		r.enter(report.StepScaleUp)
	case plan.PhaseScaleDown:
		r.enter(report.StepFindUnneeded)
	}
}

// acted adds the time of the actions: the executor grows groups first, then come marks,
// evictions and terminations.
func (r *roundTimes) acted(start time.Time, outcomes []cluster.Outcome) {
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
		r.add(report.StepScaleUp, grown.Sub(start))
	}
	if done.After(grown) {
		r.add(report.StepScaleDown, done.Sub(grown))
	}
}

// report hands the times on.
func (r *roundTimes) report(m *report.Metrics) {
	for step, d := range r.took {
		m.StepTook(step, d)
	}
}

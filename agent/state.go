package agent

import (
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// state is what the metrics ask the agent for.
func (a *app) state() report.State {
	return report.State{
		Acting:     func() bool { may, _ := a.leadership.MayAct(); return may },
		DryRun:     a.cfg.Scaler.DryRun,
		Kubernetes: func() bool { return a.observer.Stale() == "" },
		Cloud:      func() bool { _, at, err := a.inventory.Last(); return err == nil && !at.IsZero() },
		// The last good file stays in force while the new one is wrong.
		GroupsFault: a.settings.Fault,
	}
}

// zeroRules gives the counters by rule of the nodecleaner their first values, so that
// increase sees the first event of a rule.
func zeroRules(m *report.Metrics) {
	var held, proofs []string
	for _, r := range reaper.Rules() {
		if strings.HasPrefix(r.Says, "proof") {
			proofs = append(proofs, r.ID)
		} else {
			held = append(held, r.ID)
		}
	}
	m.Zero("nodecleaner_held_total", held...)
	m.Zero("nodecleaner_deleted_total", proofs...)
	m.Zero("nodecleaner_breakers_total", reaper.Breakers()...)
}

// unready says what the agent waits for before its services work.
func (a *app) unready() string {
	select {
	case <-a.loaded:
		return ""
	default:
		return "the caches are not filled yet"
	}
}

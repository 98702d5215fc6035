package agent

import "github.com/autoscaler-agent/autoscaler-agent/agent/report"

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

// unready says what the agent waits for before its services work.
func (a *app) unready() string {
	if a.isReady.Load() {
		return ""
	}
	return "the caches are not filled yet"
}

package plan

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Explain says why a pod waits, why a node stays or goes, or why a group can or
// cannot change. It decides as Decide does, from the same values, and so never says
// anything else.
func Explain(s cluster.Snapshot, m decision.Memory, p decision.Policy, q decision.Query) decision.Explanation {
	s = s.Seated()
	return explanation(runUntil(&s, &m, &p, stepScaleUp), runUntil(&s, &m, &p, stepScaleDown), runUntil(&s, &m, &p, stepFinish), q)
}

// runUntil runs a round up to a step, exclusive.
func runUntil(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy, name string) moment {
	r := newRun(new(roundCache), new(drainCache), s, m, p)
	for _, step := range steps {
		if step.name == name {
			break
		}
		step.do(r)
	}
	return moment{r.roundState, r.up, r.down}
}

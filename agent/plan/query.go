package plan

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/explain"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/purchase"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaledown"
)

// Explain says why a pod waits, why a node stays or goes, or why a group can or
// cannot change. It decides as Decide does, from the same values, and so never says
// anything else.
func Explain(s cluster.Snapshot, m decision.Memory, p decision.Policy, q decision.Query) decision.Explanation {
	s = s.Seated()
	return explain.Explain(runUntil(&s, &m, &p, stepScaleUp), runUntil(&s, &m, &p, stepScaleDown), runUntil(&s, &m, &p, stepFinish), q)
}

// Nodes lists the machines with their states, with what differs from what their groups would
// start today, and with the first reason for which this round leaves them as they are.
func Nodes(s cluster.Snapshot, m decision.Memory, p decision.Policy) decision.Nodes {
	s = s.Seated()
	return explain.Nodes(runUntil(&s, &m, &p, stepFinish))
}

// Machines is the same list for the cost of looking alone: states and drift are those of this moment, and the
// reasons are those of the last plan. No step runs that decides.
func Machines(s cluster.Snapshot, m decision.Memory, p decision.Policy, last decision.Plan) decision.Nodes {
	s = s.Seated()
	moment := runUntil(&s, &m, &p, stepHealth)
	moment.Plan.Held = last.Held
	return explain.Nodes(moment)
}

// runUntil runs a round up to a step, exclusive.
func runUntil(s *cluster.Snapshot, m *decision.Memory, p *decision.Policy, name string) explain.Moment {
	r := newRun(new(round.Cache), new(scaledown.Cache), s, m, p)
	for _, step := range steps {
		if step.name == name {
			break
		}
		step.do(r)
	}
	return explain.Moment{State: r.State, ScaleUp: r.up, ScaleDown: r.down}
}

// Sum is every group's reason counted together and with the groups' names:
// "2 Insufficient cpu (groups a, b), 1 ... (group c)". Events carry it.
func Sum(refusals []decision.Refusal) string { return explain.Sum(refusals) }

// Expanders are the names that Policy.Expander may hold, sorted.
func Expanders() []string { return purchase.Expanders() }

// UsesPriorities tells whether a chain of expanders reads the live priority map.
func UsesPriorities(names string) bool { return purchase.UsesPriorities(names) }

// UnknownExpanders are the names of a chain that this build does not know.
func UnknownExpanders(names string) []string { return purchase.UnknownExpanders(names) }

// Package plan decides: Decide(Snapshot, Memory, Policy) is a function of three
// values that returns a Plan and the next Memory.
//
// Floor 1. Equal inputs give equal outputs, whatever the order of slices. It
// refuses to do I/O, to read a clock (time is Snapshot.Now), to use global chance,
// and to delete anything on stale facts. Effects are values: agent/act carries
// them out, re-checking each.
package plan

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// run is one round at work.
type run struct {
	*roundState
	up   *upPlanner
	down *downPlanner
}

func newRun(c *roundCache, d *drainCache, s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) *run {
	w := newRound(c, s, m, p)
	return &run{roundState: w, up: newUpPlanner(w), down: newDownPlanner(w, d)}
}

// steps is the engine: what a round does, in this order. Each step adds actions and
// reasons, and takes back nothing that an earlier one decided.
var steps = []struct {
	name string
	do   func(*run)
}{
	{"see what is to be kept free", func(r *run) { r.openHeadroom() }},
	{"carry over what outlives a round", func(r *run) { r.remember() }},
	{"learn what became of the last plan", func(r *run) { r.learnOutcomes() }},
	{"match instances, pods and nodes", func(r *run) { r.index() }},
	{"count what every group has and what is upcoming", func(r *run) { r.account() }},
	{"count upcoming machines that nobody reserved", func(r *run) { r.countOrphanedUpcoming() }},
	{"judge the cluster's health", func(r *run) { r.health(); r.up.checkExpanders() }},
	{"terminate instances that never became nodes", func(r *run) { r.reapInstances() }},
	{"judge which groups can grow", func(r *run) { r.judgeGroups() }},
	{"grow groups to their minimum", func(r *run) { r.enforceMin() }},
	{"collect the pods that want room", func(r *run) { r.gather() }},
	{"hold the pods that cannot be judged", func(r *run) { r.holdUnknown() }},
	{stepScaleUp, func(r *run) { r.down.setApplied(r.up.decide()) }},
	{"empty the machines that the cloud ends", func(r *run) { r.down.drainInterrupted() }},
	{"go on with the nodes that carry a mark", func(r *run) { r.down.resume() }},
	{stepScaleDown, func(r *run) { r.down.decide() }},
	{"replace nodes by fewer or cheaper machines", func(r *run) { r.down.consolidate() }},
	{"tell the scheduler which nodes may go", func(r *run) { r.down.updateSoftTaints() }},
	{stepFinish, func(r *run) { r.finish() }},
}

// The steps that Explain stops before.
const (
	stepScaleUp   = "find room for them, and buy what is missing"
	stepScaleDown = "mark nodes that nothing needs"
	stepFinish    = "put reasons in order"
)

// Decide is one round: what to do about a Snapshot, and what to remember. It changes
// none of its arguments, and equal arguments give equal results, whatever the order
// of the Snapshot's slices.
func Decide(s cluster.Snapshot, m decision.Memory, p decision.Policy) (decision.Plan, decision.Memory) {
	return new(Engine).Decide(s, m, p)
}

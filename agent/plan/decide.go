// Package plan decides: Decide(Snapshot, Memory, Policy) is a function of three
// values that returns a Plan and the next Memory.
//
// Layer 1, the top of the engine: the list of steps and the cached decision. Equal inputs give equal outputs, whatever the order of slices. It
// refuses to do I/O, to read a clock (time is Snapshot.Now), to use global chance,
// and to delete anything on stale facts. Effects are values: agent/act carries
// them out, re-checking each.
package plan

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaledown"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/scaleup"
)

// run is one round at work.
type run struct {
	*round.State
	up   *scaleup.Planner
	down *scaledown.Planner
}

func newRun(c *round.Cache, d *scaledown.Cache, s *cluster.Snapshot, m *decision.Memory, p *decision.Policy) *run {
	w := round.New(c, s, m, p)
	return &run{State: w, up: scaleup.New(w), down: scaledown.New(w, d)}
}

// steps is the engine: the steps of a round, in this order. Each step adds actions and
// reasons, and takes back no decision of an earlier step.
var steps = []struct {
	name string
	do   func(*run)
}{
	{"see what is to be kept free", func(r *run) { r.OpenHeadroom() }},
	{"carry over what outlives a round", func(r *run) { r.Remember() }},
	{"learn what became of the last plan", func(r *run) { r.LearnOutcomes() }},
	{"match instances, pods and nodes", func(r *run) { r.Index() }},
	{"remember what DaemonSets take of machines", func(r *run) { r.Next.DaemonPods = r.Shares().Remember(r.Dimensions, r.Now, r.Reached) }},
	{"count what every group has and what is upcoming", func(r *run) { r.Account() }},
	{"count upcoming machines that nobody reserved", func(r *run) { r.CountOrphanedUpcoming() }},
	{"tell which nodes are still starting", func(r *run) { r.TellStarting() }},
	{stepHealth, func(r *run) { r.Health(); r.up.CheckExpanders() }},
	{"terminate instances that never became nodes", func(r *run) { r.down.ReapInstances() }},
	{"name the groups that are left out of their balance set", func(r *run) { growth.JudgeBalance(r.State) }},
	{"judge which groups can grow", func(r *run) { growth.Judge(r.State) }},
	{"grow groups to their minimum", func(r *run) { growth.EnforceMin(r.State) }},
	{"collect the pods that want room", func(r *run) { r.Gather() }},
	{"hold the pods that cannot be judged", func(r *run) { r.HoldUnknown() }},
	{"let groups with a halted rollout grow last", func(r *run) { growth.HoldHalted(r.State) }},
	{"let the later pods of a burst wait for each other", func(r *run) { scaleup.HoldBurst(r.State) }},
	{stepScaleUp, func(r *run) { r.down.SetApplied(r.up.Decide()) }},
	{"remember the order of a burst", func(r *run) { scaleup.RememberBurst(r.State) }},
	{"judge the rollouts of groups whose nodes are replaced", func(r *run) { r.down.Disruption.Judge() }},
	{stepDrain, func(r *run) { r.down.DrainInterrupted() }},
	{"go on with the nodes that carry a mark", func(r *run) { r.down.Resume() }},
	{stepScaleDown, func(r *run) { r.down.Decide() }},
	{"replace nodes by fewer or cheaper machines", func(r *run) { r.down.Consolidate() }},
	{"tell how the rollouts stand", func(r *run) { r.down.Disruption.Tell() }},
	{"tell the scheduler which nodes may go", func(r *run) { scaledown.UpdateSoftTaints(r.State) }},
	{stepFinish, func(r *run) { r.Finish() }},
}

// The steps that Explain and Machines stop before, and those that a phase begins with.
const (
	stepHealth    = "judge the cluster's health"
	stepScaleUp   = "find room for them, and buy what is missing"
	stepDrain     = "empty the machines that the cloud ends"
	stepScaleDown = "mark nodes that nothing needs"
	stepFinish    = "put reasons in order"
)

// Decide is one round: what to do about a Snapshot, and what to remember. It changes
// none of its arguments, and equal arguments give equal results, whatever the order
// of the Snapshot's slices.
func Decide(s cluster.Snapshot, m decision.Memory, p decision.Policy) (decision.Plan, decision.Memory) {
	return new(Engine).Decide(s, m, p)
}

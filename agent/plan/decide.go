// Package plan decides: Decide(Snapshot, Memory, Policy) is a function of three
// values that returns a Plan and the next Memory.
//
// Floor 1. Equal inputs give equal outputs, whatever the order of slices. It
// refuses to do I/O, to read a clock (time is Snapshot.Now), to use global chance,
// and to delete anything on stale facts. Effects are values: agent/act carries
// them out, re-checking each.
package plan

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// steps is the engine: what a round does, in this order. Each step adds actions and
// reasons, and takes back nothing that an earlier one decided.
var steps = []struct {
	name string
	do   func(*roundState)
}{
	{"see what is to be kept free", (*roundState).openHeadroom},
	{"carry over what outlives a round", (*roundState).remember},
	{"learn what became of the last plan", (*roundState).learnOutcomes},
	{"tie instances, pods and nodes together", (*roundState).index},
	{"count what every group has and what is coming", (*roundState).account},
	{"count what is coming and nobody remembers", (*roundState).countOrphanedUpcoming},
	{"judge the cluster's health", (*roundState).health},
	{"terminate instances that never became nodes", (*roundState).reapInstances},
	{"judge which groups can grow", (*roundState).judgeGroups},
	{"grow groups to their minimum", (*roundState).enforceMin},
	{"collect the pods that want room", (*roundState).gather},
	{"hold the pods that cannot be judged", (*roundState).holdUnknown},
	{stepScaleUp, (*roundState).scaleUp},
	{"empty the machines that the cloud ends", (*roundState).drainInterrupted},
	{"go on with the nodes that carry a mark", (*roundState).resume},
	{stepScaleDown, (*roundState).scaleDown},
	{"replace nodes by fewer or cheaper machines", (*roundState).consolidate},
	{"tell the scheduler which nodes may go", (*roundState).updateSoftTaints},
	{stepFinish, (*roundState).finish},
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

// remember starts the next Memory with what outlives a round.
func (w *roundState) remember() {
	w.out.ScaleDownAfter, w.out.ShrunkAt = w.in.ScaleDownAfter, w.in.ShrunkAt
	for g, r := range w.in.Resized {
		if _, ok := w.byID[g]; ok && !w.reached(r.At.Add(max(lagFor, w.p.DelayAfterAdd))) {
			set(&w.out.Resized, g, r)
		}
	}
	for _, b := range w.in.Backoff {
		if !w.reached(b.Last.Add(w.p.BackoffReset)) || !w.reached(b.Until) {
			w.out.Backoff = append(w.out.Backoff, b)
		}
	}
	if len(w.in.Deleted) > 0 {
		shown := make(map[cluster.InstanceID]bool)
		for i := range w.groups {
			for k := range w.groups[i].Instances {
				in := &w.groups[i].Instances[k]
				shown[in.ID] = in.Phase != cluster.PhaseGone
			}
		}
		for id, at := range w.in.Deleted {
			if shown[id] && !w.reached(at.Add(deletedFor)) {
				set(&w.out.Deleted, id, at)
			}
		}
	}
}

// health freezes deletions when too many nodes are not Ready: then the network is
// the likelier culprit, and the nodes may be well.
func (w *roundState) health() {
	total, unready := 0, 0
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.ControlPlane {
			continue
		}
		total++
		if n.Ready == cluster.StatusTrue {
			continue
		}
		if n.state != stateUpcoming {
			unready++
			if n.group >= 0 {
				w.groups[n.group].unready++
			}
		}
		since, ok := w.in.Unready[n.Name]
		if !ok {
			since = w.now
		}
		set(&w.out.Unready, n.Name, since)
	}
	if unready > w.p.OKTotalUnready && unready*100 > w.p.MaxTotalUnreadyPercent*total {
		w.unhealthy = "deletions are frozen: " + count(unready, total) + " nodes are not Ready"
		w.held("cluster", "cluster", decision.RuleUnhealthy, "%s", w.unhealthy)
	}
	if w.s.Stale != "" {
		w.held("cluster", "cluster", decision.RuleStale, "the cluster's facts may be old: %s", w.s.Stale)
	}
	w.checkExpanders()
}

// finish brings reasons and memory into one order.
func (w *roundState) finish() {
	if w.plan.Held = merge(sortHeld(w.plan.Held)); len(w.plan.Held) == 0 {
		w.plan.Held = nil
	}
	sortBackoff(w.out.Backoff)
	if w.reached(w.out.ScaleDownAfter) {
		w.out.ScaleDownAfter = time.Time{}
	}
}

// merge counts pods that were held one by one for the same reason.
func merge(held []decision.Held) []decision.Held {
	out := held[:0]
	for _, h := range held {
		if n := len(out) - 1; n >= 0 && h.Kind == "pod" && (h.Rule == decision.RuleExpendable || h.Rule == decision.RuleNewPod) && out[n].Rule == h.Rule && out[n].Why == h.Why {
			out[n].Count += h.Count
			continue
		}
		out = append(out, h)
	}
	return out
}

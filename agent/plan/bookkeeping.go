package plan

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

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

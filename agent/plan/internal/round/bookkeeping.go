package round

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Remember starts the next Memory with what outlives a round.
func (w *State) Remember() {
	w.Next.ScaleDownAfter, w.Next.LittleFilled = w.Memory.ScaleDownAfter, w.Memory.LittleFilled
	for g, r := range w.Memory.Resized {
		if _, ok := w.ByID[g]; ok && !w.Reached(r.At.Add(max(lagFor, w.Policy.DelayAfterAdd))) {
			Set(&w.Next.Resized, g, r)
		}
	}
	for _, b := range w.Memory.Backoff {
		if !w.Reached(b.Last.Add(w.Policy.BackoffReset)) || !w.Reached(b.Until) {
			w.Next.Backoff = append(w.Next.Backoff, b)
		}
	}
	if len(w.Memory.Deleted) > 0 {
		shown := make(map[cluster.InstanceID]bool)
		for i := range w.Groups {
			for k := range w.Groups[i].Instances {
				in := &w.Groups[i].Instances[k]
				shown[in.ID] = in.Phase != cluster.PhaseGone
			}
		}
		for id, at := range w.Memory.Deleted {
			if !w.Reached(at.Add(unshownFor)) || shown[id] && !w.Reached(at.Add(deletedFor)) {
				Set(&w.Next.Deleted, id, at)
			}
		}
	}
}

// Health freezes deletions when too many nodes are not Ready: then the network is
// the likelier culprit, and the nodes may be well.
func (w *State) Health() {
	total, unready := 0, 0
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.ControlPlane {
			continue
		}
		total++
		if n.Ready == cluster.StatusTrue {
			continue
		}
		if n.State != StateUpcoming {
			unready++
			if n.Group >= 0 {
				w.Groups[n.Group].Unready++
			}
		}
		since, ok := w.Memory.Unready[n.Name]
		if !ok {
			since = w.Now
		}
		Set(&w.Next.Unready, n.Name, since)
	}
	if unready > w.Policy.OKTotalUnready && unready*100 > w.Policy.MaxTotalUnreadyPercent*total {
		w.Unhealthy = "deletions are frozen: " + count(unready, total) + " nodes are not Ready"
		w.Held("cluster", "cluster", decision.RuleUnhealthy, "%s", w.Unhealthy)
	}
	if w.Snapshot.Stale != "" {
		w.Held("cluster", "cluster", decision.RuleStale, "the cluster's facts may be old: %s", w.Snapshot.Stale)
	}
}

// Finish brings reasons and memory into one order.
func (w *State) Finish() {
	if w.Plan.Held = merge(sortHeld(w.Plan.Held)); len(w.Plan.Held) == 0 {
		w.Plan.Held = nil
	}
	sortBackoff(w.Next.Backoff)
	if w.Reached(w.Next.ScaleDownAfter) {
		w.Next.ScaleDownAfter = time.Time{}
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

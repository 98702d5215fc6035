package round

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// BeingRemoved tells a node whose Node object will be gone soon: the agent empties it, or its machine is ended.
// A Node object that stays longer than a machine takes to come (nobody deletes it) is no longer expected to go.
func (w *State) BeingRemoved(n *Node) bool {
	if n.State != StateOut {
		return n.State == StateMarked
	}
	ends := n.Deleting || n.Instance == nil && n.Facts.ToBeDeleted && n.Facts.CordonedByUs // the cloud no longer lists what we ended
	if n.Instance != nil {
		_, told := w.Next.Deleted[n.Instance.ID]
		ends = ends || told || n.Instance.Phase == cluster.PhaseDeleting || n.Instance.Phase == cluster.PhaseGone
	}
	return ends && (n.Ready == cluster.StatusTrue || !w.Reached(n.ReadySince.Add(w.Policy.MaxNodeProvisionTime)))
}

// WaitsFor is the first node by name that a spread constraint of a class counts until its Node object is gone; nil: there is
// none. It costs the nodes.
func (w *State) WaitsFor(class int) *Node {
	if len(w.Snapshot.Classes[class].Spread) == 0 {
		return nil
	}
	for i := range w.Nodes {
		if n := &w.Nodes[i]; w.BeingRemoved(n) && fit.CountsCordoned(&w.Snapshot.Classes[class], &n.Shape) {
			return n
		}
	}
	return nil
}

package round

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Leaving tells a node whose Node object will be gone soon: it is being emptied by the agent, or its machine is ended.
// A Node object that stays longer than a machine takes to come (nobody deletes it) is no longer expected to go.
func (w *State) Leaving(n *Node) bool {
	switch n.State {
	case StateMarked:
		return true
	case StateOut:
		ends := n.Deleting
		if n.Instance != nil {
			_, told := w.Next.Deleted[n.Instance.ID]
			ends = ends || told || n.Instance.Phase == cluster.PhaseDeleting || n.Instance.Phase == cluster.PhaseGone
		}
		return ends && (n.Ready == cluster.StatusTrue || !w.Reached(n.ReadySince.Add(w.Policy.MaxNodeProvisionTime)))
	}
	return false
}

// CordonedShape is the shape of a node that the agent empties, as kube-scheduler sees it.
func (n *Node) CordonedShape() *fit.NodeInfo {
	shape := n.Shape
	shape.Unschedulable = true
	shape.Taints = append(append([]cluster.Taint{}, shape.Taints...),
		cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}, cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"})
	return &shape
}

// WaitsFor is the first node by name that a spread constraint of a class goes on counting though it is leaving, as kube-scheduler
// does until the Node object is gone (nodeTaintsPolicy: Ignore); nil: there is none. It costs the nodes.
func (w *State) WaitsFor(class int) *Node {
	if len(w.Snapshot.Classes[class].Spread) == 0 {
		return nil
	}
	for i := range w.Nodes {
		if n := &w.Nodes[i]; w.Leaving(n) && w.CountsCordoned(class, n) {
			return n
		}
	}
	return nil
}

// CountsCordoned tells whether a spread constraint of a class counts a node although the agent empties it.
func (w *State) CountsCordoned(class int, n *Node) bool {
	c := &w.Snapshot.Classes[class]
	if len(c.Spread) == 0 {
		return false
	}
	shape := n.CordonedShape()
	for i := range c.Spread {
		if fit.Counted(c, &c.Spread[i], shape) {
			return true
		}
	}
	return false
}

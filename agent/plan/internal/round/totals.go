package round

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

// totals sums up the resources of all nodes, the control plane included.
type totals struct {
	known    bool
	capacity cluster.Resources
	removing cluster.Resources // of them, on nodes that go in this round
}

// total adds up what the nodes have, once a round.
func (w *State) total() *totals {
	t := &w.totals
	if t.known {
		return t
	}
	t.known = true
	extended := map[string]int64{}
	for i := range w.Nodes {
		c := &w.Nodes[i].Capacity
		t.capacity.MilliCPU += c.MilliCPU
		t.capacity.Memory += c.Memory
		for _, b := range w.Policy.GPUTotal {
			extended[b.Resource] += c.Extended[b.Resource]
		}
		if n := &w.Nodes[i]; n.Deleting || ToBeDeleted(n.Node) {
			t.removing = t.removing.Add(*c)
		}
	}
	t.capacity.Extended = extended
	return t
}

// Capacity sums up the capacity of all nodes; of the extended resources those of
// Policy.GPUTotal. The caller does not change it.
func (w *State) Capacity() *cluster.Resources { return &w.total().capacity }

// CapacityRemoving is the part of it on nodes that go.
func (w *State) CapacityRemoving() *cluster.Resources { return &w.total().removing }

// CountRemoval counts a node that goes from now on.
func (w *State) CountRemoval(n *Node) {
	t := w.total()
	t.removing = t.removing.Add(n.Capacity)
}

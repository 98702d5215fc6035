package round

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// sums is what all nodes have together, the control plane included.
type sums struct {
	known    bool
	nodes    int
	have     cluster.Resources
	removing cluster.Resources // of them, on nodes that go in this round
}

// limited tells whether any limit of the whole cluster is set.
func (w *State) limited() bool {
	return w.Policy.MaxNodesTotal > 0 || w.Policy.MaxCoresTotal > 0 || w.Policy.MaxMemoryTotal > 0 || len(w.Policy.GPUTotal) > 0
}

// total adds up what is there, once a round.
func (w *State) total() *sums {
	t := &w.sums
	if t.known {
		return t
	}
	t.known, t.nodes = true, len(w.Nodes)
	extended := map[string]int64{}
	for i := range w.Nodes {
		c := &w.Nodes[i].Capacity
		t.have.MilliCPU += c.MilliCPU
		t.have.Memory += c.Memory
		for _, b := range w.Policy.GPUTotal {
			extended[b.Resource] += c.Extended[b.Resource]
		}
		if n := &w.Nodes[i]; n.Deleting || ToBeDeleted(n.Node) {
			t.removing = t.removing.Add(*c)
		}
	}
	t.have.Extended = extended
	return t
}

// Allowed is how many of n machines the limits let a group add in this round, and
// which limit stopped the rest.
func (w *State) Allowed(g *Group, n int) (int, string) {
	if room := g.Max - g.Size - g.Grow; n > room {
		return w.AllowedTotals(&g.Template.Capacity, max(room, 0), fmt.Sprintf("at its maximum of %d", g.Max))
	}
	return w.AllowedTotals(&g.Template.Capacity, n, "")
}

// AllowedTotals is how many of n machines of a size the limits of the whole cluster
// allow. They count every node, the control plane and those of nobody included, and
// every machine that is upcoming.
func (w *State) AllowedTotals(per *cluster.Resources, n int, why string) (int, string) {
	if !w.limited() {
		return n, why
	}
	nodes, have := w.upcomingTotals()
	if limit := w.Policy.MaxNodesTotal; limit > 0 && limit-nodes < n {
		n, why = max(limit-nodes, 0), fmt.Sprintf("the cluster's limit of %d nodes is reached", limit)
	}
	cap := func(limit, used, each int64, format string, args ...any) {
		if each <= 0 {
			return
		}
		if room := (limit - used) / each; used > limit || room < int64(n) {
			n, why = int(min(max(room, 0), math.MaxInt32)), fmt.Sprintf(format, args...)
			if used > limit {
				n = 0
			}
		}
	}
	if limit := w.Policy.MaxCoresTotal; limit > 0 {
		cap(limit*1000, have.MilliCPU, per.MilliCPU, "the cluster's limit of %d cores is reached", limit)
	}
	if limit := w.Policy.MaxMemoryTotal; limit > 0 {
		cap(limit<<30, have.Memory, per.Memory, "the cluster's limit of %d GiB is reached", limit)
	}
	for _, b := range w.Policy.GPUTotal {
		cap(b.Max, have.Extended[b.Resource], per.Extended[b.Resource], "the cluster's limit of %d %s is reached", b.Max, b.Resource)
	}
	return n, why
}

// upcomingTotals is what the cluster has once everything that is upcoming has come.
func (w *State) upcomingTotals() (nodes int, have cluster.Resources) {
	t := w.total()
	nodes, have = t.nodes, t.have
	if len(w.Policy.GPUTotal) > 0 {
		have.Extended = maps.Clone(have.Extended)
	}
	for i := range w.Groups {
		o := &w.Groups[i]
		more := o.Size - o.Nodes + o.Grow
		c := &o.Template.Capacity
		nodes += more
		have.MilliCPU += int64(more) * c.MilliCPU
		have.Memory += int64(more) * c.Memory
		for _, b := range w.Policy.GPUTotal {
			have.Extended[b.Resource] += int64(more) * c.Extended[b.Resource]
		}
	}
	return nodes, have
}

// KeepsTotals says which least total of the cluster a node's removal would go below;
// empty: none.
func (w *State) KeepsTotals(n *Node) string {
	if w.Policy.MinCoresTotal <= 0 && w.Policy.MinMemoryTotal <= 0 && !slices.ContainsFunc(w.Policy.GPUTotal, func(b decision.Bound) bool { return b.Min > 0 }) {
		return ""
	}
	t := w.total()
	c := &n.Capacity
	if limit := w.Policy.MinCoresTotal; limit > 0 && t.have.MilliCPU-t.removing.MilliCPU-c.MilliCPU < limit*1000 {
		return fmt.Sprintf("without it the cluster would have less than its least of %d cores", limit)
	}
	if limit := w.Policy.MinMemoryTotal; limit > 0 && t.have.Memory-t.removing.Memory-c.Memory < limit<<30 {
		return fmt.Sprintf("without it the cluster would have less than its least of %d GiB", limit)
	}
	for _, b := range w.Policy.GPUTotal {
		if gone := c.Extended[b.Resource]; gone > 0 && t.have.Extended[b.Resource]-t.removing.Extended[b.Resource]-gone < b.Min {
			return fmt.Sprintf("without it the cluster would have less than its least of %d %s", b.Min, b.Resource)
		}
	}
	return ""
}

// CountRemoval counts a node that goes, for keepsTotals.
func (w *State) CountRemoval(n *Node) { w.total().removing = w.total().removing.Add(n.Capacity) }

package consolidation

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Bounds of one look: nodes that are tried alone, nodes that are replaced together, and machines that replace them.
const (
	mostAlone    = 50
	mostTogether = 10
	mostMachines = 4
)

// movable are the nodes whose pods may all be moved as far as they themselves are concerned, those first that move fewest pods for
// what they cost. It costs N, and the pods of the nodes that nothing else keeps.
func (w *Search) movable() []int {
	type row struct {
		node  int
		moves float64
	}
	var rows []row
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.ControlPlane || n.Group < 0 || n.State != round.StateReady || n.InUse || n.Removing || len(n.Headroom) > 0 || w.Disruption.Reason(i).Rule != "" {
			continue
		}
		g := &w.Groups[n.Group]
		if (w.Policy.Consolidate == decision.ConsolidateAlways || g.Price > 0) && w.mover.Removable(i) {
			rows = append(rows, row{i, float64(w.mover.Moved(i)) / max(g.Price, 1e-6)})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.moves, b.moves), cmp.Compare(a.node, b.node)) })
	out := make([]int, len(rows))
	for i := range rows {
		out[i] = rows[i].node
	}
	return out
}

// replaceable are the movable nodes that may be replaced now.
func (w *Search) replaceable() []int {
	return slices.DeleteFunc(w.movable(), func(i int) bool {
		n := &w.Nodes[i]
		if w.Disruption.GivenUp(n.Name) || growth.KeepsTotals(w.State, n) != "" || w.Disruption.Full(i, cluster.ReasonDear) != "" {
			return true
		}
		young, _ := w.Disruption.YoungPod(n)
		return young != ""
	})
}

// best looks for the replacement that is worth most: every node for itself, and the first ones together. Without nodes, there is
// none. It costs Fit for 59 sets of nodes times 4*G, until the looks are used up.
func (w *Search) best() *decision.Consolidation {
	best, most := new(decision.Consolidation), 0.0
	try := func(nodes []int) {
		for _, s := range w.replacements(nodes) {
			if !w.mover.Look(0) {
				return
			}
			if worth := w.worth(&s, most); worth > most { // of equal ones the first, which moves least
				best, most = &s, worth
			}
		}
	}
	for i := range min(len(w.list), mostAlone) {
		try(w.list[i : i+1])
	}
	for n := 2; n <= min(len(w.list), mostTogether); n++ {
		try(w.list[:n])
	}
	return best
}

// replacements are the replacements of a set of nodes that are worth a simulation, those with
// fewer machines first.
func (w *Search) replacements(nodes []int) []decision.Consolidation {
	names := make([]cluster.NodeName, len(nodes))
	for i, n := range nodes {
		names[i] = w.Nodes[n].Name
	}
	slices.Sort(names)
	out := []decision.Consolidation{{Nodes: names}}
	for m := 1; m <= mostMachines; m++ {
		for g := range w.Groups {
			if gr := &w.Groups[g]; gr.CanGrow() {
				out = append(out, decision.Consolidation{Nodes: names, Group: gr.ID, Machines: m})
			}
		}
	}
	return out
}

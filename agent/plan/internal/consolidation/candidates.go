package consolidation

import (
	"cmp"
	"slices"
	"time"

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
		young, _ := w.Disruption.YoungPod(n, false)
		return young != ""
	})
}

// best looks for the replacement that is worth most: every node for itself, and several together. Without nodes, there is
// none. It costs Fit for 50 nodes times 4*G and, of those that are worth it, for 60 sets times G, until the looks are used up.
func (w *Search) best() (best replacement, most float64) {
	most = never
	for _, i := range w.list[:min(len(w.list), mostAlone)] {
		w.inPlace(mostMachines, func(to *round.Group, machines int) {
			r := replacement{[]int{i}, to, machines}
			if !w.mover.Look(0) {
				return
			}
			if rank := w.worth(&r, most); rank > never { // of equal ones the first, which moves least
				best, most = r, rank
			}
		})
	}
	w.inPlace(1, func(to *round.Group, machines int) {
		if r, rank := w.together(replacement{to: to, machines: machines}, most); rank > never {
			best, most = r, rank
		}
	})
	return best, most
}

// together lets one node after the other join whose pods have room beside those of the others, with one more machine where
// that is needed. A node whose pods have none is left out. It returns the best set that is above most.
func (w *Search) together(r replacement, most float64) (best replacement, rank float64) {
	rank = never
	for _, i := range w.list[:min(len(w.list), mostTried)] {
		next := r
		next.from = append(slices.Clip(r.from), i)
		if len(next.from) > mostTogether || !w.mover.Look(0) {
			break
		}
		fits := w.fits(&next)
		if !fits && r.machines > 0 && r.machines < mostMachines {
			next.machines++
			fits = w.fits(&next)
		}
		if !fits {
			continue
		}
		if above(w.rank(&next, nil), most) {
			if worth := w.worth(&next, most); worth > never {
				best, rank, most = next, worth, worth
			}
		}
		r = next
	}
	return best, rank
}

func (w *Search) fits(r *replacement) bool {
	if !w.allowed(r) {
		return false
	}
	_, ok := w.mover.Fit(r.from, r.to, r.machines)
	return ok
}

// inPlace calls do with what may stand in place of nodes: nothing, and up to most machines of each group that can grow.
func (w *Search) inPlace(most int, do func(to *round.Group, machines int)) {
	do(nil, 0)
	for m := 1; m <= most; m++ {
		for g := range w.Groups {
			if gr := &w.Groups[g]; gr.CanGrow() {
				do(gr, m)
			}
		}
	}
}

// thought is a replacement as the memory has it.
func (w *Search) thought(r *replacement) *decision.Consolidation {
	s := &decision.Consolidation{Machines: r.machines}
	if len(r.from) == 0 {
		return s
	}
	for _, i := range r.from {
		s.Nodes = append(s.Nodes, w.Nodes[i].Name)
	}
	slices.Sort(s.Nodes)
	if r.to != nil {
		s.Group = r.to.ID
	}
	s.Wait = w.Policy.ConsolidateAfter
	if saves, moves := w.saving(r, nil); moves >= saves {
		s.Wait = max(s.Wait, time.Duration(moves/saves*float64(time.Hour)).Round(time.Second))
	}
	return s
}

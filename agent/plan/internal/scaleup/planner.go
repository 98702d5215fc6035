package scaleup

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// Planner is one round of scale-up.
type Planner struct {
	*round.State
	topology         *topology.Topology // what constrains pending pods to others; nil: nothing does
	pricing          pricing
	keysByAllocation [][]cluster.PodKey // room for named and merge
	searchSteps      int                // that judging may take
	judgeSteps       int                // that judging took; 0: nothing was judged
	searchCut        bool               // judging ended for lack of steps
	tooLarge         string             // what of the round is too much to be judged
}

// New begins scale-up.
func New(w *round.State) *Planner {
	return &Planner{State: w, searchSteps: budget.Search.Budget()}
}

// size is the vector of a class as it is packed.
func (w *Planner) size(class int) []int64 {
	if w.topology == nil {
		return w.Dimensions.Class(class)
	}
	return w.topology.Size(class)
}

// applyToTopology puts the constrained pods of the answer that was taken where they are to go, so that
// what is asked from then on is asked of the world as planned.
func (w *Planner) applyToTopology(a *solution) {
	b := w.topology
	if b == nil {
		return
	}
	for i := range a.bins {
		pl := &a.bins[i]
		node := pl.node
		if node < 0 {
			gr := &w.Groups[pl.group]
			_, shape := w.Template(gr)
			node = b.State.AddNode(shape, gr.Template.VolumeLimits)
		}
		for _, t := range pl.portions {
			if class := w.Demands[t.Item].Class; b.Constrained[class] {
				b.State.Put(class, node, t.N)
			}
		}
	}
}

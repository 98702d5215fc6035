package scaleup

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// Planner is one round of scale-up.
type Planner struct {
	*round.State
	topology         *topology.Topology // what constrains pending pods to others; nil: nothing does
	pricing          pricing
	packed           binpack.Cache
	arenas           *packArenas
	pool             int                // steps that packing may still spend on columns
	keysByAllocation [][]cluster.PodKey // room for named and merge
}

// New begins scale-up.
func New(w *round.State) *Planner {
	u := &Planner{State: w, pool: binpack.ColumnPool, arenas: new(packArenas)}
	if len(w.Snapshot.Groups) > 4*topology.ShortlistFrom { // which groups then matters more than the last machine of one
		u.pool = binpack.CoarsePool
	}
	return u
}

// packArenas is the memory of the packings of one round.
type packArenas struct {
	perOption binpack.Arena // until the next option is packed
	perChoice binpack.Arena // until the next choice
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

package scaleup

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
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
	packed           binpack.Cache
	arenas           *packArenas
	pool             int                // steps that packing may still spend on columns
	keysByAllocation [][]cluster.PodKey // room for named and merge
	free             []allocation       // see oneAllocation
	rooms            []int64            // see copyRoom
	searchSteps      int                // that judging may take
	judgeSteps       int                // that judging took; 0: nothing was judged
	searchCut        bool               // judging ended for lack of steps
	tooLarge         string             // what of the round is too much to be judged
}

// New begins scale-up.
func New(w *round.State) *Planner {
	u := &Planner{State: w, pool: budget.Packing.Budget(), searchSteps: budget.Search.Budget(), arenas: new(packArenas)}
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

// allocationsAtOnce is for how many allocations room is made at once.
const allocationsAtOnce = 1024

// oneAllocation is an empty list with room for one.
func (w *Planner) oneAllocation() []allocation {
	if len(w.free) == 0 {
		w.free = make([]allocation, allocationsAtOnce)
	}
	one := w.free[:0:1]
	w.free = w.free[1:]
	return one
}

// roomsAtOnce is for how many rooms of machines memory is allocated at once.
const roomsAtOnce = 64

// copyRoom is a copy of a machine's room.
func (w *Planner) copyRoom(room []int64) []int64 {
	if len(w.rooms) < len(room) {
		w.rooms = make([]int64, roomsAtOnce*len(room))
	}
	out := w.rooms[:len(room):len(room)]
	w.rooms = w.rooms[len(room):]
	copy(out, room)
	return out
}

package purchase

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Buyer decides the purchase of one round.
type Buyer struct {
	*round.State
	// Constraints has every node with what is on it; nil: nothing constrains the pending pods to other pods or to volumes.
	Constraints *fit.State
	pricing     pricing
	prices      []float64 // by group, what one more machine counts for in money
	taken       [][]int   // by group: see TakenBy; nil: not asked yet
	unreplaced  []bool    // by group: see worthwhile; nil: not asked yet
}

// New begins a round.
func New(w *round.State) *Buyer { return &Buyer{State: w, prices: pricesOf(w.Groups)} }

// Constrain looks for constraints among the pending pods. Most rounds have none, and then nothing is built.
func (w *Buyer) Constrain() {
	if w.Constraints = nil; !mayBeConstrained(w.State) {
		return
	}
	state := w.NewState()
	if slices.ContainsFunc(w.Demands, func(k round.Demand) bool { return state.Constrained(k.Class) }) {
		w.Constraints = state
	}
}

// mayBeConstrained tells whether a pending pod asks for anything of other pods or of volumes, or
// whether some pod keeps others away.
func mayBeConstrained(w *round.State) bool {
	for i := range w.Demands {
		c := &w.Snapshot.Classes[w.Demands[i].Class]
		if len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes)+len(c.Claims) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(w.Snapshot.Classes, func(c cluster.PodClass) bool { return len(c.PodAntiAffinity) > 0 })
}

// Constrained tells whether other pods or volumes can refuse a class, or the class others.
func (w *Buyer) Constrained(class int) bool {
	return w.Constraints != nil && w.Constraints.Constrained(class)
}

// TakenBy lists the demands of which a group's machine takes a pod, with no other pods around. It costs D once.
func (w *Buyer) TakenBy(g int) []int {
	if w.taken == nil {
		w.taken = make([][]int, len(w.Groups))
	}
	if w.taken[g] == nil {
		w.taken[g] = []int{}
		room, shape := w.Template(&w.Groups[g])
		for i := range w.Demands {
			if w.takesOn(w.Demands[i].Class, g, room, shape) {
				w.taken[g] = append(w.taken[g], i)
			}
		}
	}
	return w.taken[g]
}

// takesOn tells whether an empty machine of a group, with this room and shape, takes a pod of a class, volumes aside.
func (w *Buyer) takesOn(class, g int, room []int64, shape *fit.NodeInfo) bool {
	return binpack.Fits(room, w.Dimensions.Class(class)) && w.Takes(class, g, shape) && w.Constraints.UnknownDomain(class, shape) == ""
}

// isOpen tells whether pods may count on a node.
func (w *Buyer) isOpen(n *round.Node, withMarked bool) bool {
	return n.State == round.StateReady || n.State == round.StateUpcoming || withMarked && n.State == round.StateMarked && n.Ready == "True"
}

// anyMarked tells whether a node is being emptied.
func (w *Buyer) anyMarked() bool {
	return slices.ContainsFunc(w.Nodes, func(n round.Node) bool { return n.State == round.StateMarked })
}

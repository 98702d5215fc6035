package packing

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/purchaseprice"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// Packer packs one round.
type Packer struct {
	*round.State
	Topology *topology.Topology // what constrains pending pods to others; nil: nothing does
	ListPods bool               // solutions list the pods of each machine also where nothing constrains them
	pricing  pricing
	prices   []float64 // by group, what one more machine counts for in money

	items           []binpack.Item // by class: see item
	strandingGroups []bool         // see stranding; nil: not asked yet
	roomyNodes      []int          // what nodesWithRoom found; nil: not asked yet
	everyDemand     []int          // see allDemands
	taken           [][]int        // by group: see TakenBy; nil: not asked yet
}

// strandingCosts multiplies the cost of a machine of a stranding group. Pods that no other group helps get it all the same.
const strandingCosts = 2

// New begins a round.
func New(w *round.State) *Packer { return &Packer{State: w, prices: purchaseprice.Of(w.Groups)} }

// item is a class as it is packed, without a number of pods; not to be changed.
func (w *Packer) item(class int) *binpack.Item {
	if w.items == nil {
		w.items = make([]binpack.Item, len(w.Snapshot.Classes))
	}
	l := &w.items[class]
	if l.Size == nil {
		*l = binpack.NewItem(w.Size(class))
	}
	return l
}

// stranding is topology.Stranding, asked once a round.
func (w *Packer) stranding() []bool {
	if w.strandingGroups == nil {
		w.strandingGroups = topology.Stranding(w.State)
	}
	return w.strandingGroups
}

// allDemands lists the demands.
func (w *Packer) allDemands() []int {
	for i := len(w.everyDemand); i < len(w.Demands); i++ {
		w.everyDemand = append(w.everyDemand, i)
	}
	return w.everyDemand
}

// Size is the vector of a class as it is packed.
func (w *Packer) Size(class int) []int64 {
	if w.Topology == nil {
		return w.Dimensions.Class(class)
	}
	return w.Topology.Size(class)
}

// nodesWithRoom lists the nodes that could take a pod of some demand: on a cluster that is full the packing then costs
// what is pending and not what exists. It costs the nodes times the kinds of demands until one of them fits.
func (w *Packer) nodesWithRoom() []int {
	if w.roomyNodes != nil {
		return w.roomyNodes
	}
	index := &w.Cache.Classes
	seen, roomy := make([]bool, len(index.Representative)), make([]bool, len(w.Nodes))
	left := make([]int, len(w.Nodes)) // that have no room for a demand yet
	for n := range left {
		left[n] = n
	}
	for i := range w.Demands {
		k := index.Equivalent[w.Demands[i].Class]
		if seen[k] {
			continue
		}
		seen[k] = true
		class := int(index.Representative[k])
		size, filters := w.Dimensions.Class(class), w.FiltersOf(class)
		left = slices.DeleteFunc(left, func(n int) bool {
			roomy[n] = binpack.Fits(w.Nodes[n].Room, size) && filters.Passes(n)
			return roomy[n]
		})
	}
	w.roomyNodes = []int{}
	for n, has := range roomy {
		if has {
			w.roomyNodes = append(w.roomyNodes, n)
		}
	}
	return w.roomyNodes
}

package packing

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// Packer packs one round.
type Packer struct {
	*round.State
	Topology *topology.Topology // what constrains pending pods to others; nil: nothing does
	ListPods bool               // solutions list the pods of each machine also where nothing constrains them
	pricing  pricing

	strandingGroups []bool // see stranding; nil: not asked yet
}

// New begins a round.
func New(w *round.State) *Packer { return &Packer{State: w} }

// item is a class as it is packed, without a number of pods.
func (w *Packer) item(class int) binpack.Item {
	if w.Topology == nil {
		return binpack.Item{Size: w.Dimensions.Class(class)}
	}
	return binpack.Item{Size: w.Topology.Size(class), Axes: w.Topology.Axes(class)}
}

// Size is the vector of a class as it is packed.
func (w *Packer) Size(class int) []int64 {
	if w.Topology == nil {
		return w.Dimensions.Class(class)
	}
	return w.Topology.Size(class)
}

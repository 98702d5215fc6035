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

	items           []binpack.Item // by class: see item
	strandingGroups []bool         // see stranding; nil: not asked yet
}

// New begins a round.
func New(w *round.State) *Packer { return &Packer{State: w} }

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

// Size is the vector of a class as it is packed.
func (w *Packer) Size(class int) []int64 {
	if w.Topology == nil {
		return w.Dimensions.Class(class)
	}
	return w.Topology.Size(class)
}

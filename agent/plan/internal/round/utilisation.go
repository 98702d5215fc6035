package round

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// HasGPU tells a node with accelerators.
func HasGPU(n *cluster.Node) bool {
	for name, amount := range n.Allocatable.Extended {
		if amount > 0 && cluster.Accelerator(name) {
			return true
		}
	}
	return false
}

// Startup is how long a node of a group may take from its registration until it is of
// use.
func (w *State) Startup(n *Node) time.Duration {
	return OrElse(w.OptionsOf(n).MaxNodeStartupTime, w.Policy.MaxNodeStartupTime)
}

// OptionsOf are those of the node's group; none where it is in none of ours.
func (w *State) OptionsOf(n *Node) *cluster.Options {
	if n.Group < 0 {
		return &cluster.Options{}
	}
	return &w.Groups[n.Group].Options
}

package round

import (
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// gpuNames are how the extended resources of accelerators are called. A node that
// offers one is worth what its accelerators do: cpu and memory do not count there.
var gpuNames = []string{"nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "habana.ai/", "aws.amazon.com/neuron", "google.com/tpu", "microsoft.com/directx"}

// GPU tells the extended resource of an accelerator.
func GPU(name string) bool {
	for _, prefix := range gpuNames {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "/gpu")
}

// HasGPU tells a node with accelerators.
func HasGPU(n *cluster.Node) bool {
	for name, amount := range n.Allocatable.Extended {
		if amount > 0 && GPU(name) {
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

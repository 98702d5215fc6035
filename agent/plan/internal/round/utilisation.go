package round

import (
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// gpuNames are how the extended resources of accelerators are called. A node that
// offers one is worth what its accelerators do: cpu and memory do not count there.
var gpuNames = []string{"nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "habana.ai/", "aws.amazon.com/neuron", "google.com/tpu", "microsoft.com/directx"}

func gpu(name string) bool {
	for _, prefix := range gpuNames {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "/gpu")
}

// hasGPU tells a node with accelerators.
func hasGPU(n *cluster.Node) bool {
	for name, amount := range n.Allocatable.Extended {
		if amount > 0 && gpu(name) {
			return true
		}
	}
	return false
}

// Utilisation is the larger share of cpu and memory that is requested, and on a node
// with accelerators the largest share of these alone. Where DaemonSets are left out,
// they are left out of what the node has as well, as in Cluster Autoscaler.
func (w *State) Utilisation(n *Node) float64 {
	ignore := w.Policy.IgnoreDaemonSetsUtilization
	if o := w.options(n).IgnoreDaemonSetsUtilization; o != nil {
		ignore = *o
	}
	all, less := n.Facts.requested, n.Facts.daemonRequests
	if !ignore {
		all, less = all.Add(less), cluster.Resources{}
	}
	if !hasGPU(n.Node) {
		return max(ratio(all.MilliCPU, n.Allocatable.MilliCPU-less.MilliCPU), ratio(all.Memory, n.Allocatable.Memory-less.Memory))
	}
	most := 0.0
	for name, have := range n.Allocatable.Extended {
		if gpu(name) {
			most = max(most, ratio(all.Extended[name], have))
		}
	}
	return most
}

func ratio(used, have int64) float64 {
	if have <= 0 {
		return 0
	}
	return float64(used) / float64(have)
}

// Threshold is the utilisation above which a node is busy.
func (w *State) Threshold(n *Node) float64 {
	o := w.options(n)
	limit, own := w.Policy.UtilizationThreshold, o.ScaleDownUtilization
	if hasGPU(n.Node) {
		limit, own = w.Policy.GPUUtilizationThreshold, o.ScaleDownGPUUtilization
	}
	if own != nil {
		return *own
	}
	return limit
}

// Startup is how long a node of a group may take from its registration until it is of
// use.
func (w *State) Startup(n *Node) time.Duration {
	return OrElse(w.options(n).MaxNodeStartupTime, w.Policy.MaxNodeStartupTime)
}

// options are those of the node's group; none where it is in none of ours.
func (w *State) options(n *Node) *cluster.Options {
	if n.Group < 0 {
		return &cluster.Options{}
	}
	return &w.Groups[n.Group].Options
}

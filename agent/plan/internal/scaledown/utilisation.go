package scaledown

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Utilisation is the largest share of cpu, memory and the devices of one DRA driver that is requested, and on a node
// with accelerators the largest share of these alone. Where DaemonSets are left out,
// they are left out of what the node has as well, as in Cluster Autoscaler.
func (w *Planner) Utilisation(n *round.Node) float64 {
	all, less := n.Facts.Requested, n.Facts.DaemonRequests
	if !round.OrElse(w.OptionsOf(n).IgnoreDaemonSetsUtilization, w.Policy.IgnoreDaemonSetsUtilization) {
		all, less = all.Add(less), cluster.Resources{}
	}
	if !round.HasGPU(n.Node) {
		return max(n.Devices.Share(), ratio(all.MilliCPU, n.Allocatable.MilliCPU-less.MilliCPU), ratio(all.Memory, n.Allocatable.Memory-less.Memory))
	}
	most := n.Devices.Share()
	for name, have := range n.Allocatable.Extended {
		if cluster.Accelerator(name) {
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
func (w *Planner) Threshold(n *round.Node) float64 {
	o := w.OptionsOf(n)
	if round.HasGPU(n.Node) {
		return round.OrElse(o.ScaleDownGPUUtilization, w.Policy.GPUUtilizationThreshold)
	}
	return round.OrElse(o.ScaleDownUtilization, w.Policy.UtilizationThreshold)
}

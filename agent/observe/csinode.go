package observe

import (
	"maps"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func (w *world) putCSINode(n *storagev1.CSINode) Urgency {
	return w.limit(cluster.NodeName(n.Name), volumeLimits(n))
}

func (w *world) dropCSINode(name cluster.NodeName) Urgency { return w.limit(name, nil) }

// limit notes a node's limits, which may be known before the node is.
func (w *world) limit(name cluster.NodeName, limits map[string]int64) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(w.limits[name], limits) {
		return Never
	}
	if limits == nil {
		delete(w.limits, name)
	} else {
		w.limits[name] = limits
	}
	return w.relimit(name)
}

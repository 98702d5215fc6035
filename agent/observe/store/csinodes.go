package store

import (
	"maps"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/volumes"
)

func (w *Store) PutCSINode(n *storagev1.CSINode) Urgency {
	return w.setLimits(cluster.NodeName(n.Name), volumes.VolumeLimits(n))
}

func (w *Store) DeleteCSINode(name cluster.NodeName) Urgency { return w.setLimits(name, nil) }

// setLimits notes the limits of a CSINode, which may be known before its Node.
func (w *Store) setLimits(name cluster.NodeName, limits map[string]int64) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(w.nodeLimits[name], limits) {
		return Never
	}
	if limits == nil {
		delete(w.nodeLimits, name)
	} else {
		w.nodeLimits[name] = limits
	}
	return w.updateVolumeLimits(name)
}

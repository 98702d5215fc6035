package store

import (
	"maps"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

func (s *Store) PutCSINode(n *storagev1.CSINode) Urgency {
	return s.setLimits(cluster.NodeName(n.Name), convert.VolumeLimits(n))
}

func (s *Store) DeleteCSINode(name cluster.NodeName) Urgency { return s.setLimits(name, nil) }

// setLimits notes the limits of a CSINode, which may be known before its Node.
func (s *Store) setLimits(name cluster.NodeName, limits map[string]int64) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if maps.Equal(s.nodeLimits[name], limits) {
		return Never
	}
	if limits == nil {
		delete(s.nodeLimits, name)
	} else {
		s.nodeLimits[name] = limits
	}
	return s.updateVolumeLimits(name)
}

package store

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

func (s *Store) PutDaemonSet(d *appsv1.DaemonSet) Urgency {
	class := convert.DaemonSetClass(d, s.schedulers)
	row := cluster.DaemonSet{Key: cluster.PodKey(d.Namespace + "/" + d.Name), UID: cluster.UID(d.UID)}
	s.mu.Lock()
	defer s.mu.Unlock()
	row.Class = s.intern(class)
	if old, had := s.daemonSets.get(row.Key); had {
		s.classes.release(old.Class)
		if old == row {
			return Never
		}
	}
	s.daemonSets.put(row.Key, row)
	return Later
}

func (s *Store) DeleteDaemonSet(key cluster.PodKey) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, had := s.daemonSets.get(key); had {
		s.classes.release(old.Class)
		s.daemonSets.delete(key)
	}
	return Later
}

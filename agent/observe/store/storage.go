package store

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func (s *Store) PutClaim(c *corev1.PersistentVolumeClaim) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateClasses(s.volumes.PutClaim(c))
}

func (s *Store) DeleteClaim(key string) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateClasses(s.volumes.DeleteClaim(key))
}

func (s *Store) PutVolume(v *corev1.PersistentVolume) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims, changed := s.volumes.PutVolume(v)
	if !changed {
		return Never
	}
	return s.volumeChanged(v.Name, claims)
}

func (s *Store) DeleteVolume(name string) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.volumeChanged(name, s.volumes.DeleteVolume(name))
}

// volumeChanged updates the pods of the claims that a volume concerns, and the limits of
// the nodes that it is attached to.
func (s *Store) volumeChanged(name string, claims []string) Urgency {
	urgency := s.updateClasses(claims)
	for va := range s.attachments.with[name] {
		urgency = max(urgency, s.updateVolumeLimits(s.attachments.all[va].node))
	}
	return urgency
}

func (s *Store) PutStorageClass(c *storagev1.StorageClass) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateClasses(s.volumes.PutStorageClass(c))
}

func (s *Store) DeleteStorageClass(name string) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateClasses(s.volumes.DeleteStorageClass(name))
}

func (s *Store) PutCSIDriver(d *storagev1.CSIDriver) Urgency {
	return s.setPublishesCapacity(d.Name, d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity)
}

func (s *Store) DeleteCSIDriver(name string) Urgency { return s.setPublishesCapacity(name, false) }

func (s *Store) setPublishesCapacity(name string, publishesCapacity bool) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateClasses(s.volumes.SetPublishesCapacity(name, publishesCapacity))
}

// updateClasses gives the pods that use these claims the class that they have now. A
// pending pod with another class is worth a round at once.
func (s *Store) updateClasses(claims []string) Urgency {
	urgency := Never
	for _, claim := range claims {
		for key, node := range s.volumes.PodsOf(claim) {
			urgency = max(urgency, s.completeAnew(key, node))
		}
	}
	return urgency
}

// completeAnew gives a pod the class that it has now, with what its volumes and claims demand.
func (s *Store) completeAnew(key cluster.PodKey, node cluster.NodeName) Urgency {
	p, ok := s.pod(key, node)
	if !ok {
		return Never
	}
	class, old := s.classes.rows[p.OnNode()], p
	s.volumes.Complete(key, &class)
	s.devices.Complete(key, &class)
	s.setClass(&p, class)
	s.releaseClass(&old)
	if s.classes.rows[p.Class].TooLarge {
		s.volumes.DeletePod(key)
		s.devices.DeletePod(key)
	}
	switch {
	case p.Class == old.Class && p.Takes == old.Takes:
		return Never
	case p.Node != "":
		s.nodes.putPod(p)
		s.updateVolumeLimits(p.Node)
		return Never
	}
	s.pods.put(key, p)
	return Soon
}

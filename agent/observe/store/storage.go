package store

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func (w *Store) PutClaim(c *corev1.PersistentVolumeClaim) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updateClasses(w.volumes.PutClaim(c))
}

func (w *Store) DeleteClaim(key string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updateClasses(w.volumes.DeleteClaim(key))
}

func (w *Store) PutVolume(v *corev1.PersistentVolume) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	claims, changed := w.volumes.PutVolume(v)
	if !changed {
		return Never
	}
	return w.volumeChanged(v.Name, claims)
}

func (w *Store) DeleteVolume(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.volumeChanged(name, w.volumes.DeleteVolume(name))
}

// volumeChanged updates the pods of the claims that a volume concerns, and the limits of
// the nodes that it is attached to.
func (w *Store) volumeChanged(name string, claims []string) Urgency {
	urgency := w.updateClasses(claims)
	for va := range w.attachments.with[name] {
		urgency = max(urgency, w.updateVolumeLimits(w.attachments.all[va].node))
	}
	return urgency
}

func (w *Store) PutStorageClass(c *storagev1.StorageClass) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updateClasses(w.volumes.PutStorageClass(c))
}

func (w *Store) DeleteStorageClass(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updateClasses(w.volumes.DeleteStorageClass(name))
}

func (w *Store) PutCSIDriver(d *storagev1.CSIDriver) Urgency {
	return w.setPublishesCapacity(d.Name, d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity)
}

func (w *Store) DeleteCSIDriver(name string) Urgency { return w.setPublishesCapacity(name, false) }

func (w *Store) setPublishesCapacity(name string, publishesCapacity bool) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.updateClasses(w.volumes.SetPublishesCapacity(name, publishesCapacity))
}

// updateClasses gives the pods that use these claims the class that they have now. A
// pending pod with another class is worth a round at once.
func (w *Store) updateClasses(claims []string) Urgency {
	urgency := Never
	for _, claim := range claims {
		for key, node := range w.volumes.PodsOf(claim) {
			p, ok := w.pod(key, node)
			if !ok {
				continue
			}
			class := w.classes.rows[p.Class]
			w.volumes.Complete(key, &class)
			old := p.Class
			p.Class = w.intern(class)
			w.classes.release(old)
			if p.Class == old {
				continue
			}
			p.Budgets = w.budgetsOfClass[p.Class]
			if p.Node != "" {
				w.nodes.putPod(p)
				w.updateVolumeLimits(p.Node)
				continue
			}
			w.pods.put(key, p)
			urgency = Soon
		}
	}
	return urgency
}

package observe

import storagev1 "k8s.io/api/storage/v1"

func (w *Store) putDriver(d *storagev1.CSIDriver) Urgency {
	return w.setDriver(d.Name, d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity)
}

func (w *Store) dropDriver(name string) Urgency { return w.setDriver(name, false) }

// trackDriver notes whether a driver publishes how much room its storage has.
func (w *Store) setDriver(name string, tracked bool) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.storage.publishesCapacity[name] == tracked {
		return Never
	}
	if tracked {
		w.storage.publishesCapacity[name] = true
	} else {
		delete(w.storage.publishesCapacity, name)
	}
	urgency := Never
	for class, c := range w.storage.classes {
		if c.provisioner == name {
			urgency = max(urgency, w.updateClasses(w.storage.unboundClaims(class)...))
		}
	}
	return urgency
}

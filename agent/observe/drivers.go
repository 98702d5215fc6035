package observe

import storagev1 "k8s.io/api/storage/v1"

func (w *world) putDriver(d *storagev1.CSIDriver) Urgency {
	return w.trackDriver(d.Name, d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity)
}

func (w *world) dropDriver(name string) Urgency { return w.trackDriver(name, false) }

// trackDriver notes whether a driver publishes how much room its storage has.
func (w *world) trackDriver(name string, tracked bool) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.storage.tracked[name] == tracked {
		return Never
	}
	if tracked {
		w.storage.tracked[name] = true
	} else {
		delete(w.storage.tracked, name)
	}
	urgency := Never
	for class, c := range w.storage.classes {
		if c.provisioner == name {
			urgency = max(urgency, w.reclass(w.storage.unboundOf(class)...))
		}
	}
	return urgency
}

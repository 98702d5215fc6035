package observe

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func (w *Store) putClaim(c *corev1.PersistentVolumeClaim) Urgency {
	row, key := convertClaim(c), c.Namespace+"/"+c.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.storage
	old, had := s.claims[key]
	if had && reflect.DeepEqual(old, row) {
		return Never
	}
	s.indexClaim(key, old.volume, row.volume)
	s.claims[key] = row
	return w.updateClasses(key)
}

func (w *Store) dropClaim(key string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storage.indexClaim(key, w.storage.claims[key].volume, "")
	delete(w.storage.claims, key)
	return w.updateClasses(key)
}

// rename keeps the claims that name a volume.
func (s *storage) indexClaim(claim, from, to string) {
	if from == to {
		return
	}
	if from != "" {
		left := slices.DeleteFunc(s.claimsByVolume[from], func(k string) bool { return k == claim })
		if s.claimsByVolume[from] = left; len(left) == 0 {
			delete(s.claimsByVolume, from)
		}
	}
	if to != "" {
		s.claimsByVolume[to] = append(s.claimsByVolume[to], claim)
	}
}

func (w *Store) putVolume(v *corev1.PersistentVolume) Urgency {
	row := convertVolume(v)
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.storage.volumes[v.Name]
	if had && reflect.DeepEqual(old, row) {
		return Never
	}
	w.storage.volumes[v.Name] = row
	return w.volumeChanged(v.Name, old, row)
}

func (w *Store) dropVolume(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.storage.volumes[name]
	delete(w.storage.volumes, name)
	return w.volumeChanged(name, old, volume{})
}

// movedVolume follows a change of a volume: the claims that name it, and those that may
// get it or might have got it.
func (w *Store) volumeChanged(name string, old, now volume) Urgency {
	s := &w.storage
	claims := slices.Clone(s.claimsByVolume[name])
	if old.unbound {
		claims = append(claims, s.unboundClaims(old.class)...)
		if delete(s.unboundVolumes[old.class], name); len(s.unboundVolumes[old.class]) == 0 {
			delete(s.unboundVolumes, old.class)
		}
	}
	if now.unbound {
		if s.unboundVolumes[now.class] == nil {
			s.unboundVolumes[now.class] = map[string]bool{}
		}
		s.unboundVolumes[now.class][name] = true
		if !old.unbound || old.class != now.class {
			claims = append(claims, s.unboundClaims(now.class)...)
		}
	}
	urgency := w.updateClasses(claims...)
	for va := range w.attachments.with[name] {
		urgency = max(urgency, w.updateVolumeLimits(w.attachments.all[va].node))
	}
	return urgency
}

func (w *Store) putStorageClass(c *storagev1.StorageClass) Urgency {
	row := convertStorageClass(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, had := w.storage.classes[c.Name]; had && reflect.DeepEqual(old, row) {
		return Never
	}
	w.storage.classes[c.Name] = row
	return w.updateClasses(w.storage.unboundClaims(c.Name)...)
}

func (w *Store) dropStorageClass(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.storage.classes, name)
	return w.updateClasses(w.storage.unboundClaims(name)...)
}

// unboundOf lists the claims of a storage class that pods use and that have no volume yet.
func (s *storage) unboundClaims(class string) []string {
	var out []string
	for key := range s.podsByClaim {
		if c, ok := s.claims[key]; ok && !c.bound && c.class == class {
			out = append(out, key)
		}
	}
	return out
}

// reclass gives the pods that use these claims the class that they have now. That a
// waiting pod's volumes changed is worth a round at once.
func (w *Store) updateClasses(claims ...string) Urgency {
	urgency := Never
	for _, claim := range claims {
		for _, key := range w.storage.podsByClaim[claim] {
			u := w.storage.usesByPod[key]
			p, ok := w.pod(key, u.node)
			if !ok {
				continue
			}
			class := w.classes.rows[p.Class]
			w.storage.completeClass(key, u, &class)
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

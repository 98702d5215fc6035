package observe

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func (w *world) putClaim(c *corev1.PersistentVolumeClaim) Urgency {
	row, key := convertClaim(c), c.Namespace+"/"+c.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.storage
	old, had := s.claims[key]
	if had && reflect.DeepEqual(old, row) {
		return Never
	}
	s.rename(key, old.volume, row.volume)
	s.claims[key] = row
	return w.reclass(key)
}

func (w *world) dropClaim(key string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storage.rename(key, w.storage.claims[key].volume, "")
	delete(w.storage.claims, key)
	return w.reclass(key)
}

// rename keeps the claims that name a volume.
func (s *storage) rename(claim, from, to string) {
	if from == to {
		return
	}
	if from != "" {
		left := slices.DeleteFunc(s.named[from], func(k string) bool { return k == claim })
		if s.named[from] = left; len(left) == 0 {
			delete(s.named, from)
		}
	}
	if to != "" {
		s.named[to] = append(s.named[to], claim)
	}
}

func (w *world) putVolume(v *corev1.PersistentVolume) Urgency {
	row := convertVolume(v)
	w.mu.Lock()
	defer w.mu.Unlock()
	old, had := w.storage.volumes[v.Name]
	if had && reflect.DeepEqual(old, row) {
		return Never
	}
	w.storage.volumes[v.Name] = row
	return w.movedVolume(v.Name, old, row)
}

func (w *world) dropVolume(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.storage.volumes[name]
	delete(w.storage.volumes, name)
	return w.movedVolume(name, old, volume{})
}

// movedVolume follows a change of a volume: the claims that name it, and those that may
// get it or might have got it.
func (w *world) movedVolume(name string, old, now volume) Urgency {
	s := &w.storage
	claims := slices.Clone(s.named[name])
	if old.unbound {
		claims = append(claims, s.unboundOf(old.class)...)
		if delete(s.free[old.class], name); len(s.free[old.class]) == 0 {
			delete(s.free, old.class)
		}
	}
	if now.unbound {
		if s.free[now.class] == nil {
			s.free[now.class] = map[string]bool{}
		}
		s.free[now.class][name] = true
		if !old.unbound || old.class != now.class {
			claims = append(claims, s.unboundOf(now.class)...)
		}
	}
	urgency := w.reclass(claims...)
	for va := range w.attachments.with[name] {
		urgency = max(urgency, w.relimit(w.attachments.all[va].node))
	}
	return urgency
}

func (w *world) putStorageClass(c *storagev1.StorageClass) Urgency {
	row := convertStorageClass(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, had := w.storage.classes[c.Name]; had && reflect.DeepEqual(old, row) {
		return Never
	}
	w.storage.classes[c.Name] = row
	return w.reclass(w.storage.unboundOf(c.Name)...)
}

func (w *world) dropStorageClass(name string) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.storage.classes, name)
	return w.reclass(w.storage.unboundOf(name)...)
}

// unboundOf lists the claims of a storage class that pods use and that have no volume yet.
func (s *storage) unboundOf(class string) []string {
	var out []string
	for key := range s.users {
		if c, ok := s.claims[key]; ok && !c.bound && c.class == class {
			out = append(out, key)
		}
	}
	return out
}

// reclass gives the pods that use these claims the class that they have now. That a
// waiting pod's volumes changed is worth a round at once.
func (w *world) reclass(claims ...string) Urgency {
	urgency := Never
	for _, claim := range claims {
		for _, key := range w.storage.users[claim] {
			u := w.storage.uses[key]
			p, ok := w.pod(key, u.node)
			if !ok {
				continue
			}
			class := w.classes.rows[p.Class]
			w.storage.complete(key, u, &class)
			old := p.Class
			p.Class = w.intern(class)
			w.classes.release(old)
			if p.Class == old {
				continue
			}
			p.Budgets = w.classBudget[p.Class]
			if p.Node != "" {
				w.nodes.putPod(p)
				w.relimit(p.Node)
				continue
			}
			w.pods.put(key, p)
			urgency = Soon
		}
	}
	return urgency
}

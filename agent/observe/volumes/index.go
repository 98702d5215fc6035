package volumes

import (
	"iter"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// PutClaim stores a PersistentVolumeClaim. Like every method that changes an object, it
// returns the claims whose demand may be another one now.
func (x *Index) PutClaim(c *corev1.PersistentVolumeClaim) (claims []string) {
	row, key := newClaim(c), c.Namespace+"/"+c.Name
	old, had := x.claims[key]
	if had && reflect.DeepEqual(old, row) {
		return nil
	}
	x.indexClaim(key, old.volume, row.volume)
	x.claims[key] = row
	return []string{key}
}

// DeleteClaim removes the claim "namespace/name".
func (x *Index) DeleteClaim(key string) (claims []string) {
	x.indexClaim(key, x.claims[key].volume, "")
	delete(x.claims, key)
	return []string{key}
}

// indexClaim keeps claimsByVolume when a claim names another volume.
func (x *Index) indexClaim(claim, from, to string) {
	if from == to {
		return
	}
	if from != "" {
		left := slices.DeleteFunc(x.claimsByVolume[from], func(k string) bool { return k == claim })
		if x.claimsByVolume[from] = left; len(left) == 0 {
			delete(x.claimsByVolume, from)
		}
	}
	if to != "" {
		x.claimsByVolume[to] = append(x.claimsByVolume[to], claim)
	}
}

// PutVolume stores a PersistentVolume. It reports whether the volume changed: an
// attachment of it may then count against another limit.
func (x *Index) PutVolume(v *corev1.PersistentVolume) (claims []string, changed bool) {
	row := newVolume(v)
	old, had := x.volumes[v.Name]
	if had && reflect.DeepEqual(old, row) {
		return nil, false
	}
	x.volumes[v.Name] = row
	return x.volumeChanged(v.Name, old, row), true
}

// DeleteVolume removes a PersistentVolume.
func (x *Index) DeleteVolume(name string) (claims []string) {
	old := x.volumes[name]
	delete(x.volumes, name)
	return x.volumeChanged(name, old, volume{})
}

// volumeChanged keeps unboundVolumes. It returns the claims that name the volume, and the
// claims that the volume may serve or might have served.
func (x *Index) volumeChanged(name string, old, now volume) (claims []string) {
	claims = slices.Clone(x.claimsByVolume[name])
	if old.unbound {
		claims = append(claims, x.unboundClaims(old.class)...)
		if delete(x.unboundVolumes[old.class], name); len(x.unboundVolumes[old.class]) == 0 {
			delete(x.unboundVolumes, old.class)
		}
	}
	if now.unbound {
		if x.unboundVolumes[now.class] == nil {
			x.unboundVolumes[now.class] = map[string]bool{}
		}
		x.unboundVolumes[now.class][name] = true
		if !old.unbound || old.class != now.class {
			claims = append(claims, x.unboundClaims(now.class)...)
		}
	}
	return claims
}

// PutStorageClass stores a StorageClass.
func (x *Index) PutStorageClass(c *storagev1.StorageClass) (claims []string) {
	row := newStorageClass(c)
	if old, had := x.classes[c.Name]; had && reflect.DeepEqual(old, row) {
		return nil
	}
	x.classes[c.Name] = row
	return x.unboundClaims(c.Name)
}

// DeleteStorageClass removes a StorageClass.
func (x *Index) DeleteStorageClass(name string) (claims []string) {
	delete(x.classes, name)
	return x.unboundClaims(name)
}

// SetPublishesCapacity notes whether a CSI driver publishes the capacity of its storage.
func (x *Index) SetPublishesCapacity(driver string, publishes bool) (claims []string) {
	if x.publishesCapacity[driver] == publishes {
		return nil
	}
	if publishes {
		x.publishesCapacity[driver] = true
	} else {
		delete(x.publishesCapacity, driver)
	}
	for class, c := range x.classes {
		if c.provisioner == driver {
			claims = append(claims, x.unboundClaims(class)...)
		}
	}
	return claims
}

// unboundClaims lists the claims of a storage class that pods use and that have no volume yet.
func (x *Index) unboundClaims(class string) []string {
	var out []string
	for key := range x.podsByClaim {
		if c, ok := x.claims[key]; ok && !c.bound && c.class == class {
			out = append(out, key)
		}
	}
	return out
}

// PodsOf returns the pods that use a claim, each with the node that it is bound to ("":
// none).
func (x *Index) PodsOf(claim string) iter.Seq2[cluster.PodKey, cluster.NodeName] {
	return func(yield func(cluster.PodKey, cluster.NodeName) bool) {
		for _, key := range x.podsByClaim[claim] {
			if !yield(key, x.usesByPod[key].node) {
				return
			}
		}
	}
}

// CSIHandle returns the handle of a volume that a CSI driver made itself; false for an
// in-tree volume, which kube-scheduler only counts as the driver's.
func (x *Index) CSIHandle(volume string) (handle string, ok bool) {
	v := x.volumes[volume]
	return v.handle, v.csi
}

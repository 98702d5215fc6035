package store

import (
	"maps"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// attachments are the volumes that are attached to nodes, by the names of their
// VolumeAttachments. An attached volume that no pod of the node uses (it is being
// detached, or its detachment hangs) counts against the node's limit, as in
// kube-scheduler (CSILimits.getNodeVolumeAttachmentInfo).
type attachments struct {
	all  map[string]attachedTo
	on   map[cluster.NodeName]map[string]bool
	with map[string]map[string]bool // by volume
}

type attachedTo struct {
	node           cluster.NodeName
	driver, volume string
}

func newAttachments() attachments {
	return attachments{all: map[string]attachedTo{}, on: map[cluster.NodeName]map[string]bool{}, with: map[string]map[string]bool{}}
}

// put replaces one attachment; one without a volume is removed.
func (a *attachments) put(name string, now attachedTo) (old attachedTo) {
	old = a.all[name]
	if old.volume != "" {
		discard(a.on, old.node, name)
		discard(a.with, old.volume, name)
		delete(a.all, name)
	}
	if now.volume != "" {
		a.all[name] = now
		insert(a.on, now.node, name)
		insert(a.with, now.volume, name)
	}
	return old
}

func insert[K comparable](sets map[K]map[string]bool, k K, name string) {
	if sets[k] == nil {
		sets[k] = map[string]bool{}
	}
	sets[k][name] = true
}

func discard[K comparable](sets map[K]map[string]bool, k K, name string) {
	if delete(sets[k], name); len(sets[k]) == 0 {
		delete(sets, k)
	}
}

func (s *Store) PutAttachment(v *storagev1.VolumeAttachment) Urgency {
	now := attachedTo{node: cluster.NodeName(v.Spec.NodeName), driver: v.Spec.Attacher}
	if pv := v.Spec.Source.PersistentVolumeName; pv != nil && v.Spec.Attacher != "" {
		now.volume = *pv
	}
	return s.setAttachment(v.Name, now)
}

func (s *Store) DeleteAttachment(name string) Urgency { return s.setAttachment(name, attachedTo{}) }

func (s *Store) setAttachment(name string, now attachedTo) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attachments.all[name] == now {
		return Never
	}
	old := s.attachments.put(name, now)
	return max(s.updateVolumeLimits(old.node), s.updateVolumeLimits(now.node))
}

// updateVolumeLimits sets the volume limits of a stored Node to the ones in force now.
func (s *Store) updateVolumeLimits(name cluster.NodeName) Urgency {
	n, ok := s.nodes.get(name)
	if !ok {
		return Never
	}
	limits := s.effectiveLimits(name, n.Pods)
	if maps.Equal(n.VolumeLimits, limits) {
		return Never
	}
	row := *n
	row.VolumeLimits = limits
	s.nodes.put(row)
	return Later
}

// volumesChanged updates the limits of a node after a change of one of its pods, if that
// pod has volumes.
func (s *Store) volumesChanged(node cluster.NodeName, class int) {
	if node != "" && len(s.attachments.on[node]) > 0 && len(s.classes.rows[class].Volumes) > 0 {
		s.updateVolumeLimits(node)
	}
}

// effectiveLimits are the limits of a node's CSINode, less the attached volumes that
// none of its pods uses. fullLimits keeps the limits of the CSINode where the two
// differ.
func (s *Store) effectiveLimits(name cluster.NodeName, pods []cluster.Pod) map[string]int64 {
	limits := s.nodeLimits[name]
	delete(s.fullLimits, name)
	if len(limits) == 0 || len(s.attachments.on[name]) == 0 {
		return limits
	}
	type disk struct{ driver, handle string }
	idle := map[disk]bool{}
	for va := range s.attachments.on[name] {
		a := s.attachments.all[va]
		if handle, ok := s.volumes.CSIHandle(a.volume); ok {
			idle[disk{a.driver, handle}] = true
		}
	}
	for i := range pods {
		if pods[i].Finished {
			continue
		}
		for _, v := range s.classes.rows[pods[i].Class].Volumes {
			delete(idle, disk{v.Driver, v.Handle})
		}
	}
	if len(idle) == 0 {
		return limits
	}
	left := maps.Clone(limits)
	for d := range idle {
		if n, ok := left[d.driver]; ok {
			left[d.driver] = max(n-1, 0)
		}
	}
	s.fullLimits[name] = limits
	return left
}

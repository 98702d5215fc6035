package store

import (
	"reflect"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// change changes the index of devices; what follows from it is worked out at the next Snapshot (applyDevices).
func (s *Store) change(do func()) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	_, wanted := s.devices.Wanted()
	switch {
	case !s.devices.Changed():
		return Never
	case wanted:
		return Soon
	}
	return Later
}

func (s *Store) PutDeviceClass(c *resourcev1.DeviceClass) Urgency {
	return s.change(func() { s.devices.PutClass(c) })
}

func (s *Store) DeleteDeviceClass(name string) Urgency {
	return s.change(func() { s.devices.DeleteClass(name) })
}

func (s *Store) PutTaintRule(r *resourcev1beta2.DeviceTaintRule) Urgency {
	return s.change(func() { s.devices.PutRule(r) })
}

func (s *Store) DeleteTaintRule(name string) Urgency {
	return s.change(func() { s.devices.DeleteRule(name) })
}

func (s *Store) PutResourceSlice(r *resourcev1.ResourceSlice) Urgency {
	return s.change(func() { s.devices.PutSlice(r) })
}

func (s *Store) DeleteResourceSlice(name string) Urgency {
	return s.change(func() { s.devices.DeleteSlice(name) })
}

func (s *Store) PutResourceClaim(c *resourcev1.ResourceClaim) Urgency {
	return s.change(func() { s.devices.PutClaim(c) })
}

func (s *Store) DeleteResourceClaim(key string) Urgency {
	return s.change(func() { s.devices.DeleteClaim(key) })
}

func (s *Store) PutResourceClaimTemplate(t *resourcev1.ResourceClaimTemplate) Urgency {
	return s.change(func() { s.devices.PutTemplate(t) })
}

func (s *Store) DeleteResourceClaimTemplate(key string) Urgency {
	return s.change(func() { s.devices.DeleteTemplate(key) })
}

// SetDevicesUnread tells why the objects of resource.k8s.io are not read, in words that follow "the objects are"; empty: they are read.
// Before, pods with claims are held.
func (s *Store) SetDevicesUnread(why string) Urgency {
	return s.change(func() { s.devices.SetUnread(why) })
}

// WantsDevices tells whether a pod has claims, and whether one may have, by the extended resources that it asks for.
func (s *Store) WantsDevices() (claims, perhaps bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.devices.Wanted()
}

// CompleteHeadroom returns headroom with the claims of its pieces. known: the nodes say what their devices are to these; otherwise the next Snapshot has it.
func (s *Store) CompleteHeadroom(list []cluster.Headroom) (out []cluster.Headroom, known bool) {
	if len(list) == 0 {
		return list, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out = slices.Clone(list)
	for i := range out {
		s.devices.CompletePiece(&out[i])
	}
	return out, !s.devices.Changed()
}

// JudgeDevices returns the devices of a template with what the selectors of today say of them.
func (s *Store) JudgeDevices(d *cluster.Devices) *cluster.Devices {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.devices.Judge(d)
}

// applyDevices gives the pods their claims and the nodes their devices anew, as far as they may have changed. It costs these. The pods
// come first: a selector that is new has the nodes judged by it.
func (s *Store) applyDevices() {
	if s.devices.Changed() {
		s.nodes.version++ // templates have devices too, which a new selector may select
	}
	for s.devices.Changed() {
		pods := s.devices.TakeChangedPods()
		for key, node := range pods {
			s.completeAnew(key, node)
		}
		for _, name := range s.devices.TakeChangedNodes() {
			n, ok := s.nodes.get(name)
			if !ok {
				continue
			}
			if now := s.devices.OnNode(name); !reflect.DeepEqual(n.Devices, now) {
				row := *n
				row.Devices = now
				s.nodes.put(row)
			}
		}
	}
}

package store

import (
	"reflect"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/devices"
)

// ChangeDevices changes the index of devices; what follows from it is worked out at the next Snapshot (applyDevices).
func (s *Store) ChangeDevices(do func(*devices.Index)) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s.devices)
	_, wanted := s.devices.Wanted()
	switch {
	case !s.devices.Changed():
		return Never
	case wanted:
		return Soon
	}
	return Later
}

// Changing is ChangeDevices for an event's handler.
func Changing[T any](s *Store, do func(*devices.Index, T)) func(T) Urgency {
	return func(t T) Urgency { return s.ChangeDevices(func(x *devices.Index) { do(x, t) }) }
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

package fit

import (
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// NextMachine is a group's next machine, as the filters see it.
//
// Of a machine that comes in one of several zones nobody knows which label it will carry. A pod
// passes on it where it passes in each of the zones: a machine that is bought for it must take it
// wherever the cloud puts it. A DaemonSet is reserved room for where it runs in one of the zones.
func NextMachine(t *cluster.Template) NodeInfo {
	s := NodeInfo{Labels: t.Labels, Taints: WithoutStartupTaints(t.Taints), Devices: t.Devices, Extended: t.Allocatable.Extended}
	return s.Placed(t, "")
}

// Placed is a machine of a group that lacks labels of its zone, in a zone; empty: in one that is
// not known.
func (s NodeInfo) Placed(t *cluster.Template, zone string) NodeInfo {
	if !slices.ContainsFunc(t.ZoneLabels, func(key string) bool { _, has := s.Labels[key]; return !has }) {
		return s
	}
	if zone != "" {
		return s.InZone(zone, t.ZoneLabels)
	}
	for _, zone := range t.Zones {
		s.InZones = append(s.InZones, s.InZone(zone, t.ZoneLabels))
	}
	return s
}

// InZone is a machine as it is in a zone: with those of the labels that it does not have. The
// result shares nothing that changes.
func (s *NodeInfo) InZone(zone string, labels []string) NodeInfo {
	in := NodeInfo{Name: s.Name, Taints: s.Taints, Unschedulable: s.Unschedulable, Labels: make(map[string]string, len(s.Labels)+len(labels))}
	for _, key := range labels {
		in.Labels[key] = zone
	}
	maps.Copy(in.Labels, s.Labels)
	return in
}

// inEachZone tells whether something holds of a shape wherever its machine comes.
func inEachZone(s *NodeInfo, holds func(*NodeInfo) bool) bool {
	if len(s.InZones) == 0 {
		return holds(s)
	}
	for i := range s.InZones {
		if !holds(&s.InZones[i]) {
			return false
		}
	}
	return true
}

package decision

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Start is what a node that has just joined has beside its group's template, or lacks of it.
type Start struct {
	Taints    []cluster.Taint  `json:"taints,omitempty"`
	Labels    []string         `json:"labels,omitempty"`    // sorted
	Resources map[string]int64 `json:"resources,omitempty"` // what it should have of those of which it has less
	Drivers   []string         `json:"drivers,omitempty"`   // CSI drivers without their volume limit; sorted
	Devices   []string         `json:"devices,omitempty"`   // DRA drivers without a device; sorted
	// Overdue tells that what is left had not passed in its time.
	Overdue bool `json:"overdue,omitempty"`
	// Passed is when all of it had passed; zero: not yet.
	Passed time.Time `json:"passed,omitzero"`
}

// Empty tells that nothing of a start is left.
func (s *Start) Empty() bool {
	return len(s.Taints)+len(s.Labels)+len(s.Resources)+len(s.Drivers)+len(s.Devices) == 0
}

// Still is the part of a start that a node shows now.
func (s *Start) Still(n *cluster.Node) (left Start) {
	for _, t := range s.Taints {
		if slices.Contains(n.Taints, t) {
			left.Taints = append(left.Taints, t)
		}
	}
	for _, key := range s.Labels {
		if _, has := n.Labels[key]; !has {
			left.Labels = append(left.Labels, key)
		}
	}
	for name, promised := range s.Resources {
		if Amount(&n.Allocatable, name) < promised {
			left.AddResource(name, promised)
		}
	}
	for _, driver := range s.Drivers {
		if _, has := n.VolumeLimits[driver]; !has {
			left.Drivers = append(left.Drivers, driver)
		}
	}
	for _, driver := range s.Devices {
		if !n.Devices.Has(driver) {
			left.Devices = append(left.Devices, driver)
		}
	}
	return left
}

// Words name what is left of a start: taints that have not gone, and what has not come.
func (s *Start) Words(notGone, notCome string) string {
	var out []string
	for _, t := range s.Taints {
		out = append(out, "the taint "+t.Key+" "+notGone)
	}
	for _, key := range s.Labels {
		out = append(out, "the label "+key+" "+notCome)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
		out = append(out, "the resource "+name+" "+notCome)
	}
	for _, driver := range s.Drivers {
		out = append(out, "the volume limit of "+driver+" "+notCome)
	}
	for _, driver := range s.Devices {
		out = append(out, "the ResourceSlice of "+driver+" "+notCome)
	}
	return strings.Join(out, ", ")
}

// AddResource notes what a node should have of a resource.
func (s *Start) AddResource(name string, promised int64) {
	if s.Resources == nil {
		s.Resources = make(map[string]int64)
	}
	s.Resources[name] = promised
}

// EphemeralStorage is the name of the resource that a kubelet may report last of its own.
const EphemeralStorage = "ephemeral-storage"

// Amount is how much there is of a resource that a node may get late.
func Amount(r *cluster.Resources, name string) int64 {
	if name == EphemeralStorage {
		return r.EphemeralStorage
	}
	return r.Extended[name]
}

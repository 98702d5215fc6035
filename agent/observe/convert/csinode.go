package convert

import storagev1 "k8s.io/api/storage/v1"

// VolumeLimits returns the number of volumes that each CSI driver of a node attaches at
// most (nodevolumelimits.getVolumeLimits). Drivers without a limit are left out.
func VolumeLimits(n *storagev1.CSINode) map[string]int64 {
	var out map[string]int64
	for i := range n.Spec.Drivers {
		d := &n.Spec.Drivers[i]
		if d.Allocatable == nil || d.Allocatable.Count == nil {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		out[d.Name] = int64(*d.Allocatable.Count)
	}
	return out
}

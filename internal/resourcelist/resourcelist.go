// Package resourcelist reads core/v1 ResourceList, the amounts of nodes, pods and templates
// of nodes.
//
// Small and apart: observe and a provider read the same amounts. It refuses text: package quantity reads quantities that people wrote.
package resourcelist

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Resources counts a list as kube-scheduler's NodeInfo does: CPU in thousandths of a core
// rounded up, every other resource in whole units rounded up. Resources that the scheduler
// does not count (neither native scalars nor domain-qualified) are left out.
func Resources(list corev1.ResourceList) cluster.Resources {
	var r cluster.Resources
	for name, q := range list {
		switch name {
		case corev1.ResourceCPU:
			r.MilliCPU = capped(q.MilliValue())
		case corev1.ResourceMemory:
			r.Memory = capped(q.Value())
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = capped(q.Value())
		case corev1.ResourcePods:
			r.Pods = capped(q.Value())
		default:
			if v := q.Value(); v != 0 && scalar(name) {
				if r.Extended == nil {
					r.Extended = map[string]int64{}
				}
				r.Extended[string(name)] = capped(v)
			}
		}
	}
	return r
}

// mostOfOne is more than any machine has (a pebibyte), and so much less than an int64 holds that sums over a cluster stay in it.
const mostOfOne = 1 << 50

// capped bounds an amount that a kubelet or the owner of a pod writes: beyond the most it counts as the most.
func capped(v int64) int64 { return min(v, mostOfOne) }

// scalar is kube-scheduler's IsScalarResourceName: extended, huge pages, prefixed
// native and attachable volumes.
func scalar(name corev1.ResourceName) bool {
	s := string(name)
	return strings.Contains(s, "/") || strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(s, corev1.ResourceAttachableVolumesPrefix)
}

package store

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// quota is what a ResourceQuota leaves.
type quota []quotaLimit

// quotaLimit is what a ResourceQuota leaves of one resource, and how much of it a pod takes.
type quotaLimit struct {
	left int64
	of   func(size templateSize) int64
}

// quotaResources are the resources of a quota by which pods are counted here. Others (limits, storage, extended resources) may keep a
// controller from making more: that shows in its status.
var quotaResources = map[corev1.ResourceName]func(templateSize) int64{
	corev1.ResourcePods:           func(templateSize) int64 { return 1 },
	"count/pods":                  func(templateSize) int64 { return 1 },
	corev1.ResourceCPU:            func(s templateSize) int64 { return s.milliCPU },
	corev1.ResourceRequestsCPU:    func(s templateSize) int64 { return s.milliCPU },
	corev1.ResourceMemory:         func(s templateSize) int64 { return s.memory },
	corev1.ResourceRequestsMemory: func(s templateSize) int64 { return s.memory },
}

// PutQuota notes what a ResourceQuota leaves, by its status, as the API server's admission has it. One with a scope is left out: it
// is for some of the namespace's pods.
func (s *Store) PutQuota(q *corev1.ResourceQuota) Urgency {
	var limits quota
	for name, hard := range q.Status.Hard {
		used, counted := q.Status.Used[name]
		of := quotaResources[name]
		if of == nil || !counted || len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		hard.Sub(used)
		left := hard.Value()
		if name == corev1.ResourceCPU || name == corev1.ResourceRequestsCPU {
			left = hard.MilliValue()
		}
		limits = append(limits, quotaLimit{max(left, 0), of})
	}
	return s.setQuota(q.Namespace, q.Name, limits)
}

func (s *Store) DeleteQuota(namespace, name string) Urgency { return s.setQuota(namespace, name, nil) }

// setQuota begins no round: the pods that a controller makes do.
func (s *Store) setQuota(namespace, name string, limits quota) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastMissing = nil; len(limits) == 0 {
		if delete(s.quotas[namespace], name); len(s.quotas[namespace]) == 0 {
			delete(s.quotas, namespace)
		}
		return Never
	}
	if s.quotas[namespace] == nil {
		s.quotas[namespace] = map[string]quota{}
	}
	s.quotas[namespace][name] = limits
	return Never
}

// admitted is how many of n pods of a size the quotas let a controller make, and takes them of what is left.
func admitted(left []quota, size templateSize, n int) int {
	for i := range left {
		for _, l := range left[i] {
			if each := l.of(size); each > 0 {
				n = min(n, int(l.left/each))
			}
		}
	}
	for i := range left {
		left[i] = slices.Clone(left[i])
		for k := range left[i] {
			left[i][k].left -= int64(n) * left[i][k].of(size)
		}
	}
	return n
}

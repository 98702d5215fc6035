package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// controller is a ReplicaSet, StatefulSet or Job that creates all its pods as fast as
// its rate limits let it.
type controller struct {
	kind    string
	key     cluster.PodKey
	desired int
	counted int // pods in its status
}

func (s *Store) PutReplicaSet(rs *appsv1.ReplicaSet) Urgency {
	desired := replicas(rs.Spec.Replicas)
	for _, c := range rs.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			desired = 0 // quota or admission: it creates none
		}
	}
	if rs.DeletionTimestamp != nil {
		desired = 0
	}
	s.setTemplate(cluster.UID(rs.UID), rs.Namespace, &rs.Spec.Template)
	return s.setController(cluster.UID(rs.UID), controller{"ReplicaSet", podKey(rs.Namespace, rs.Name), desired, int(rs.Status.Replicas)})
}

// PutStatefulSet counts a StatefulSet that creates its pods in parallel; an ordered one
// creates a pod when the one before it is Ready. No pods are expected of a StatefulSet
// with claim templates: where such a pod may run depends on its own volumes, which its
// siblings do not show.
func (s *Store) PutStatefulSet(set *appsv1.StatefulSet) Urgency {
	desired := replicas(set.Spec.Replicas)
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || set.DeletionTimestamp != nil || set.Spec.VolumeClaimTemplates != nil {
		desired = 0
	}
	s.setTemplate(cluster.UID(set.UID), set.Namespace, &set.Spec.Template)
	return s.setController(cluster.UID(set.UID), controller{"StatefulSet", podKey(set.Namespace, set.Name), desired, int(set.Status.Replicas)})
}

// PutJob counts a Job that is on its first pods. Once some have ended, the next ones
// depend on how they ended, and none are expected.
func (s *Store) PutJob(j *batchv1.Job) Urgency {
	desired := replicas(j.Spec.Parallelism)
	if n := j.Spec.Completions; n != nil {
		desired = min(desired, int(*n))
	}
	st := &j.Status
	if st.Succeeded+st.Failed > 0 || st.UncountedTerminatedPods != nil && len(st.UncountedTerminatedPods.Succeeded)+len(st.UncountedTerminatedPods.Failed) > 0 ||
		j.Spec.Suspend != nil && *j.Spec.Suspend || j.Spec.ManagedBy != nil && *j.Spec.ManagedBy != batchv1.JobControllerName ||
		j.DeletionTimestamp != nil || len(st.Conditions) > 0 {
		desired = 0
	}
	s.setTemplate(cluster.UID(j.UID), j.Namespace, &j.Spec.Template)
	return s.setController(cluster.UID(j.UID), controller{"Job", podKey(j.Namespace, j.Name), desired, int(st.Active)})
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func podKey(namespace, name string) cluster.PodKey { return cluster.PodKey(namespace + "/" + name) }

func (s *Store) setController(uid cluster.UID, m controller) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.desired == 0 {
		delete(s.controllers, uid)
	} else {
		s.controllers[uid] = m
	}
	s.updateMissing(uid)
	return Never
}

// DeleteController forgets a controller. Pods of it that are still there are made by nobody any more.
func (s *Store) DeleteController(uid cluster.UID) Urgency {
	u := s.setController(uid, controller{})
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sizes, uid)
	delete(s.bare, uid)
	if b := s.podsByController[uid]; b != nil && b.live > 0 && !slices.Contains(s.gone, uid) {
		s.gone = append(slices.Clip(s.gone), uid) // a Snapshot has the list
	}
	return u
}

// forgetGone forgets a controller whose last pod goes too.
func (s *Store) forgetGone(uid cluster.UID) {
	if i := slices.Index(s.gone, uid); i >= 0 {
		s.gone = slices.Delete(slices.Clone(s.gone), i, i+1)
	}
}

// updateMissing notes how many pods of a controller are still to be created, after a
// change of the controller or of its pods. A controller whose status counts the pods that exist has
// finished a pass without making more of them (a quota, an admission plug-in or a webhook refuses
// them), and none are expected until it makes one. While it works its status is behind its pods. A controller that is
// stopped looks like one that works until it writes its first status, at the end of the pass that was stopped; what a ResourceQuota
// lets it make is known before (missingPods), and where a webhook stops it a round between is too high.
func (s *Store) updateMissing(uid cluster.UID) {
	m, makes := s.controllers[uid]
	if b := s.podsByController[uid]; makes && b != nil {
		m.desired -= b.live
		makes = m.counted != b.live
	}
	if m.counted = 0; makes && m.desired > 0 {
		if s.incompleteControllers[uid] != m {
			s.incompleteControllers[uid], s.lastMissing = m, nil
		}
	} else if _, was := s.incompleteControllers[uid]; was {
		delete(s.incompleteControllers, uid)
		s.lastMissing = nil
	}
}

// missingPods lists the controllers whose pods are still to be created, as far as their namespaces' quotas let them. It returns
// the same slice again while nothing changed.
func (s *Store) missingPods() []cluster.Controller {
	if s.lastMissing == nil && len(s.incompleteControllers) > 0 {
		s.lastMissing = make([]cluster.Controller, 0, len(s.incompleteControllers))
		left := map[string][]quota{} // by namespace
		order := slices.SortedFunc(maps.Keys(s.incompleteControllers), func(a, b cluster.UID) int {
			return cmp.Or(cmp.Compare(s.incompleteControllers[a].key, s.incompleteControllers[b].key), cmp.Compare(a, b))
		})
		for _, uid := range order {
			m := s.incompleteControllers[uid]
			namespace, name, _ := splitKey(m.key)
			if _, known := left[namespace]; !known {
				left[namespace] = slices.Collect(maps.Values(s.quotas[namespace]))
			}
			if n := admitted(left[namespace], s.sizes[uid], m.desired); n > 0 {
				s.lastMissing = append(s.lastMissing, cluster.Controller{Owner: cluster.Owner{Kind: m.kind, Name: name, UID: uid}, Key: m.key, Missing: n})
			}
		}
	}
	return s.lastMissing
}

func splitKey(key cluster.PodKey) (namespace, name string, ok bool) {
	return strings.Cut(string(key), "/")
}

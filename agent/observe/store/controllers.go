package store

import (
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
}

func (w *Store) PutReplicaSet(rs *appsv1.ReplicaSet) Urgency {
	desired := replicas(rs.Spec.Replicas)
	for _, c := range rs.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			desired = 0 // quota or admission: it is making none
		}
	}
	if rs.DeletionTimestamp != nil {
		desired = 0
	}
	return w.setController(cluster.UID(rs.UID), controller{"ReplicaSet", podKey(rs.Namespace, rs.Name), desired})
}

// PutStatefulSet counts a StatefulSet that creates its pods in parallel; an ordered one
// creates a pod when the one before it is Ready. No pods are expected of a StatefulSet
// with claim templates: where such a pod may run depends on its own volumes, which its
// siblings do not show.
func (w *Store) PutStatefulSet(s *appsv1.StatefulSet) Urgency {
	desired := replicas(s.Spec.Replicas)
	if s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || s.DeletionTimestamp != nil || s.Spec.VolumeClaimTemplates != nil {
		desired = 0
	}
	return w.setController(cluster.UID(s.UID), controller{"StatefulSet", podKey(s.Namespace, s.Name), desired})
}

// PutJob counts a Job that is on its first pods. Once some have ended, the next ones
// depend on how they ended, and none are expected.
func (w *Store) PutJob(j *batchv1.Job) Urgency {
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
	return w.setController(cluster.UID(j.UID), controller{"Job", podKey(j.Namespace, j.Name), desired})
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func podKey(namespace, name string) cluster.PodKey { return cluster.PodKey(namespace + "/" + name) }

func (w *Store) setController(uid cluster.UID, m controller) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.desired == 0 {
		delete(w.controllers, uid)
	} else {
		w.controllers[uid] = m
	}
	w.updateMissing(uid)
	return Never
}

func (w *Store) DeleteController(uid cluster.UID) Urgency {
	return w.setController(uid, controller{})
}

// updateMissing notes how many pods of a controller are still to be created, after a
// change of the controller or of its pods.
func (w *Store) updateMissing(uid cluster.UID) {
	m, makes := w.controllers[uid]
	if b := w.podsByController[uid]; makes && b != nil {
		m.desired -= b.live
	}
	if makes && m.desired > 0 {
		if w.incompleteControllers[uid] != m {
			w.incompleteControllers[uid], w.lastMissing = m, nil
		}
	} else if _, was := w.incompleteControllers[uid]; was {
		delete(w.incompleteControllers, uid)
		w.lastMissing = nil
	}
}

// missingPods lists the controllers whose pods are still to be created. It returns the
// same slice again while nothing changed.
func (w *Store) missingPods() []cluster.Controller {
	if w.lastMissing == nil && len(w.incompleteControllers) > 0 {
		w.lastMissing = make([]cluster.Controller, 0, len(w.incompleteControllers))
		for uid, m := range w.incompleteControllers {
			_, name, _ := splitKey(m.key)
			w.lastMissing = append(w.lastMissing, cluster.Controller{Owner: cluster.Owner{Kind: m.kind, Name: name, UID: uid}, Key: m.key, Missing: m.desired})
		}
	}
	return w.lastMissing
}

func splitKey(key cluster.PodKey) (namespace, name string, ok bool) {
	return strings.Cut(string(key), "/")
}

package store

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// Only controllers that make all pods at once are waited for.
func TestMissingPodsOfControllers(t *testing.T) {
	n, few, yes := int32(300), int32(20), true
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "uid"}
	for _, tc := range []struct {
		name string
		put  func(w *Store)
		want int
	}{
		{"parallel StatefulSet", func(w *Store) {
			w.PutStatefulSet(&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &n, PodManagementPolicy: appsv1.ParallelPodManagement}})
		}, 300},
		{"ordered StatefulSet", func(w *Store) {
			w.PutStatefulSet(&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &n}})
		}, 0},
		{"StatefulSet with claims", func(w *Store) {
			set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &n, PodManagementPolicy: appsv1.ParallelPodManagement,
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*aClaim("data", "x", nil)}}}
			if _, err := convert.Strip(set); err != nil || len(set.Spec.VolumeClaimTemplates) > 0 {
				t.Errorf("stripped: %+v, %v", set.Spec, err)
			}
			w.PutStatefulSet(set)
		}, 0},
		{"Job", func(w *Store) { w.PutJob(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &n}}) }, 300},
		{"Job of few", func(w *Store) {
			w.PutJob(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &n, Completions: &few}})
		}, 20},
		{"suspended Job", func(w *Store) {
			w.PutJob(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &n, Suspend: &yes}})
		}, 0},
		{"Job with ended pods", func(w *Store) {
			w.PutJob(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &n}})
			w.PutJob(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &n}, Status: batchv1.JobStatus{Failed: 1}})
		}, 0},
		{"Job that is gone", func(w *Store) {
			w.PutJob(&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &n}})
			w.DeleteController("uid")
		}, 0},
	} {
		w := New(nil)
		tc.put(w)
		got := 0
		for _, c := range w.missingPods() {
			got += c.Missing
		}
		if got != tc.want {
			t.Errorf("%s: %d pods expected, want %d", tc.name, got, tc.want)
		}
	}
}

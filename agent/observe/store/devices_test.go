package store

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClaimsLeaveTheRest: a class that is completed anew by its claims keeps what else is not understood, and its volumes.
func TestClaimsLeaveTheRest(t *testing.T) {
	w, name := New(nil), "c"
	w.PutPod(pod("p", func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &name}}
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "v"}}}, {VolumeSource: corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{}}}}
	}))
	judge := func(claims int, why ...string) {
		t.Helper()
		s := w.contents()
		if c := s.Classes[s.Pods[0].Class]; len(c.Claims) != claims || len(c.Volumes) != 1 || !slices.EqualFunc(c.NotUnderstood, why, func(a, b string) bool { return len(a) >= len(b) && a[:len(b)] == b }) {
			t.Errorf("%+v", c)
		}
	}
	judge(0, "rbd volume", "resourceClaims: the objects of resource.k8s.io/v1 are being read")
	w.devices.SetUnread("")
	judge(1, "rbd volume")
	w.devices.PutClaim(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
	judge(1, "rbd volume")
}

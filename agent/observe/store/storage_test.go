package store

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPublishedCapacityIsNotUnderstood(t *testing.T) {
	w := New(nil)
	later, class := storagev1.VolumeBindingWaitForFirstConsumer, "measured"
	w.PutStorageClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "disk.example.com", VolumeBindingMode: &later})
	w.PutClaim(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}})
	w.PutPod(pod("p", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	}))
	held := func() []string {
		s := w.contents()
		for p := range s.AllPods() {
			return s.Classes[p.Class].NotUnderstood
		}
		return nil
	}
	if got := held(); got != nil {
		t.Errorf("a driver that tells nothing: %q", got)
	}
	yes := true
	if u := w.PutCSIDriver(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}); u != Soon {
		t.Errorf("urgency %v", u)
	}
	if got := held(); !slices.Equal(got, []string{"storage capacity of disk.example.com"}) {
		t.Errorf("a driver that tells: %q", got)
	}
	if w.DeleteCSIDriver("disk.example.com"); held() != nil {
		t.Errorf("the driver is gone: %q", held())
	}
}

package volumes_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/volumes"
)

// A pod uses a claim before its storage class is known; the class limits it to one zone.
func ExampleIndex() {
	index := volumes.NewIndex()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "pg-0"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}
	name, wait := "fast", storagev1.VolumeBindingWaitForFirstConsumer
	index.PutClaim(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &name}})

	var class cluster.PodClass
	index.SetPod("db/pg-0", volumes.PodUse(pod), &class)
	fmt.Println(class.Volumes[0].Refused)

	claims := index.PutStorageClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "disk.example.com", VolumeBindingMode: &wait,
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}})
	for _, claim := range claims {
		for key := range index.PodsOf(claim) {
			index.Complete(key, &class)
			fmt.Println(key, claim, class.Volumes[0].Topologies[0].Labels)
		}
	}
	// Output:
	// pod has unbound immediate PersistentVolumeClaims
	// db/pg-0 db/data [{zone In [a]}]
}

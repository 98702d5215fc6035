package convert_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// A pod becomes a class (the part that scheduling depends on) and the pod's own part. A
// feature that the agent does not judge is named.
func ExamplePodClass() {
	always := corev1.ContainerRestartPolicyAlways
	cpu := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
		Spec: corev1.PodSpec{
			SchedulerName:  "batch",
			InitContainers: []corev1.Container{{Name: "proxy", RestartPolicy: &always, Resources: cpu("100m")}},
			Containers:     []corev1.Container{{Name: "web", Resources: cpu("500m")}},
		},
	}
	class := convert.PodClass(p, []string{"default-scheduler"})
	fmt.Println(convert.Pod(p).Key, class.Requests.MilliCPU, class.NotUnderstood)
	// Output: shop/web-1 600 [schedulerName batch]
}

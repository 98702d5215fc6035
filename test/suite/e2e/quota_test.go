package e2e

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestQuota: of a Job whose namespace's quota lets two pods exist, two get a machine, and none is bought for the 48 that never come
// (kubernetes/autoscaler#8580).
func TestQuota(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	ctx := t.Context()
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "limited"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	two := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	if _, err := s.client.CoreV1().ResourceQuotas("limited").Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: corev1.ResourceQuotaSpec{Hard: two}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("the quota is counted", func() bool {
		q, err := s.client.CoreV1().ResourceQuotas("limited").Get(ctx, "two", metav1.GetOptions{})
		return err == nil && len(q.Status.Used) > 0
	})
	s.start()
	s.workers(world.Workers{Name: "workers", Max: 20})
	n := int32(50)
	if _, err := s.client.BatchV1().Jobs("limited").Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Spec: batchv1.JobSpec{Parallelism: &n, Completions: &n,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "nginx", Resources: requests("3", "16Mi")}}}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("two pods run", func() bool {
		pods, err := s.client.CoreV1().Pods("limited").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err == nil && len(pods.Items) == 2 && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
	})
	if more := s.resizes(); len(more) > 2 || s.target() != 2 {
		t.Errorf("%d machines, after %d calls", s.target(), len(more))
	}
}

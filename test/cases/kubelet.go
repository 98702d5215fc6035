package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// kubelet stands for the kubelets of all Nodes: a bound pod runs and is ready at once, and one
// that is deleted is gone at once.
type kubelet struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func startKubelet(client kubernetes.Interface) *kubelet {
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelet{client: client, cancel: cancel}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	_, _ = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only once it has stopped
		AddFunc:    func(o any) { k.sync(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.sync(ctx, o.(*corev1.Pod)) },
	})
	k.wg.Go(func() { pods.RunWithContext(ctx) })
	return k
}

func (k *kubelet) stop() {
	k.cancel()
	k.wg.Wait()
}

// sync does what a version of a pod asks for. A failure is seen by who waits for the pod.
func (k *kubelet) sync(ctx context.Context, pod *corev1.Pod) {
	api := k.client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.Spec.NodeName == "":
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		_ = api.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	case pod.Status.Phase == corev1.PodPending:
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": running(pod)})
		_, _ = api.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
}

func running(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	s := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now}
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	yes := true
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image,
			Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	return s
}

// attach makes the CSINode of a Node, as its kubelet does when drivers register.
func (s *scene) attach(ctx context.Context, node string, volumes map[string]int32) error {
	if len(volumes) == 0 {
		return nil
	}
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, driver := range slices.Sorted(maps.Keys(volumes)) {
		count := volumes[driver]
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &count}})
	}
	if _, err := s.t.client.StorageV1().CSINodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make CSINode %s: %w", node, err)
	}
	return nil
}

package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"
)

// AnnotationStop of a pod tells how long it takes to end, as in "1.5s", at most its grace period.
const AnnotationStop = "machine.test/stop-after"

// podState is what the kubelet has done about a pod. Guarded by kubelet.mu.
type podState struct {
	pod     *corev1.Pod // the newest version seen
	number  int
	started bool // somebody is starting it, or has
	running bool
	ending  bool
	cancel  context.CancelFunc
	cpu     cpuTime
}

// usage is what admitted pods request of the allocatable resources.
type usage struct{ count int }

// watchPods follows the pods that are bound to this node, and only those: the Node
// authorizer lets a kubelet see no others.
func (k *kubelet) watchPods(ctx context.Context) {
	selector := fields.OneTermEqualSelector("spec.nodeName", k.name()).String()
	api := k.core.Pods(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return api.Watch(ctx, o)
		},
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw,
		ObjectType:    &corev1.Pod{},
		Transform:     slim,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { k.sync(ctx, o.(*corev1.Pod)) },
			UpdateFunc: func(_, o any) { k.sync(ctx, o.(*corev1.Pod)) },
			DeleteFunc: func(o any) {
				if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				k.forget(o.(*corev1.Pod))
			},
		},
	})
	controller.RunWithContext(ctx)
}

// slim drops what no kubelet of ours reads.
func slim(o any) (any, error) {
	if p, ok := o.(*corev1.Pod); ok {
		p.ManagedFields = nil
	}
	return o, nil
}

func (k *kubelet) forget(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[pod.UID]; p != nil {
		p.cancel()
		k.ended += p.cpu.seconds
		delete(k.pods, pod.UID)
	}
}

// sync looks at one version of a pod and starts at most one thing about it.
func (k *kubelet) sync(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[pod.UID]
	if p == nil {
		p = &podState{number: k.used.count}
		k.used.count++
		k.pods[pod.UID] = p
	}
	if p.running {
		p.count(time.Now()) // by the rate until now
	}
	p.pod = pod
	terminal := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	spawn := func(work func(context.Context)) {
		if p.cancel != nil {
			p.cancel()
		}
		var own context.Context
		own, p.cancel = context.WithCancel(ctx)
		k.wg.Go(func() { work(own) })
	}
	switch {
	case pod.DeletionTimestamp != nil:
		if !p.ending {
			p.ending = true
			spawn(func(ctx context.Context) { k.remove(ctx, pod) })
		}
	case terminal || p.ending:
	case !p.started:
		p.started = true
		if reason := k.reject(pod); reason != "" {
			p.ending = true
			spawn(func(ctx context.Context) { k.refuse(ctx, pod, reason) })
			return
		}
		spawn(func(ctx context.Context) { k.launch(ctx, p, pod) })
	}
	if p.cancel == nil {
		p.cancel = func() {}
	}
}

// reject is the kubelet's own admission: it refuses a pod that does not fit what is
// left of allocatable, which unmasks a scheduler or a plan that counted wrong.
func (k *kubelet) reject(pod *corev1.Pod) string {
	_, allocatable := resourcesOf(k.reported(), k.id.config)
	count := int64(0)
	for uid, p := range k.pods {
		if uid == pod.UID || !p.started || p.pod.Status.Phase == corev1.PodSucceeded || p.pod.Status.Phase == corev1.PodFailed {
			continue
		}
		count++
		for name, q := range requests(p.pod) {
			left := allocatable[name]
			left.Sub(q)
			allocatable[name] = left
		}
	}
	if pods := allocatable[corev1.ResourcePods]; count >= pods.Value() {
		return "OutOfpods"
	}
	for name, q := range requests(pod) {
		if left := allocatable[name]; !q.IsZero() && q.Cmp(left) > 0 {
			return "OutOf" + string(name)
		}
	}
	return ""
}

// requests are what a pod takes of allocatable: no extended resource for which kube-scheduler has made a claim, as in removeMissingExtendedResources of the
// kubelet 1.36. That one admits any extended resource that the node does not have; this one does not.
func requests(pod *corev1.Pod) corev1.ResourceList {
	out := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for _, m := range s.RequestMappings {
			delete(out, corev1.ResourceName(m.ResourceName))
		}
	}
	return out
}

// launch brings a pod to Running after the time that its containers take. After a
// reboot the same containers come up again, counted.
func (k *kubelet) launch(ctx context.Context, p *podState, pod *corev1.Pod) {
	again := pod.Status.Phase == corev1.PodRunning
	if !pause(ctx, k.m.cfg.PodStart) || !k.retry(ctx, "start pod "+pod.Name, func(ctx context.Context) error {
		return ignoreGone(k.patchStatus(ctx, pod, k.running(p, pod, again)))
	}) {
		return
	}
	k.mu.Lock()
	p.running = true
	k.mu.Unlock()
}

func (k *kubelet) refuse(ctx context.Context, pod *corev1.Pod, reason string) {
	fmt.Fprintf(k.m.console, "kubelet: pod %s/%s refused: %s\n", pod.Namespace, pod.Name, reason)
	k.retry(ctx, "refuse pod "+pod.Name, func(ctx context.Context) error {
		return ignoreGone(k.patchStatus(ctx, pod, corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: reason, Message: "Pod was rejected: Node didn't have enough resource"}))
	})
}

// remove ends a pod that is being deleted: its containers stop, the status says so,
// and the object goes with grace period 0, which only the kubelet may do.
func (k *kubelet) remove(ctx context.Context, pod *corev1.Pod) {
	wait := k.m.cfg.PodStop
	if d, err := time.ParseDuration(pod.Annotations[AnnotationStop]); err == nil {
		wait = d
	}
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		wait = min(wait, time.Duration(*s)*time.Second)
	}
	if !pause(ctx, wait) {
		return
	}
	k.retry(ctx, "delete pod "+pod.Name, func(ctx context.Context) error {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			if err := k.endPod(ctx, pod, corev1.PodSucceeded, "", ""); err != nil {
				return err
			}
		}
		zero := int64(0)
		return ignoreGone(k.core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &pod.UID}}))
	})
}

// endPod reports a pod's end.
func (k *kubelet) endPod(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, reason, message string) error {
	return ignoreGone(k.patchStatus(ctx, pod, ended(pod, phase, reason, message)))
}

// ignoreGone takes a pod that is gone, or replaced by another of its name, for done.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// patchStatus names the pod's UID, so that a successor of the same name is safe.
func (k *kubelet) patchStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (k *kubelet) podList() *corev1.PodList {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, p := range k.pods {
		list.Items = append(list.Items, *p.pod)
	}
	return list
}

package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setDefaults fills in what the API server fills in where a new object does not say it, as far as an agent or a model reads it.
func setDefaults(o Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		podDefaults(&o.Spec)
		if o.Status.Phase == "" {
			o.Status.Phase = corev1.PodPending
		}
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} { // admission plugin DefaultTolerationSeconds
			o.Spec.Tolerations = withToleration(o.Spec.Tolerations, key)
		}
	case *resourcev1.ResourceClaim:
		for _, r := range o.Spec.Devices.Requests {
			if x := r.Exactly; x != nil && x.AllocationMode == "" {
				x.AllocationMode, x.Count = resourcev1.DeviceAllocationModeExactCount, max(x.Count, 1)
			}
		}
	case *appsv1.Deployment:
		orOne(&o.Spec.Replicas)
		podDefaults(&o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		orOne(&o.Spec.Replicas)
		podDefaults(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		orOne(&o.Spec.Replicas)
		podDefaults(&o.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		podDefaults(&o.Spec.Template.Spec)
	case *batchv1.Job:
		orOne(&o.Spec.Parallelism)
		podDefaults(&o.Spec.Template.Spec)
	}
	if ns, ok := o.(*corev1.Namespace); ok {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
	}
}

func orOne(n **int32) {
	if *n == nil {
		*n = new(int32(1))
	}
}

func podDefaults(s *corev1.PodSpec) {
	if s.SchedulerName == "" {
		s.SchedulerName = corev1.DefaultSchedulerName
	}
	if s.RestartPolicy == "" {
		s.RestartPolicy = corev1.RestartPolicyAlways
	}
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			r := &list[i].Resources
			for name, q := range r.Limits { // a request that is not said is its limit
				if _, said := r.Requests[name]; !said {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = q.DeepCopy()
				}
			}
		}
	}
	if r := s.Resources; r != nil { // of the pod as a whole
		for name, q := range r.Limits {
			if _, said := r.Requests[name]; !said {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = q.DeepCopy()
			}
		}
	}
}

func withToleration(list []corev1.Toleration, key string) []corev1.Toleration {
	for _, t := range list {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return list
		}
	}
	return append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))})
}

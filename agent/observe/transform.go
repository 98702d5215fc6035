package observe

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Strip is the informer factories' transform: it drops from each object what no
// service reads, before the object enters a cache. It changes the object in place;
// the reflector owns it.
func Strip(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		stripPod(o)
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesInUse, o.Status.VolumesAttached, o.Status.Config = nil, nil, nil, nil
	case *appsv1.ReplicaSet:
		o.Spec.Template, o.Spec.Selector, o.Labels, o.Annotations = corev1.PodTemplateSpec{}, nil, nil, nil
	case *appsv1.StatefulSet:
		o.Spec.Template, o.Spec.Selector, o.Spec.VolumeClaimTemplates, o.Labels, o.Annotations = corev1.PodTemplateSpec{}, nil, nil, nil, nil
	case *batchv1.Job:
		o.Spec.Template, o.Spec.Selector, o.Labels, o.Annotations = corev1.PodTemplateSpec{}, nil, nil, nil
	case *appsv1.DaemonSet:
		o.Annotations = nil
		stripSpec(&o.Spec.Template.Spec)
		o.Spec.Template.Annotations = nil
	case *corev1.Namespace:
		o.Annotations, o.Spec, o.Status = nil, corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	case *coordinationv1.Lease:
		o.OwnerReferences, o.Labels, o.Annotations = nil, nil, nil
	}
	return obj, nil
}

func stripPod(p *corev1.Pod) {
	var kept map[string]string
	for _, key := range keptAnnotations {
		if v, ok := p.Annotations[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = v
		}
	}
	p.Annotations = kept
	stripSpec(&p.Spec)
	st := corev1.PodStatus{Phase: p.Status.Phase, NominatedNodeName: p.Status.NominatedNodeName}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled || c.Type == corev1.PodResizePending {
			c.Message = ""
			st.Conditions = append(st.Conditions, c)
		}
	}
	st.ContainerStatuses = resizeStatus(p.Status.ContainerStatuses)
	st.InitContainerStatuses = resizeStatus(p.Status.InitContainerStatuses)
	p.Status = st
}

func resizeStatus(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range in {
		if s.Resources != nil {
			out = append(out, corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources,
				Resources: &corev1.ResourceRequirements{Requests: s.Resources.Requests}})
		}
	}
	return out
}

func stripSpec(s *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			c := list[i]
			list[i] = corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy,
				Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}}
		}
	}
	s.EphemeralContainers, s.SecurityContext, s.DNSConfig, s.HostAliases, s.ImagePullSecrets = nil, nil, nil, nil, nil
}

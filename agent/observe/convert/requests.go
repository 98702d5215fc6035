package convert

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

// podRequests is k8s.io/component-helpers/resource.PodRequests with the options
// that kube-scheduler 1.36 sets: containers are summed, init containers are a
// floor, restartable init containers count for all that start after them, pod-level
// requests replace the sum for what they name, a resize in progress counts the
// larger side, overhead comes on top.
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	if s := &pod.Spec; len(s.Containers) == 1 && len(s.InitContainers) == 0 && s.Resources == nil && len(s.Overhead) == 0 && !resizing(pod) {
		return s.Containers[0].Resources.Requests // most pods
	}
	return requestsWith(pod, nil)
}

// requestsWith is podRequests with requests for the containers that name none.
func requestsWith(pod *corev1.Pod, defaults corev1.ResourceList) corev1.ResourceList {
	statuses := make(map[string]*corev1.ContainerStatus)
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Resources != nil {
				statuses[list[i].Name] = &list[i]
			}
		}
	}
	sum := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		addList(sum, withDefaults(effective(pod, &pod.Spec.Containers[i], statuses), defaults))
	}
	sidecars, floor := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			req := withDefaults(effective(pod, c, statuses), defaults)
			addList(sum, req)
			addList(sidecars, req)
			maxList(floor, sidecars)
			continue
		}
		use := sidecars.DeepCopy()
		addList(use, withDefaults(c.Resources.Requests, defaults))
		maxList(floor, use)
	}
	maxList(sum, floor)
	if pod.Spec.Resources != nil {
		taken := pod.Spec.Resources.Requests
		if st := pod.Status.Resources; st != nil { // the pod as a whole is resized in place (1.36)
			taken = whileResizing(pod, taken, st.Requests, pod.Status.AllocatedResources)
		}
		for name := range pod.Spec.Resources.Requests {
			if podLevel(name) {
				sum[name] = taken[name]
			}
		}
	}
	addList(sum, pod.Spec.Overhead)
	return sum
}

// sizeAlone keeps of a template what a pod of it requests of the resources that can be resized in place; where a LimitRange may add
// to that, what each container requests of them.
func sizeAlone(t *corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	p := corev1.Pod{Spec: t.Spec}
	Admit(&p, Admission{})
	if s := (&corev1.PodSpec{Containers: bareContainers(p.Spec.Containers), InitContainers: bareContainers(p.Spec.InitContainers)}); mayGetDefaults(s) {
		if r := p.Spec.Resources; r != nil {
			s.Resources = &corev1.ResourceRequirements{Requests: resizable(r.Requests)}
		}
		return corev1.PodTemplateSpec{Spec: *s}
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resizable(podRequests(&p))}}}
}

// resizable are the requests that can be changed in place.
func resizable(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, has := list[name]; has {
			out[name] = q
		}
	}
	return out
}

func bareContainers(list []corev1.Container) (out []corev1.Container) {
	for i := range list {
		out = append(out, corev1.Container{RestartPolicy: list[i].RestartPolicy, Resources: corev1.ResourceRequirements{Requests: resizable(list[i].Resources.Requests)}})
	}
	return out
}

// mayGetDefaults tells that some container requests no CPU or no memory.
func mayGetDefaults(s *corev1.PodSpec) bool {
	bare := func(c corev1.Container) bool { return len(c.Resources.Requests) < 2 }
	return slices.ContainsFunc(s.Containers, bare) || slices.ContainsFunc(s.InitContainers, bare)
}

// TemplateSize is the size of a pod of what sizeAlone has kept, completed by LimitRanges; nothing where the controller makes no pods.
// awaits tells that other LimitRanges may make it another.
func TemplateSize(t *corev1.PodTemplateSpec, ranges []*corev1.LimitRange) (size cluster.Resources, awaits bool) {
	if awaits = mayGetDefaults(&t.Spec); awaits {
		p := corev1.Pod{Spec: corev1.PodSpec{Containers: slices.Clone(t.Spec.Containers), InitContainers: slices.Clone(t.Spec.InitContainers), Resources: t.Spec.Resources}}
		applyLimitRanges(&p.Spec, ranges)
		return resourcelist.Resources(resizable(podRequests(&p))), true
	}
	if r := t.Spec.Resources; r != nil {
		size = resourcelist.Resources(r.Requests)
	}
	return size, false
}

// mayBeResized tells a pod whose spec has changed since it was made. API servers before 1.33 do not count the changes.
func mayBeResized(p *corev1.Pod) bool { return p.Spec.NodeName != "" && p.Generation != 1 }

// podLevel tells a resource that can be requested for a pod as a whole.
func podLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// resizing tells that some container's status names resources of its own.
func resizing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Resources != nil })
}

// effective is what a container takes, a resize of it included.
func effective(pod *corev1.Pod, c *corev1.Container, statuses map[string]*corev1.ContainerStatus) corev1.ResourceList {
	st, ok := statuses[c.Name]
	if !ok {
		return c.Resources.Requests
	}
	return whileResizing(pod, c.Resources.Requests, st.Resources.Requests, st.AllocatedResources)
}

// whileResizing is what counts while a resize is under way: the largest of wanted, actual and
// allocated, or without the wanted one when the kubelet said that it is infeasible.
func whileResizing(pod *corev1.Pod, wanted, actual, allocated corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	maxList(out, actual)
	maxList(out, allocated)
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodResizePending && cond.Reason == corev1.PodReasonInfeasible {
			return out
		}
	}
	maxList(out, wanted)
	return out
}

// withDefaults adds to a list what it does not name.
func withDefaults(list, defaults corev1.ResourceList) corev1.ResourceList {
	if len(defaults) == 0 {
		return list
	}
	out := maps.Clone(defaults)
	maps.Copy(out, list)
	return out
}

func addList(to, from corev1.ResourceList) {
	for name, q := range from {
		sum := q.DeepCopy()
		if old, ok := to[name]; ok {
			sum.Add(old)
		}
		to[name] = sum
	}
}

func maxList(to, from corev1.ResourceList) {
	for name, q := range from {
		if old, ok := to[name]; !ok || q.Cmp(old) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}

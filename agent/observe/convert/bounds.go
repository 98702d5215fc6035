package convert

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

// The API server takes objects of 1.5 MB from everybody who may make pods, and 2,500 pods with 2,400
// values of affinity each brought the agent to its MemoryHigh (issue 41). So what is kept of an
// object has a bound; beyond it the object is taken up without what made it large, in the way that
// disrupts and buys least.
const (
	// MaxPod bounds what is kept of a pod, in bytes of its protobuf form after Strip. Affinity with
	// 300 host names takes 12 KiB.
	MaxPod = 16 << 10
	// maxTemplate is the same of a DaemonSet's template, which the informer keeps too.
	maxTemplate = 8 << 10
	// maxLabels bounds the labels of a Node or a namespace.
	maxLabels = 16 << 10
	// maxSelector bounds the selector of a PodDisruptionBudget or a claim.
	maxSelector = 4 << 10
	// maxValue bounds the value of an annotation that is kept, and the parts of an owner's reference.
	maxValue = 512
)

// TooLarge is the class of a pod of which only the requests are kept, and why, in words.
func TooLarge(namespace string, requests cluster.Resources, priority int32, why string) cluster.PodClass {
	requests.Extended = nil
	return cluster.PodClass{Namespace: namespace, Requests: requests, Priority: priority, TooLarge: true, NotUnderstood: []string{why}}
}

// tooLarge is the class of a stripped pod of so many bytes. It costs its containers.
func tooLarge(p *corev1.Pod, size int) cluster.PodClass {
	few := func(list corev1.ResourceList) corev1.ResourceList {
		out := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			if q, has := list[name]; has {
				out[name] = q
			}
		}
		return out
	}
	small := &corev1.Pod{}
	for _, c := range p.Spec.Containers {
		small.Spec.Containers = append(small.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: few(c.Resources.Requests)}})
	}
	for _, c := range p.Spec.InitContainers {
		small.Spec.InitContainers = append(small.Spec.InitContainers, corev1.Container{RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: few(c.Resources.Requests)}})
	}
	if r := p.Spec.Resources; r != nil {
		small.Spec.Resources = &corev1.ResourceRequirements{Requests: few(r.Requests)}
	}
	requests := resourcelist.Resources(podRequests(small))
	requests.Pods = 1
	priority := int32(0)
	if p.Spec.Priority != nil {
		priority = *p.Spec.Priority
	}
	return TooLarge(p.Namespace, requests, priority, sizeWords(size, MaxPod))
}

// sizeWords rounds up, so that pods of nearly one size share a class.
func sizeWords(size, most int) string {
	return fmt.Sprintf("its labels, selectors, affinity, tolerations and volumes, which take %d KiB: the agent keeps at most %d KiB", (size+1023)>>10, most>>10)
}

// conditionTooLarge marks the stripped copy of a DaemonSet whose template is not kept. The controller
// of DaemonSets sets no conditions, and Strip drops all others.
const conditionTooLarge = "TemplateTooLarge"

// boundTemplate leaves of a template that is too large nothing but why.
func boundTemplate(d *appsv1.DaemonSet) {
	d.Status.Conditions = nil
	if size := d.Spec.Template.Size(); size > maxTemplate {
		d.Spec.Template = corev1.PodTemplateSpec{}
		d.Status.Conditions = []appsv1.DaemonSetCondition{{Type: conditionTooLarge, Message: sizeWords(size, maxTemplate)}}
	}
}

// boundSelector replaces a selector that is too large.
func boundSelector(s *metav1.LabelSelector, instead metav1.LabelSelector) *metav1.LabelSelector {
	if s != nil && s.Size() > maxSelector {
		return &instead
	}
	return s
}

// boundLabels leaves of labels that take too much those that Kubernetes gives itself: neither a tenant
// nor a kubelet can write many of them.
func boundLabels(labels map[string]string) map[string]string {
	size := 0
	for k, v := range labels {
		size += len(k) + len(v)
	}
	if size <= maxLabels {
		return labels
	}
	return only(labels, wellKnownLabels)
}

var wellKnownLabels = []string{
	corev1.LabelMetadataName, corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable,
	corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType,
	cluster.LabelControlPlane, cluster.LabelControlPlaneLegacy,
}

// clip bounds a value that is kept for what it says to people.
func clip(value string) string {
	if len(value) > maxValue {
		return value[:maxValue] + "..."
	}
	return value
}

// clipped clips each value.
func clipped(annotations map[string]string) map[string]string {
	for k, v := range annotations {
		annotations[k] = clip(v)
	}
	return annotations
}

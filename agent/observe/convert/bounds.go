package convert

import (
	"fmt"
	"slices"
	"strings"

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
	// maxNodeList bounds each list of a Node that its kubelet writes.
	maxNodeList = 4 << 10
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

// few leaves the resources that every machine has.
func few(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		if q, has := list[name]; has {
			out[name] = q
		}
	}
	return out
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
		DropTemplate(d, sizeWords(size, maxTemplate))
	}
}

// DropTemplate leaves of the template of a stripped DaemonSet why it is not kept, in words.
func DropTemplate(d *appsv1.DaemonSet, why string) {
	d.Spec.Template = corev1.PodTemplateSpec{}
	d.Status.Conditions = []appsv1.DaemonSetCondition{{Type: conditionTooLarge, Message: why}}
}

// boundNode leaves of each list of a Node what fits, the agent's own taints before others. Only a kubelet whose credential
// is stolen writes lists that are this long. A pod that does not tolerate the taints that are kept is not taken to fit, as it would not
// be with the whole list.
func boundNode(n *corev1.Node) {
	n.Spec.ProviderID = clip(n.Spec.ProviderID)
	if taints := fitting(n.Spec.Taints, (*corev1.Taint).Size); len(taints) < len(n.Spec.Taints) {
		slices.SortStableFunc(n.Spec.Taints, func(a, b corev1.Taint) int { return foreignTaint(a) - foreignTaint(b) })
		n.Spec.Taints = fitting(n.Spec.Taints, (*corev1.Taint).Size)
	}
	n.Status.Addresses = fitting(n.Status.Addresses, (*corev1.NodeAddress).Size)
	n.Status.Capacity, n.Status.Allocatable = boundResources(n.Status.Capacity), boundResources(n.Status.Allocatable)
	i := &n.Status.NodeInfo
	i.MachineID, i.SystemUUID, i.BootID = clip(i.MachineID), clip(i.SystemUUID), clip(i.BootID)
}

// foreignTaint is 0 for the taints that the agent or Kubernetes writes.
func foreignTaint(t corev1.Taint) int {
	if slices.ContainsFunc(cluster.Marks, func(m cluster.Mark) bool { return m.Name == t.Key }) || strings.HasPrefix(t.Key, "node.kubernetes.io/") {
		return 0
	}
	return 1
}

// boundResources leaves of very many resources those that every machine has.
func boundResources(list corev1.ResourceList) corev1.ResourceList {
	size := 0
	for name, q := range list {
		size += len(name) + q.Size()
	}
	if size <= maxNodeList {
		return list
	}
	return few(list)
}

// fitting is the beginning of a list that takes at most maxNodeList bytes.
func fitting[T any](list []T, size func(*T) int) []T {
	total := 0
	for i := range list {
		if total += size(&list[i]); total > maxNodeList {
			return slices.Clone(list[:i])
		}
	}
	return list
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

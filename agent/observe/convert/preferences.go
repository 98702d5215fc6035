package convert

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/resourcelist"
)

// The defaults of kube-scheduler's scores for a container that names no request
// (pkg/scheduler/util: DefaultMilliCPURequest, DefaultMemoryRequest).
var scoredRequests = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(200*1024*1024, resource.DecimalSI),
}

// preferences converts what only scores read of a pod; nil where there is nothing. A term
// with an invalid selector is left out: the API server stores none.
func preferences(p *corev1.Pod, c *cluster.PodClass) *cluster.Preferences {
	var out cluster.Preferences
	if a := p.Spec.Affinity; a != nil {
		if a.NodeAffinity != nil {
			for _, t := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				term := NodeTerms([]corev1.NodeSelectorTerm{t.Preference})
				out.Nodes = append(out.Nodes, cluster.PreferredNodes{Weight: int64(t.Weight), Term: term[0]})
			}
		}
		if a.PodAffinity != nil {
			out.Pods = preferredPods(p, out.Pods, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, 1)
		}
		if a.PodAntiAffinity != nil {
			out.Pods = preferredPods(p, out.Pods, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, -1)
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		if t := &p.Spec.TopologySpreadConstraints[i]; t.WhenUnsatisfiable == corev1.ScheduleAnyway {
			if s, ok := spread(p.Labels, t); ok {
				out.Spread = append(out.Spread, s)
			}
		}
	}
	scored(p, c, &out)
	if out.MilliCPU|out.Memory|out.IncomingMilliCPU|out.IncomingMemory == 0 && len(out.Nodes)+len(out.Pods)+len(out.Spread) == 0 {
		return nil
	}
	return &out
}

func preferredPods(p *corev1.Pod, out []cluster.PreferredPods, terms []corev1.WeightedPodAffinityTerm, sign int64) []cluster.PreferredPods {
	for i := range terms {
		if t, ok := podTerms(p, []corev1.PodAffinityTerm{terms[i].PodAffinityTerm}); ok {
			out = append(out, cluster.PreferredPods{Weight: sign * int64(terms[i].Weight), Term: t[0]})
		}
	}
	return out
}

// scored works out the requests that LeastAllocated counts: of a placed pod as NodeInfo sums
// them up (PodInfo.CalculateResource), of an incoming one as the plugin does, which leaves
// pod-level requests out (resourceAllocationScorer.calculatePodResourceRequest).
func scored(p *corev1.Pod, c *cluster.PodClass, out *cluster.Preferences) {
	missing := func(c corev1.Container) bool {
		_, cpu := c.Resources.Requests[corev1.ResourceCPU]
		_, memory := c.Resources.Requests[corev1.ResourceMemory]
		return !cpu || !memory
	}
	podLevel := p.Spec.Resources != nil && len(p.Spec.Resources.Requests) > 0
	if !podLevel && !resizing(p) && !slices.ContainsFunc(p.Spec.Containers, missing) && !slices.ContainsFunc(p.Spec.InitContainers, missing) {
		return
	}
	defaults := scoredRequests
	if podLevel {
		defaults = maps.Clone(defaults)
		maps.DeleteFunc(defaults, func(name corev1.ResourceName, _ resource.Quantity) bool {
			_, has := podRequests(p)[name]
			return has
		})
	}
	placed := resourcelist.Resources(requestsWith(p, defaults))
	if placed.MilliCPU != c.Requests.MilliCPU || placed.Memory != c.Requests.Memory {
		out.MilliCPU, out.Memory = placed.MilliCPU, placed.Memory
	}
	plain := *p
	plain.Spec.Resources = nil
	if incoming := resourcelist.Resources(requestsWith(&plain, scoredRequests)); incoming.MilliCPU != placed.MilliCPU || incoming.Memory != placed.Memory {
		out.IncomingMilliCPU, out.IncomingMemory = incoming.MilliCPU, incoming.Memory
	}
}

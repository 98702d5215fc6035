package convert

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Admission is what the API server reads to complete a new pod, beside the pod: the
// LimitRanges of its namespace and its RuntimeClass; nil: it names none, or none is known.
type Admission struct {
	LimitRanges  []*corev1.LimitRange
	RuntimeClass *nodev1.RuntimeClass
}

// Admit completes a pod made of a controller's template as the API server does when the pod is
// created, in its order: the defaults of the API (SetDefaults_Pod, which a template does not
// get), then the admission plug-ins LimitRanger and RuntimeClass. It changes p, and says
// what was added to the requests; empty: nothing.
//
// The plug-ins that are off by default (PodNodeSelector, PodTolerationRestriction,
// ExtendedResourceToleration) and webhooks are not played: what they change shows in the pods
// that run. DefaultTolerationSeconds adds two tolerations that every DaemonSet's pod has.
func Admit(p *corev1.Pod, a Admission) (completed string) {
	var said []string
	if requestLimits(&p.Spec) {
		said = append(said, "limits")
	}
	if requestPodLimits(p) {
		said = append(said, "pod-level limits")
	}
	if p.Spec.HostNetwork {
		for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			claimHostPorts(list)
		}
	}
	for _, name := range applyLimitRanges(&p.Spec, a.LimitRanges) {
		said = append(said, "LimitRange "+name)
	}
	if c := a.RuntimeClass; c != nil {
		if c.Overhead != nil && len(c.Overhead.PodFixed) > 0 {
			p.Spec.Overhead = c.Overhead.PodFixed
			said = append(said, "overhead of RuntimeClass "+c.Name)
		}
		if c.Scheduling != nil {
			applyScheduling(&p.Spec, c.Scheduling)
		}
	}
	return strings.Join(said, ", ")
}

// requestLimits sets the request of each resource that a container only limits.
func requestLimits(s *corev1.PodSpec) (added bool) {
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			if more := missing(r.Requests, r.Limits); len(more) > 0 {
				r.Requests, added = withDefaults(r.Requests, more), true
			}
		}
	}
	return added
}

// missing are the amounts of from whose resources list does not name.
func missing(list, from corev1.ResourceList) corev1.ResourceList {
	more := corev1.ResourceList{}
	for name, q := range from {
		if _, has := list[name]; !has {
			more[name] = q
		}
	}
	return more
}

// requestPodLimits sets the pod-level request of each resource that is limited for the pod as a
// whole (defaultPodRequests): what the containers request together, or the limit where they
// request none. Huge pages cannot be overcommitted: their limit counts.
func requestPodLimits(p *corev1.Pod) (added bool) {
	r := p.Spec.Resources
	if r == nil {
		return false
	}
	containers := *p
	containers.Spec.Resources, containers.Spec.Overhead = nil, nil
	together := requestsWith(&containers, nil)
	more := corev1.ResourceList{}
	for name, limit := range missing(r.Requests, r.Limits) {
		sum, requested := together[name]
		switch {
		case !podLevel(name):
		case requested && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			more[name] = sum
		default:
			more[name], added = limit, true
		}
	}
	p.Spec.Resources = &corev1.ResourceRequirements{Requests: withDefaults(r.Requests, more), Limits: r.Limits}
	return added
}

// claimHostPorts makes each port a port of the host (defaultHostNetworkPorts).
func claimHostPorts(list []corev1.Container) {
	for i := range list {
		list[i].Ports = slices.Clone(list[i].Ports)
		for k := range list[i].Ports {
			if port := &list[i].Ports[k]; port.HostPort == 0 {
				port.HostPort = port.ContainerPort
			}
		}
	}
}

// applyLimitRanges sets the requests that containers still miss, and names the LimitRanges that
// gave one. Of several LimitRanges that default one resource the API server takes whichever its
// cache lists first, so the largest is counted. That a default limit, a maximum or a minimum
// makes a default request was worked out by the API server when the LimitRange was stored
// (SetDefaults_LimitRangeItem).
func applyLimitRanges(s *corev1.PodSpec, ranges []*corev1.LimitRange) (names []string) {
	largest, giver := corev1.ResourceList{}, map[corev1.ResourceName]string{}
	for _, l := range ranges {
		for name, q := range defaultRequests(l) {
			if old, has := largest[name]; !has || q.Cmp(old) > 0 {
				largest[name], giver[name] = q, l.Name
			}
		}
	}
	if len(largest) == 0 {
		return nil
	}
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			more := missing(r.Requests, largest)
			r.Requests = withDefaults(r.Requests, more)
			for name := range more {
				if !slices.Contains(names, giver[name]) {
					names = append(names, giver[name])
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

func defaultRequests(l *corev1.LimitRange) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range l.Spec.Limits {
		if item := &l.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
			maps.Copy(out, item.DefaultRequest)
		}
	}
	return out
}

// applyScheduling adds a RuntimeClass's node selector and tolerations. A pod whose own selector
// contradicts it is refused by the API server; its own is kept here, so that its room is
// reserved rather than forgotten.
func applyScheduling(s *corev1.PodSpec, with *nodev1.Scheduling) {
	selector := maps.Clone(with.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	maps.Copy(selector, s.NodeSelector)
	if len(selector) > 0 {
		s.NodeSelector = selector
	}
	s.Tolerations = mergeTolerations(slices.Concat(s.Tolerations, with.Tolerations))
}

// mergeTolerations leaves out each toleration that another one covers
// (kubernetes/pkg/util/tolerations.MergeTolerations).
func mergeTolerations(all []corev1.Toleration) (merged []corev1.Toleration) {
	for i := range all {
		t := all[i]
		covers := func(o corev1.Toleration) bool { return covered(t, o) }
		coversLater := func(o corev1.Toleration) bool { return !equality.Semantic.DeepEqual(t, o) && covered(t, o) }
		if !slices.ContainsFunc(merged, covers) && !slices.ContainsFunc(all[i+1:], coversLater) {
			merged = append(merged, t)
		}
	}
	return merged
}

// covered tells that by tolerates all that t does (isSuperset).
func covered(t, by corev1.Toleration) bool {
	if equality.Semantic.DeepEqual(t, by) {
		return true
	}
	if t.Key != by.Key && (by.Key != "" || by.Operator != corev1.TolerationOpExists) || t.Effect != by.Effect && by.Effect != "" {
		return false
	}
	if by.Effect == corev1.TaintEffectNoExecute && by.TolerationSeconds != nil && (t.TolerationSeconds == nil || *t.TolerationSeconds > *by.TolerationSeconds) {
		return false
	}
	switch by.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Operator == corev1.TolerationOpEqual && t.Value == by.Value
	}
	return false
}

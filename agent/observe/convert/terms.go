package convert

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// setPodTerms converts a pod's required (anti-)affinity terms and its DoNotSchedule
// constraints into the class. It returns the features that could not be read.
func setPodTerms(p *corev1.Pod, c *cluster.PodClass) (held []string) {
	if a := p.Spec.Affinity; a != nil {
		var ok bool
		if a.PodAffinity != nil {
			if c.PodAffinity, ok = podTerms(p, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution); !ok {
				held = append(held, "required podAffinity with an invalid selector")
			}
		}
		if a.PodAntiAffinity != nil {
			if c.PodAntiAffinity, ok = podTerms(p, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution); !ok {
				held = append(held, "required podAntiAffinity with an invalid selector")
			}
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		t := &p.Spec.TopologySpreadConstraints[i]
		if t.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		s, ok := spread(p.Labels, t)
		if !ok {
			return append(held, "topologySpreadConstraints with an invalid selector")
		}
		c.Spread = append(c.Spread, s)
	}
	return held
}

// podTerms follows framework.GetAffinityTerms of kube-scheduler.
func podTerms(p *corev1.Pod, terms []corev1.PodAffinityTerm) ([]cluster.PodTerm, bool) {
	if len(terms) == 0 {
		return nil, true
	}
	out := make([]cluster.PodTerm, 0, len(terms))
	for i := range terms {
		t := &terms[i]
		own, ok := selector(t.LabelSelector)
		names, okNames := selector(t.NamespaceSelector)
		if !ok || !okNames {
			return nil, false
		}
		c := cluster.PodTerm{TopologyKey: t.TopologyKey, Selector: own, NamespaceSelector: names}
		if p.UID == "" { // a template's pod, which the API server has not stored yet
			mergeMissing(c.Selector, t.MatchLabelKeys, "In", p.Labels)
			mergeMissing(c.Selector, t.MismatchLabelKeys, "NotIn", p.Labels)
		}
		if len(t.Namespaces) > 0 {
			c.Namespaces = slices.Clone(t.Namespaces)
			slices.Sort(c.Namespaces)
			c.Namespaces = slices.Compact(c.Namespaces)
		} else if t.NamespaceSelector == nil {
			c.Namespaces = []string{p.Namespace}
		}
		out = append(out, c)
	}
	return out, true
}

// spread follows filterTopologySpreadConstraints of kube-scheduler, which merges
// matchLabelKeys with the pod's labels of today, whatever the API server merged when
// the pod was made.
func spread(labels map[string]string, t *corev1.TopologySpreadConstraint) (cluster.Spread, bool) {
	sel, ok := selector(t.LabelSelector)
	if !ok {
		return cluster.Spread{}, false
	}
	out := cluster.Spread{TopologyKey: t.TopologyKey, MaxSkew: int(t.MaxSkew), Selector: sel}
	if sel != nil {
		for _, key := range t.MatchLabelKeys {
			if v, has := labels[key]; has {
				addRequirement(sel, cluster.Requirement{Key: key, Operator: "In", Values: []string{v}})
			}
		}
	}
	if t.MinDomains != nil {
		out.MinDomains = int(*t.MinDomains)
	}
	out.IgnoreNodeAffinity = t.NodeAffinityPolicy != nil && *t.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	out.HonorTaints = t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	return out, true
}

// selector converts a label selector into sorted requirements, so that equal selectors
// in another order make one class. nil stays nil: it selects nothing. It returns false
// for a selector that metav1.LabelSelectorAsSelector refuses.
func selector(in *metav1.LabelSelector) (*cluster.Selector, bool) {
	if in == nil {
		return nil, true
	}
	out := &cluster.Selector{}
	if n := len(in.MatchLabels) + len(in.MatchExpressions); n > 0 {
		out.Requirements = make([]cluster.Requirement, 0, n)
	}
	for k, v := range in.MatchLabels {
		addRequirement(out, cluster.Requirement{Key: k, Operator: "In", Values: []string{v}})
	}
	for i := range in.MatchExpressions {
		e := &in.MatchExpressions[i]
		r := cluster.Requirement{Key: e.Key, Operator: string(e.Operator)}
		switch e.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
			if len(e.Values) == 0 {
				return nil, false
			}
			r.Values = slices.Clone(e.Values)
			slices.Sort(r.Values)
			r.Values = slices.Compact(r.Values)
		case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
			if len(e.Values) > 0 {
				return nil, false
			}
		default:
			return nil, false
		}
		addRequirement(out, r)
	}
	return out, true
}

// mergeMissing adds to a selector what the API server merges when a pod is made
// (applyMatchLabelKeysAndMismatchLabelKeys). A stored pod has it already, with the
// label's value of that time, and kube-scheduler does not merge again; a pod template
// has it not.
func mergeMissing(s *cluster.Selector, keys []string, operator string, labels map[string]string) {
	if s == nil {
		return
	}
	for _, key := range keys {
		v, has := labels[key]
		merged := slices.ContainsFunc(s.Requirements, func(r cluster.Requirement) bool { return r.Key == key && r.Operator == operator })
		if has && !merged {
			addRequirement(s, cluster.Requirement{Key: key, Operator: operator, Values: []string{v}})
		}
	}
}

// addRequirement keeps the requirements sorted, each once.
func addRequirement(s *cluster.Selector, r cluster.Requirement) {
	i, found := slices.BinarySearchFunc(s.Requirements, r, compareRequirements)
	if !found {
		s.Requirements = slices.Insert(s.Requirements, i, r)
	}
}

func compareRequirements(a, b cluster.Requirement) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
}

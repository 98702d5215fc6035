package oracle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// epoch is the time of everything that needs one.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// shape draws what a pod demands of a node by itself: selector, node affinity,
// tolerations.
func (g *generator) shape(p *corev1.Pod) {
	if g.likely("selector") {
		p.Spec.NodeSelector = map[string]string{}
		for range 1 + g.IntN(2) {
			key := pick(g, []string{zone, disk, rack, cores})
			p.Spec.NodeSelector[key] = g.nodeValue(key)
		}
	}
	if g.likely("affinity") || g.likely("fields") {
		required := &corev1.NodeSelector{}
		for range 1 + g.IntN(3) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, g.nodeTerm())
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		if g.one(4) {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: g.nodeTerm()}}
		}
	}
	for g.likely("tolerations") && len(p.Spec.Tolerations) < 4 {
		p.Spec.Tolerations = append(p.Spec.Tolerations, g.toleration())
	}
	if g.odds["taints"] > 0.2 && g.one(2) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: pick(g, taintKeys), Operator: corev1.TolerationOpExists})
	}
}

func (g *generator) nodeValue(key string) string {
	switch key {
	case zone:
		return pick(g, zones)
	case rack:
		return pick(g, racks)
	case disk:
		return pick(g, []string{"ssd", "hdd"})
	}
	return pick(g, coreNumbers)
}

func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	var t corev1.NodeSelectorTerm
	if g.one(20) {
		return t
	}
	if g.likely("fields") {
		t.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField,
			Operator: pick(g, []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}),
			Values:   []string{pick(g, []string{"n0", "n1", "n2", "n99"})}}}
		if g.one(2) {
			return t
		}
	}
	for range 1 + g.IntN(2) {
		t.MatchExpressions = append(t.MatchExpressions, g.nodeRequirement())
	}
	return t
}

func (g *generator) nodeRequirement() corev1.NodeSelectorRequirement {
	key := pick(g, []string{zone, disk, rack, cores, hostname, "absent"})
	r := corev1.NodeSelectorRequirement{Key: key}
	switch g.IntN(7) {
	case 0, 1:
		r.Operator, r.Values = corev1.NodeSelectorOpIn, []string{g.nodeValue(key), g.nodeValue(key)}
	case 2:
		r.Operator, r.Values = corev1.NodeSelectorOpNotIn, []string{g.nodeValue(key)}
	case 3:
		r.Operator = corev1.NodeSelectorOpExists
	case 4:
		r.Operator = corev1.NodeSelectorOpDoesNotExist
	default:
		r.Key, r.Operator = cores, pick(g, []corev1.NodeSelectorOperator{corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt})
		r.Values = []string{pick(g, []string{"3", "3", "4", "4", "8", "-5", "010", "+4", "1e1"})}
	}
	return r
}

func (g *generator) toleration() corev1.Toleration {
	t := corev1.Toleration{
		Key:      pick(g, append([]string{corev1.TaintNodeUnschedulable}, taintKeys...)),
		Operator: pick(g, []corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpExists}),
		Effect:   pick(g, append([]corev1.TaintEffect{"", ""}, effects...)),
	}
	if t.Operator != corev1.TolerationOpExists {
		t.Value = pick(g, []string{"", "a", "b"})
	} else if g.one(5) {
		t.Key = ""
	}
	if t.Effect == corev1.TaintEffectNoExecute && g.one(2) {
		t.TolerationSeconds = new(int64(300))
	}
	return t
}

// relations draws what a pod demands of other pods.
func (g *generator) relations(p *corev1.Pod) {
	for len(podAffinity(p)) < 3 && g.likely("podAffinity") {
		a := affinityOf(p)
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, g.podTerm(p, false))
	}
	for n := 0; n < 3 && g.likely("podAntiAffinity"); n++ {
		a := affinityOf(p)
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		if g.one(6) {
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: g.podTerm(p, true)}}
			continue
		}
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, g.podTerm(p, true))
	}
	used := map[[2]string]bool{} // the API allows each pair once
	for n := 0; n < 3 && g.likely("spread"); n++ {
		c := g.spread(p)
		if pair := [2]string{c.TopologyKey, string(c.WhenUnsatisfiable)}; !used[pair] {
			used[pair] = true
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
			if c.NodeAffinityPolicy != nil && p.Spec.NodeSelector == nil && g.one(2) {
				key := pick(g, []string{zone, rack, disk}) // else the policy has nothing to say
				p.Spec.NodeSelector = map[string]string{key: g.nodeValue(key)}
			}
		}
	}
}

func podAffinity(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func affinityOf(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

// selector draws a label selector; narrow ones match few pods.
func (g *generator) selector(narrow bool) *metav1.LabelSelector {
	if g.one(25) {
		return nil
	}
	s := &metav1.LabelSelector{}
	switch g.IntN(8) {
	case 0:
		if !narrow {
			return s // everything
		}
		s.MatchLabels = map[string]string{"app": pick(g, apps), "tier": "x"}
	case 1, 2, 3:
		s.MatchLabels = map[string]string{"app": pick(g, apps)}
	case 4:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: some(g, apps, 1)}}
	case 5:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: pick(g, []string{"tier", "version"}), Operator: metav1.LabelSelectorOpExists}}
	case 6:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: some(g, apps, 1)}}
		if narrow {
			s.MatchLabels = map[string]string{"version": "1"}
		}
	case 7:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}
		s.MatchLabels = map[string]string{"app": pick(g, apps)}
	}
	return s
}

func (g *generator) podTerm(p *corev1.Pod, narrow bool) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: pick(g, topologies), LabelSelector: g.selector(narrow)}
	if !narrow && g.one(3) && p.Labels["app"] != "" {
		t.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}} // a pod that may be the first of its kind
	}
	if g.one(3) {
		t.Namespaces = some(g, namespaces, 1)
	}
	if g.one(4) {
		t.NamespaceSelector = g.namespaceSelector()
	}
	if g.one(5) && t.LabelSelector != nil {
		t.MatchLabelKeys = []string{"version"}
	} else if g.one(6) && t.LabelSelector != nil {
		t.MismatchLabelKeys = []string{pick(g, []string{"version", "tier"})}
	}
	if len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0 { // the API refuses a key in both places
		t.LabelSelector.MatchExpressions = nil
		delete(t.LabelSelector.MatchLabels, "version")
		delete(t.LabelSelector.MatchLabels, "tier")
	}
	return t
}

func (g *generator) namespaceSelector() *metav1.LabelSelector {
	switch g.IntN(4) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"env": pick(g, []string{"prod", "dev"})}}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "x"}}
}

func (g *generator) spread(p *corev1.Pod) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + g.IntN(3)), TopologyKey: pick(g, topologies), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: g.selector(false),
	}
	if app := p.Labels["app"]; app != "" && g.one(2) {
		c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}} // as most pods spread
	}
	if g.one(8) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
	} else if g.one(3) {
		c.MinDomains = new(int32(1 + g.IntN(5)))
	}
	policies := []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
	if g.one(3) {
		c.NodeAffinityPolicy = new(pick(g, policies))
	}
	if g.one(3) {
		c.NodeTaintsPolicy = new(pick(g, policies))
	}
	if g.one(4) && c.LabelSelector != nil {
		c.MatchLabelKeys = []string{"version"}
		c.LabelSelector.MatchExpressions = nil
		delete(c.LabelSelector.MatchLabels, "version")
	}
	return c
}

// mergeLabelKeys does what the API server does when a pod is created: it merges matchLabelKeys
// and mismatchLabelKeys into the selectors
// (kubernetes/pkg/registry/core/pod.applyMatchLabelKeysAndMismatchLabelKeys).
func mergeLabelKeys(p *corev1.Pod) {
	merge := func(s *metav1.LabelSelector, keys []string, op metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if v, ok := p.Labels[key]; ok && s != nil {
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{v}})
			}
		}
	}
	var terms []*corev1.PodAffinityTerm
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			for i := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				terms = append(terms, &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
			}
		}
		if a.PodAntiAffinity != nil {
			for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				terms = append(terms, &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
			}
		}
	}
	for _, t := range terms {
		merge(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		merge(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		merge(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
}

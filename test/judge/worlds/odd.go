package worlds

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DrawOdd is the world of a seed in which most workloads have more constraints than the simple rules know: several
// at once, terms about the pods of another workload, preferences, spread that is only preferred, priorities, host
// ports, and node affinity to zones and machine types.
func DrawOdd(seed uint64) *World {
	w := Draw(seed)
	d := newDrawer(seed, 0x0dd)
	apps := make(map[string][]*corev1.Pod)
	var names []string
	for _, wave := range w.Waves {
		for _, p := range wave {
			app := p.Labels["app"]
			if apps[app] == nil {
				names = append(names, app)
			}
			apps[app] = append(apps[app], p)
		}
	}
	for _, app := range names {
		if w.Tie[app] != 0 || d.IntN(3) == 0 {
			continue
		}
		spec := apps[app][0].Spec.DeepCopy()
		for range 1 + d.IntN(2) {
			d.constrain(spec, w, app, names[d.IntN(len(names))])
		}
		for _, p := range apps[app] {
			p.Spec = *spec.DeepCopy()
		}
	}
	return w
}

// constrain adds one constraint to the pods of an app.
func (d *drawer) constrain(spec *corev1.PodSpec, w *World, app, other string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	}
	key := []string{hostKey, zoneKey}[d.IntN(2)]
	term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": other}}}
	group := &w.Groups[d.IntN(len(w.Groups))].Template
	switch d.IntN(10) {
	case 0:
		spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, term)
	case 1:
		spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: int32(1 + d.IntN(100)), PodAffinityTerm: term})
	case 2:
		spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: int32(1 + d.IntN(100)), PodAffinityTerm: term})
	case 3:
		if app != other {
			term.TopologyKey = zoneKey
			spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, term)
		}
	case 4, 5:
		own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		when := []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}[d.IntN(2)]
		c := corev1.TopologySpreadConstraint{MaxSkew: int32(1 + d.IntN(5)), TopologyKey: key, WhenUnsatisfiable: when, LabelSelector: own}
		if d.IntN(3) == 0 {
			c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
	case 6:
		spec.Priority = new(int32(d.IntN(3) * 1000))
	case 7:
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8000 + d.IntN(3)), Protocol: corev1.ProtocolTCP}}
	case 8:
		spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: int32(1 + d.IntN(100)), Preference: nodeTerm(corev1.LabelInstanceTypeStable, group.Labels[corev1.LabelInstanceTypeStable])}}
	case 9:
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{nodeTerm(zoneKey, group.Labels[zoneKey])}}
	}
}

func nodeTerm(key, value string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
}

// helpable is how many pods kube-scheduler would bind if every group got a few machines more, as far as its maximum allows.
func (p *player) helpable(waiting []*corev1.Pod) (int, error) {
	const few = 3
	for g := range p.w.Groups {
		for range min(few, p.w.Groups[g].Max-p.w.Groups[g].Target) {
			p.w.addMachine(g)
		}
	}
	left, err := p.bind(waiting)
	return len(waiting) - len(left), err
}

package convert

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func in(key string, values ...string) cluster.Requirement {
	return cluster.Requirement{Key: key, Operator: "In", Values: values}
}

func selects(rs ...cluster.Requirement) *cluster.Selector { return &cluster.Selector{Requirements: rs} }

func affinityOf(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func expression(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
}

func TestPodTerms(t *testing.T) {
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	for name, c := range map[string]struct {
		term corev1.PodAffinityTerm
		want cluster.PodTerm
	}{
		"its own namespace is the default": {corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: app},
			cluster.PodTerm{TopologyKey: "zone", Selector: selects(in("app", "a")), Namespaces: []string{"ns"}}},
		"no selector selects nothing, an empty one everything": {corev1.PodAffinityTerm{TopologyKey: "zone", NamespaceSelector: &metav1.LabelSelector{}},
			cluster.PodTerm{TopologyKey: "zone", NamespaceSelector: selects()}},
		"named namespaces are sorted, each once": {corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}, Namespaces: []string{"b", "a", "b"}},
			cluster.PodTerm{Selector: selects(), Namespaces: []string{"a", "b"}}},
		"named and selected namespaces together": {corev1.PodAffinityTerm{LabelSelector: app, Namespaces: []string{"b"}, NamespaceSelector: app},
			cluster.PodTerm{Selector: selects(in("app", "a")), Namespaces: []string{"b"}, NamespaceSelector: selects(in("app", "a"))}},
		"expressions come in one order": {corev1.PodAffinityTerm{Namespaces: []string{"b"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"m": "1"},
			MatchExpressions: []metav1.LabelSelectorRequirement{expression("z", "NotIn", "b", "a", "b"), expression("a", "Exists"), expression("a", "DoesNotExist")}}},
			cluster.PodTerm{Namespaces: []string{"b"}, Selector: selects(cluster.Requirement{Key: "a", Operator: "DoesNotExist"}, cluster.Requirement{Key: "a", Operator: "Exists"},
				in("m", "1"), cluster.Requirement{Key: "z", Operator: "NotIn", Values: []string{"a", "b"}})}},
		"label keys of a template are merged": {corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"app", "none"}, MismatchLabelKeys: []string{"tenant"}},
			cluster.PodTerm{Namespaces: []string{"ns"}, Selector: selects(in("app", "a"), cluster.Requirement{Key: "tenant", Operator: "NotIn", Values: []string{"t"}})}},
		"label keys that the API server merged stay as it did": {corev1.PodAffinityTerm{MatchLabelKeys: []string{"app"},
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression("app", "In", "of old")}}},
			cluster.PodTerm{Namespaces: []string{"ns"}, Selector: selects(in("app", "of old"))}},
		"label keys select nothing without a selector": {corev1.PodAffinityTerm{MatchLabelKeys: []string{"app"}},
			cluster.PodTerm{Namespaces: []string{"ns"}}},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "a", "tenant": "t"}}, Spec: corev1.PodSpec{Affinity: affinityOf(c.term)}}
		got := PodClass(p, nil)
		if !reflect.DeepEqual(got.PodAffinity, []cluster.PodTerm{c.want}) || got.NotUnderstood != nil {
			t.Errorf("%s:\ngot  %+v %q\nwant %+v", name, got.PodAffinity, got.NotUnderstood, c.want)
		}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{c.term}}}
		if got := PodClass(p, nil); !reflect.DeepEqual(got.PodAntiAffinity, []cluster.PodTerm{c.want}) || got.PodAffinity != nil {
			t.Errorf("%s, anti: %+v", name, got.PodAntiAffinity)
		}
	}
}

func TestInvalidSelectorsAreHeld(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression("a", "In")}}
	p := &corev1.Pod{Spec: corev1.PodSpec{Affinity: affinityOf(corev1.PodAffinityTerm{LabelSelector: bad}),
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: bad}}}}
	want := []string{"required podAffinity with an invalid selector", "topologySpreadConstraints with an invalid selector"}
	if got := PodClass(p, nil).NotUnderstood; !reflect.DeepEqual(got, want) {
		t.Errorf("held %q, want %q", got, want)
	}
}

func TestPreferencesStandApart(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		Affinity: &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway, MaxSkew: 1}}}}
	got, term := PodClass(p, nil), cluster.PodTerm{Namespaces: []string{""}}
	if want := (cluster.Preferences{Pods: []cluster.PreferredPods{{Weight: 1, Term: term}, {Weight: -1, Term: term}}, Spread: []cluster.Spread{{MaxSkew: 1}}}); got.Prefers == nil || !reflect.DeepEqual(*got.Prefers, want) {
		t.Errorf("prefers %+v, want %+v", got.Prefers, want)
	}
	if got.Prefers = nil; !reflect.DeepEqual(got, cluster.PodClass{Requests: cluster.Resources{Pods: 1}}) {
		t.Errorf("got %+v", got)
	}
}

// TestScoredRequests follows PodInfo.CalculateResource of kube-scheduler, and
// calculatePodResourceRequest where it differs.
func TestScoredRequests(t *testing.T) {
	requests := func(cpu, memory string) corev1.ResourceRequirements {
		out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}}
		for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if amount != "" {
				out.Requests[name] = resource.MustParse(amount)
			}
		}
		return out
	}
	const mb = 1 << 20
	both, cpu, podLevel := requests("250m", "100Mi"), requests("250m", ""), requests("600m", "")
	for name, c := range map[string]struct {
		containers []corev1.ResourceRequirements
		pod        *corev1.ResourceRequirements
		want       *cluster.Preferences
	}{
		"all are named":       {[]corev1.ResourceRequirements{both, both}, nil, nil},
		"none is":             {[]corev1.ResourceRequirements{{}}, nil, &cluster.Preferences{MilliCPU: 100, Memory: 200 * mb}},
		"one container of 2":  {[]corev1.ResourceRequirements{both, cpu}, nil, &cluster.Preferences{MilliCPU: 500, Memory: 300 * mb}},
		"a request of 0 is 0": {[]corev1.ResourceRequirements{requests("0", "0")}, nil, nil},
		"pod level": {[]corev1.ResourceRequirements{both, both}, &podLevel,
			&cluster.Preferences{IncomingMilliCPU: 500, IncomingMemory: 200 * mb}},
		"pod level, no memory": {[]corev1.ResourceRequirements{cpu}, &podLevel,
			&cluster.Preferences{MilliCPU: 600, Memory: 200 * mb, IncomingMilliCPU: 250, IncomingMemory: 200 * mb}},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Resources: c.pod}}
		for _, r := range c.containers {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: r})
		}
		if got := PodClass(p, nil).Prefers; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	three, ignore, honor := int32(3), corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	for name, c := range map[string]struct {
		in   corev1.TopologySpreadConstraint
		want cluster.Spread
	}{
		"plain": {corev1.TopologySpreadConstraint{TopologyKey: "zone", MaxSkew: 2, LabelSelector: app},
			cluster.Spread{TopologyKey: "zone", MaxSkew: 2, Selector: selects(in("app", "a"))}},
		"domains and policies": {corev1.TopologySpreadConstraint{MaxSkew: 1, MinDomains: &three, NodeAffinityPolicy: &ignore, NodeTaintsPolicy: &honor},
			cluster.Spread{MaxSkew: 1, MinDomains: 3, IgnoreNodeAffinity: true, HonorTaints: true}},
		"policies of the API's defaults": {corev1.TopologySpreadConstraint{MaxSkew: 1, NodeAffinityPolicy: &honor, NodeTaintsPolicy: &ignore, LabelSelector: &metav1.LabelSelector{}},
			cluster.Spread{MaxSkew: 1, Selector: selects()}},
		"label keys": {corev1.TopologySpreadConstraint{MaxSkew: 1, LabelSelector: app, MatchLabelKeys: []string{"hash", "none"}},
			cluster.Spread{MaxSkew: 1, Selector: selects(in("app", "a"), in("hash", "h"))}},
		"label keys merged by the API server": {corev1.TopologySpreadConstraint{MaxSkew: 1, MatchLabelKeys: []string{"hash"},
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression("hash", "In", "h")}}},
			cluster.Spread{MaxSkew: 1, Selector: selects(in("hash", "h"))}},
		"a label that changed since: both hold, so nothing does": {corev1.TopologySpreadConstraint{MaxSkew: 1, MatchLabelKeys: []string{"hash"},
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression("hash", "In", "g")}}},
			cluster.Spread{MaxSkew: 1, Selector: selects(in("hash", "g"), in("hash", "h"))}},
	} {
		c.in.WhenUnsatisfiable = corev1.DoNotSchedule
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a", "hash": "h"}}, Spec: corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c.in}}}
		if got := PodClass(p, nil).Spread; !reflect.DeepEqual(got, []cluster.Spread{c.want}) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

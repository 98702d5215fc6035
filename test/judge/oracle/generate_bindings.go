package oracle

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicaHash is the label that is a ReplicaSet's own.
const replicaHash = "pod-template-hash"

// GenerateBindings makes a world in which kube-scheduler has a choice: workloads of several
// replicas with preferences of all kinds, and nodes that differ.
func GenerateBindings(seed uint64) *World {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0xb1d)), w: &World{}, odds: map[string]float64{}}
	for _, f := range features {
		g.odds[f] = []float64{0, 0, 0.05, 0.15, 0.3}[g.IntN(5)]
	}
	for _, none := range []string{"volumes", "ephemeral", "held", "nominated", "nodeName", "fields", "big"} {
		g.odds[none] = 0
	}
	g.odds["cordon"] /= 5
	g.odds["resize"] /= 5
	g.alike = g.one(3)
	g.namespaces()
	for i := range 3 + g.IntN(16) {
		n := g.node(i)
		if _, has := n.Labels[hostname]; has { // names are unique where scores read them
			n.Labels[hostname] = n.Name
		}
		g.w.Nodes = append(g.w.Nodes, n)
	}
	for i := range g.IntN(25) {
		p := g.pod(fmt.Sprintf("p%d", i), false)
		g.preferences(p)
		p.Spec.NodeName = g.w.Nodes[g.IntN(len(g.w.Nodes))].Name
		g.live(p)
		g.w.Pods = append(g.w.Pods, p)
	}
	for i := range 1 + g.IntN(8) {
		g.workload(i)
	}
	if g.one(2) {
		g.Shuffle(len(g.w.Waiting), func(i, j int) { g.w.Waiting[i], g.w.Waiting[j] = g.w.Waiting[j], g.w.Waiting[i] })
	}
	return g.w
}

// workload adds the pods of one workload, some of them bound already.
func (g *generator) workload(i int) {
	model := g.pod(fmt.Sprintf("w%d", i), true)
	if g.one(2) { // small ones, so that many are bound
		for c := range model.Spec.Containers {
			delete(model.Spec.Containers[c].Resources.Requests, gpu)
		}
	}
	g.preferences(model)
	if !g.one(3) {
		model.Labels[replicaHash] = fmt.Sprintf("h%d", i)
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: model.Namespace, Name: model.Name, UID: g.uid()},
			Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: model.Labels}}}
		g.w.ReplicaSets = append(g.w.ReplicaSets, set)
		model.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: new(true)}}
	}
	for k := range 1 + g.IntN(12) {
		p := model.DeepCopy()
		p.Name, p.UID = fmt.Sprintf("%s-%d", model.Name, k), g.uid()
		if g.one(5) {
			p.Spec.NodeName = g.w.Nodes[g.IntN(len(g.w.Nodes))].Name
			g.live(p)
			g.w.Pods = append(g.w.Pods, p)
			continue
		}
		g.w.Waiting = append(g.w.Waiting, p)
	}
}

// preferences gives a pod what only scores read.
func (g *generator) preferences(p *corev1.Pod) {
	if p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil {
		p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
	}
	for g.one(4) {
		a := affinityOf(p)
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		key := pick(g, []string{zone, disk, rack})
		r := corev1.NodeSelectorRequirement{Key: key, Operator: pick(g, []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists})}
		if r.Operator != corev1.NodeSelectorOpExists {
			r.Values = []string{g.nodeValue(key)}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(1 + g.IntN(100)), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}}})
	}
	for g.one(3) {
		t := corev1.WeightedPodAffinityTerm{Weight: int32(1 + g.IntN(100)), PodAffinityTerm: g.podTerm(p, false)}
		t.PodAffinityTerm.MatchLabelKeys, t.PodAffinityTerm.MismatchLabelKeys = nil, nil // those of the API server are merged already
		a := affinityOf(p)
		if g.one(2) {
			if a.PodAffinity == nil {
				a.PodAffinity = &corev1.PodAffinity{}
			}
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, t)
			continue
		}
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, t)
	}
	for n := 0; n < 2 && g.one(4); n++ {
		c := g.spread(p)
		c.WhenUnsatisfiable, c.MinDomains = corev1.ScheduleAnyway, nil
		same := false
		for _, o := range p.Spec.TopologySpreadConstraints {
			same = same || o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}
		if !same {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
		}
	}
}

package plan

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

//go:embed testdata/addons.txt
var addOnTable string

// addOn is a row of testdata/addons.txt. budget is -1 without a PodDisruptionBudget; blocked are the reasons for which it keeps its node.
type addOn struct {
	addOn, namespace, pod, owner, volumes, class string
	budget                                       int
	annotation, blocked                          string
}

func readAddOns(t *testing.T) (out []addOn) {
	t.Helper()
	for line := range strings.Lines(addOnTable) {
		f := strings.Split(line, "|")
		if strings.HasPrefix(line, "#") {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		if len(f) != 9 {
			t.Fatalf("%q has %d columns", line, len(f))
		}
		a := addOn{f[0], f[1], f[2], f[3], f[4], f[5], -1, f[7], f[8]}
		switch a.owner {
		case "ReplicaSet", "StatefulSet", "DaemonSet":
			a.owner = "apps/v1 " + a.owner
		}
		if f[6] != "-" {
			var err error
			if a.budget, err = strconv.Atoi(f[6]); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
		out = append(out, a)
	}
	return out
}

// addOn adds a pod of an add-on.
func (o *objects) addOn(a addOn, node string) *corev1.Pod {
	p := o.pod(a.pod, node, "100m", a.owner)
	p.Namespace = a.namespace
	p.Spec.Priority = new(map[string]int32{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}[a.class])
	if a.annotation != "" {
		p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/" + a.annotation: "true"}
	}
	for _, volume := range strings.Fields(a.volumes) {
		kind, name, _ := strings.Cut(volume, ":")
		v := corev1.Volume{Name: name}
		switch kind {
		case "host":
			v.HostPath = &corev1.HostPathVolumeSource{Path: "/x"}
		case "memory":
			v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
		default:
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	if a.budget >= 0 {
		o.Budgets = append(o.Budgets, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.pod, UID: types.UID("pdb-" + a.pod)},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: p.Labels}, MaxUnavailable: new(intstr.FromInt32(1))},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(a.budget)}})
	}
	return p
}

// blockers are the reasons that explain gives for a pod on an idle node, and whether the node may go.
func (o *objects) blockers(p *corev1.Pod, policy decision.Policy) (names []string, goes bool) {
	s, plan := o.decide(policy)
	x := Explain(s, decision.Memory{}, policy, decision.Query{Kind: "pod", Name: p.Namespace + "/" + p.Name})
	for _, b := range x.Pod.Blockers {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names, strings.HasPrefix(held(plan, "node", "n0"), "["+decision.RuleUnneededFor+"]")
}

// TestAddOns: a machine is bought for each add-on that waits; on an idle node each keeps it for the reasons of its row and no others, and
// what docs/scaling-rules.md says frees the node.
func TestAddOns(t *testing.T) {
	names := map[string]bool{}
	for _, a := range readAddOns(t) {
		names[a.addOn] = true
		name := fmt.Sprintf("%s: %s", a.addOn, a.pod)
		o := newObjects()
		o.addOn(a, "")
		_, plan := o.decide(policy())
		if machines, _ := boughtOf(plan); (machines == 1) == strings.HasSuffix(a.owner, " DaemonSet") || machines > 1 {
			t.Errorf("%s waits, and %d machines are bought", name, machines)
		}
		o = newObjects()
		o.node("n0")
		o.node("n1")
		o.pod("busy", "n1", "2500m", replicaSet)
		p := o.addOn(a, "n0")
		want := reasons(a.blocked)
		if got, goes := o.blockers(p, policy()); !slices.Equal(got, want) || goes != (a.blocked == "") {
			t.Errorf("%s keeps its node for %q, want %q; the node goes: %v", name, got, want, goes)
		}
		free := policy()
		free.SkipNodesWithCustomPods = false
		p.Annotations = map[string]string{cluster.AnnotationSafeVolumes: volumeNames(p)}
		if len(o.Budgets) == 0 {
			o.Budgets = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "free"}}}
			o.Budgets[0].Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
		}
		o.Budgets[0].Status.DisruptionsAllowed = 1
		if got, goes := o.blockers(p, free); len(got) > 0 || !goes {
			t.Errorf("%s still keeps its node for %q; the node goes: %v", name, got, goes)
		}
		o.Budgets, p.Annotations = nil, map[string]string{cluster.AnnotationSafeToEvict: "true"}
		if got, goes := o.blockers(p, policy()); len(got) > 0 || !goes {
			t.Errorf("%s keeps its node in spite of safe-to-evict for %q; the node goes: %v", name, got, goes)
		}
	}
	if len(names) < 30 {
		t.Errorf("%d add-ons", len(names))
	}
}

// reasons are the names of blockers in a row, in their order.
func reasons(row string) (out []string) {
	for _, name := range []string{"budget", "custom controller", "kube-system", "local storage"} {
		if strings.Contains(row, name) {
			out = append(out, name)
		}
	}
	return out
}

func volumeNames(p *corev1.Pod) string {
	var names []string
	for i := range p.Spec.Volumes {
		names = append(names, p.Spec.Volumes[i].Name)
	}
	return strings.Join(names, ", ")
}

package act

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestSoftenTouchesOnlyItsTaint: the soft taint comes once and goes alone, and a node
// that is another one by now is left as it is.
func TestSoftenTouchesOnlyItsTaint(t *testing.T) {
	foreign := corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}
	h, client, _ := executor(&cloud{}, node("n", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{foreign} }))
	do := func(a decision.SoftTaint) []cluster.Outcome {
		return h.Do(t.Context(), decision.Plan{Actions: []decision.Action{a}})
	}
	for range 2 {
		if out := do(decision.SoftTaint{Node: "n", UID: "uid-n"}); len(out) != 1 || out[0].Error != "" {
			t.Errorf("%+v", out)
		}
	}
	n := get(t, client, "n")
	if len(n.Spec.Taints) != 2 || n.Spec.Taints[1].Key != cluster.TaintDeletionCandidate || n.Spec.Taints[1].Effect != corev1.TaintEffectPreferNoSchedule || n.Spec.Unschedulable {
		t.Errorf("softened: %+v", n.Spec)
	}
	if _, err := strconv.ParseInt(n.Spec.Taints[1].Value, 10, 64); err != nil {
		t.Errorf("its value is no time: %q", n.Spec.Taints[1].Value)
	}
	if out := do(decision.SoftTaint{Node: "n", UID: "another", Off: true}); len(out) != 1 || out[0].Error == "" {
		t.Errorf("another node was touched: %+v", out)
	}
	do(decision.SoftTaint{Node: "n", UID: "uid-n", Off: true})
	if n := get(t, client, "n"); !slices.Equal(n.Spec.Taints, []corev1.Taint{foreign}) {
		t.Errorf("unsoftened: %+v", n.Spec)
	}
}

package fit

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestNextMachineOfSeveralZones: a pod passes where it passes in each zone, and pods are counted
// on such a machine as on any other.
func TestNextMachineOfSeveralZones(t *testing.T) {
	const zone = "topology.kubernetes.io/zone"
	among := func(values ...string) []cluster.NodeTerm {
		return []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: zone, Operator: "In", Values: values}}}}
	}
	template := cluster.Template{Labels: map[string]string{"pool": "x"}, Zones: []string{"a", "b"}, ZoneLabels: []string{zone}}
	next := NextMachine(&template)
	for _, c := range []struct {
		terms []cluster.NodeTerm
		want  bool
	}{{among("a"), false}, {among("a", "b", "c"), true}, {append(among("a"), among("b")...), true}, {among("c"), false}} {
		if got := Passes(&cluster.PodClass{Affinity: c.terms}, &next); got != c.want {
			t.Errorf("%+v: %v", c.terms, got)
		}
	}
	placed := next.Placed(&template, "b")
	if len(placed.InZones) != 0 || placed.Labels[zone] != "b" || len(next.Labels) != 1 {
		t.Errorf("%+v", placed)
	}
	template.Labels = map[string]string{zone: "a"} // an operator's promise
	if s := NextMachine(&template); len(s.InZones) != 0 || !Passes(&cluster.PodClass{Affinity: among("a")}, &s) {
		t.Errorf("%+v", s)
	}
	labels := map[string]string{"app": "web"}
	spread := cluster.PodClass{Namespace: "n", Labels: labels, Affinity: among("a", "b", "c"),
		Spread: []cluster.Spread{{TopologyKey: labelHostname, MaxSkew: 1, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"web"}}}}}}}
	s := NewState([]cluster.PodClass{spread}, nil)
	full, empty := s.AddNode(&next, nil), s.AddNode(&next, nil)
	s.Put(0, full, 1)
	if s.Passes(0, full) || !s.Passes(0, empty) {
		t.Errorf("one pod on each: full %v, empty %v", s.Passes(0, full), s.Passes(0, empty))
	}
}

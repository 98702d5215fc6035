package fit

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestUnknownDomain: a template that lacks the label of a required term says nothing about the domain; a Node
// without the label is in none.
func TestUnknownDomain(t *testing.T) {
	labels := map[string]string{zoneKey: "a"}
	for _, c := range []struct {
		key  string
		node cluster.NodeName
		want bool
	}{{zoneKey, "", true}, {hostKey, "", true}, {"rack", "", false}, {"rack", "n", true}} {
		class := avoids(near(c.key, in("app", "me")))
		if got := unknownDomain(&class, &NodeInfo{Name: c.node, Labels: labels}) == ""; got != c.want {
			t.Errorf("anti-affinity on %s, node %q: known %v, want %v", c.key, c.node, got, c.want)
		}
	}
	several := avoids(near("rack", in("app", "me")), near("aisle", in("app", "me")), near("room", in("app", "me")))
	if got := unknownDomain(&several, &NodeInfo{Labels: labels}); got != "aisle" {
		t.Errorf("%q is the first of three keys by name, want aisle", got)
	}
	term := near("rack", in("app", "me"))
	class := cluster.PodClass{PodAffinity: []cluster.PodTerm{term}, PodAntiAffinity: []cluster.PodTerm{near("building", in("app", "me"))}}
	if got := unknownDomain(&class, &NodeInfo{Labels: labels}); got != "building" {
		t.Errorf("%q is the first key that the template does not tell, want building", got)
	}
}

// TestStateUnknownDomain: anti-affinity to pods that no class has names no domain, and a State that is nil knows of no constraint.
func TestStateUnknownDomain(t *testing.T) {
	keepsOff := func(app string) cluster.PodClass {
		return cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": "web"}, PodAntiAffinity: []cluster.PodTerm{{TopologyKey: "rack",
			Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}}}}
	}
	for app, want := range map[string]string{"web": "rack", "none": ""} {
		st := NewState([]cluster.PodClass{keepsOff(app)}, nil)
		if got := st.UnknownDomain(0, &NodeInfo{}); got != want {
			t.Errorf("pods that keep off app %s: %q is not known, want %q", app, got, want)
		}
	}
	if got := (*State)(nil).UnknownDomain(0, &NodeInfo{}); got != "" {
		t.Errorf("no State: %q", got)
	}
}

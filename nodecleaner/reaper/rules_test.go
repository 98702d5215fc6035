package reaper

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// liveStories change the Node between the decision and its deletion. Package nodecleaner
// plays the same with objects of the API.
var liveStories = []struct {
	name   string
	change func(*cluster.Node)
	rule   string
}{
	{"N1 nothing changed", func(*cluster.Node) {}, ""},
	{"N1 another Node of the same name", func(n *cluster.Node) { n.UID = "another" }, "N1"},
	{"N2 another provider ID", func(n *cluster.Node) { n.ProviderID = "aws:///z/i-another" }, "N2"},
	{"N3 Ready again", func(n *cluster.Node) { n.Ready = cluster.StatusTrue }, "N3"},
	{"N3 kept", func(n *cluster.Node) { n.Annotations = map[string]string{cluster.AnnotationKeep: "true"} }, "N3"},
	{"N3 of the control plane", func(n *cluster.Node) { n.ControlPlane = true }, "N3"},
}

func TestRecheckByRule(t *testing.T) {
	for _, c := range liveStories {
		t.Run(c.name, func(t *testing.T) {
			n := cluster.Node{Name: "n", UID: "u", ProviderID: string(id(0))}
			d := Deletion{Node: n.Name, UID: n.UID, ProviderID: n.ProviderID, Rule: "G3"}
			c.change(&n)
			if rule, why := Recheck(n, d); rule != c.rule || (why == "") != (c.rule == "") {
				t.Errorf("held by %q (%s), want %q", rule, why, c.rule)
			}
		})
	}
}

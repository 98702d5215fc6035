package fit

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestDomainsKnown: a template that lacks the label of a required anti-affinity says nothing about the domain; a Node
// without the label is in none.
func TestDomainsKnown(t *testing.T) {
	labels := map[string]string{zoneKey: "a"}
	for _, c := range []struct {
		key  string
		node cluster.NodeName
		want bool
	}{{zoneKey, "", true}, {hostKey, "", true}, {"rack", "", false}, {"rack", "n", true}} {
		class := avoids(near(c.key, in("app", "me")))
		if got := DomainsKnown(&class, &NodeInfo{Name: c.node, Labels: labels}); got != c.want {
			t.Errorf("anti-affinity on %s, node %q: %v, want %v", c.key, c.node, got, c.want)
		}
	}
	apart := near("rack", in("app", "me"))
	if class := (cluster.PodClass{PodAffinity: []cluster.PodTerm{apart}}); !DomainsKnown(&class, &NodeInfo{Labels: labels}) {
		t.Error("affinity is refused by its own filter, and not by its domain")
	}
}

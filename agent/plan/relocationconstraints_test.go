package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// siblings is a cluster of nodes in two zones, with pods of one class on the first few.
func siblings(nodes, pods int, class cluster.PodClass) cluster.Snapshot {
	a := cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 110}
	s := cluster.Snapshot{Now: t0, Groups: []cluster.NodeGroup{{ID: "g", Max: 9, Target: nodes, ReadAt: t0, Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a}}}}
	class.Namespace, class.Labels, class.Requests = "default", map[string]string{"app": "a"}, cluster.Resources{MilliCPU: 100, Memory: 1 << 28, Pods: 1}
	s.Classes = []cluster.PodClass{class}
	for i := range nodes {
		name := fmt.Sprint("n", i)
		id := cluster.InstanceID("aws:///z/i-" + name)
		s.Groups[0].Instances = append(s.Groups[0].Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: t0.Add(-time.Hour)})
		n := &cluster.Node{Name: cluster.NodeName(name), UID: cluster.UID(name), ProviderID: string(id), Created: t0.Add(-time.Hour), Capacity: a, Allocatable: a, Ready: cluster.StatusTrue,
			Labels: map[string]string{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": string('a' + rune(i%2))}}
		if i < pods {
			n.Pods = []cluster.Pod{{Key: cluster.PodKey("default/p-" + name), UID: cluster.UID("p" + name), Node: n.Name, Created: cluster.At(t0), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: "a", UID: "a"}}}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// TestMovedPodsKeepTheirTies: what pods ask of other pods is asked of their new place too.
func TestMovedPodsKeepTheirTies(t *testing.T) {
	own := &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"a"}}}}
	apart := cluster.PodClass{PodAntiAffinity: []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Selector: own, Namespaces: []string{"default"}}}}
	even := cluster.PodClass{Spread: []cluster.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, Selector: own}}}
	for _, c := range []struct {
		name        string
		class       cluster.PodClass
		nodes, pods int
		stay        int // nodes whose pod has room nowhere else
	}{
		{"no ties", cluster.PodClass{}, 4, 4, 0},
		{"apart, every node has one", apart, 4, 4, 4},
		{"apart, one node is free, which goes first", apart, 4, 3, 3},
		{"apart, three are free, which go first", apart, 4, 1, 1},
		{"even over zones, with a node for each", even, 4, 4, 0},
		{"even over zones, one zone has one node", even, 3, 3, 1},
	} {
		s := siblings(c.nodes, c.pods, c.class)
		plan, _ := check(t, s, decision.Memory{}, policy(), 1)
		if got := strings.Count(plan.String(), "has room nowhere else"); got != c.stay {
			t.Errorf("%s: %d nodes are kept for want of room, want %d\n%s", c.name, got, c.stay, plan)
		}
	}
}

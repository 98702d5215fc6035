package fit

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestDaemonsOfANode: the DaemonSet pods that are still to come to a node are on the host of whoever
// needs them there or keeps off them, and they are gone when the node is taken back.
func TestDaemonsOfANode(t *testing.T) {
	host := func(app string) []cluster.PodTerm {
		return []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"default"},
			Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}}}
	}
	class := func(app string) cluster.PodClass {
		return cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": app}}
	}
	logs, agents := class("logs"), class("agents")
	agents.PodAntiAffinity = host("batch")
	near, off, batch := class("near"), class("off"), class("batch")
	near.PodAffinity, off.PodAntiAffinity = host("logs"), host("logs")
	const nearClass, offClass, batchClass = 2, 3, 4
	s := NewState([]cluster.PodClass{logs, agents, near, off, batch}, nil)

	passes := func(shape *NodeInfo) [3]bool {
		mark := s.Mark()
		defer s.Rollback(mark)
		n := s.AddNode(shape, nil)
		return [3]bool{s.Passes(nearClass, n), s.Passes(offClass, n), s.Passes(batchClass, n)}
	}
	for range 2 { // what AddNode counts is taken back with the node
		if got := passes(&NodeInfo{}); got != [3]bool{false, true, true} {
			t.Errorf("without DaemonSets: %v", got)
		}
		if got := passes(&NodeInfo{Daemons: []int{0, 1}}); got != [3]bool{true, false, false} {
			t.Errorf("with DaemonSets: %v", got)
		}
	}
	mounting := class("mounting")
	mounting.Volumes = []cluster.Volume{{Driver: "ebs", Handle: "1"}}
	full := NewState([]cluster.PodClass{mounting, mounts(cluster.Volume{Driver: "ebs", Handle: "2"})}, nil)
	if n := full.AddNode(&NodeInfo{Daemons: []int{0}}, map[string]int64{"ebs": 1}); full.Passes(1, n) {
		t.Error("the volume of a DaemonSet's pod is not counted")
	}
	s.AddNode(&NodeInfo{Daemons: []int{0}}, nil)
	if n := s.AddNode(&NodeInfo{}, nil); s.Passes(nearClass, n) {
		t.Error("the DaemonSet's pod of another host counts")
	}
}

package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// BenchmarkStarting decides rounds in which all nodes are young and Ready, have a taint that passes and
// lack a label that pods ask for; one of them has changed since the round before.
func BenchmarkStarting(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s := startingNodes(nodes)
			p := decision.Policy{Expander: "least-waste", FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute, UnneededFor: 10 * time.Minute}
			var e Engine
			var m decision.Memory
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				n := *s.Nodes[i%nodes]
				s.Nodes = append([]*cluster.Node(nil), s.Nodes...)
				s.Nodes[i%nodes] = &n
				_, m = e.Decide(s, m, p)
			}
		})
	}
}

func startingNodes(nodes int) cluster.Snapshot {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	size := cluster.Resources{MilliCPU: 15890, Memory: 60 << 30, Pods: 110}
	g := cluster.NodeGroup{ID: "g", Max: 2 * nodes, Target: nodes, ReadAt: now, Template: cluster.Template{Spec: "lt", Capacity: size, Allocatable: size, Labels: map[string]string{"late": "x"}}}
	s := cluster.Snapshot{Now: now, Classes: []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{MilliCPU: 4000, Pods: 1}, NodeSelector: map[string]string{"late": "x"}}}}
	for i := range 30 {
		g.Template.Labels[fmt.Sprint("label-", i)] = "x"
	}
	for i := range nodes {
		n := &cluster.Node{Name: cluster.NodeName(fmt.Sprintf("n%05d", i)), UID: cluster.UID(fmt.Sprint(i)), ProviderID: fmt.Sprintf("aws:///a/i-%05d", i), Created: now.Add(-time.Minute), Ready: cluster.StatusTrue, ReadySince: now.Add(-30 * time.Second),
			Capacity: size, Allocatable: size, Labels: map[string]string{}, Taints: []cluster.Taint{{Key: "agent-not-ready", Effect: "NoExecute"}}}
		for k := range 30 {
			n.Labels[fmt.Sprint("label-", k)] = "x"
		}
		s.Nodes = append(s.Nodes, n)
		g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(n.ProviderID), Phase: cluster.PhaseRunning, Member: true, Created: n.Created})
	}
	s.Groups = []cluster.NodeGroup{g}
	return s
}

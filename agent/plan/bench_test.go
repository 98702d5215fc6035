package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// busy is a cluster of nodes nodes that carry pods pods, of classes classes.
func busy(nodes, pods, classes int) cluster.Snapshot {
	a := cluster.Resources{MilliCPU: 2000, Memory: 8 << 30, Pods: 110}
	s := cluster.Snapshot{Now: t0, Groups: []cluster.NodeGroup{{ID: "workers", Max: 50000, Target: nodes, ReadAt: t0, Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a}}}}
	for i := range classes {
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": fmt.Sprint(i)},
			Requests: cluster.Resources{MilliCPU: 100 + int64(i%17)*50, Memory: 128<<20 + int64(i%23)<<26, Pods: 1}})
	}
	g := &s.Groups[0]
	for i := range nodes {
		id := cluster.InstanceID(fmt.Sprintf("aws:///eu-west-1a/i-%017d", i))
		g.Instances = append(g.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: t0.Add(-time.Hour)})
		s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(fmt.Sprintf("node-%04d", i)), UID: cluster.UID(id), ProviderID: string(id), Created: t0.Add(-time.Hour), Capacity: a, Allocatable: a, Ready: cluster.StatusTrue})
	}
	for i := range pods {
		rs := fmt.Sprintf("rs-%d", i%classes)
		p := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/pod-%05d", i)), UID: cluster.UID(fmt.Sprint(i)), Class: i % classes, Created: cluster.At(t0), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: rs, UID: cluster.UID(rs)}, GracePeriod: 30}
		if nodes > 0 {
			p.Node = s.Nodes[i%nodes].Name
		} else {
			p.Unschedulable = cluster.At(t0)
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}

func benchDecide(b *testing.B, s cluster.Snapshot) {
	p := policy()
	_, m := Decide(s, decision.Memory{}, p)
	b.ReportAllocs()
	for b.Loop() {
		Decide(s, m, p)
	}
}

func BenchmarkIdle300on20(b *testing.B)     { benchDecide(b, busy(20, 300, 1)) }
func BenchmarkIdleLight20(b *testing.B)     { benchDecide(b, busy(20, 60, 3)) }
func BenchmarkIdle10000on1000(b *testing.B) { benchDecide(b, busy(1000, 10000, 50)) }

func BenchmarkBurst300on20(b *testing.B) {
	s := busy(20, 300, 1)
	for i := range 300 {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/new-%05d", i)), UID: cluster.UID(fmt.Sprint("n", i)), Class: 0, Created: cluster.At(t0), Unschedulable: cluster.At(t0)})
	}
	p := policy()
	b.ReportAllocs()
	for b.Loop() {
		Decide(s, decision.Memory{}, p)
	}
}

func BenchmarkBurst30000of300(b *testing.B) {
	s := busy(0, 30000, 300)
	p := policy()
	b.ReportAllocs()
	for b.Loop() {
		Decide(s, decision.Memory{}, p)
	}
}

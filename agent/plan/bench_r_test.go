package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The R workloads are whole rounds: N nodes (16 CPU, 64 GiB, 110 pods, one zone) in 10
// groups with the label pool=NAME, each node with 30 running pods of 30 ReplicaSets
// that together request U % of it and are safe to evict; Q pending pods, pod i of spec
// s = i mod 10: cpu 2000+100s milli, memory 4096+256s MiB, owned by 10 ReplicaSets or
// by nobody. docs/performance.md says what other autoscalers need for them.
type rounds struct {
	nodes, pending, use int
	ownerless           bool
}

const (
	roundGroups  = 10
	roundPodsPer = 30
	roundSpecs   = 10
)

// snapshot builds the workload as the observer would hand it out.
func (r rounds) snapshot() cluster.Snapshot {
	alloc := cluster.Resources{MilliCPU: 16000, Memory: 64 << 30, EphemeralStorage: 100 << 30, Pods: 110}
	s := cluster.Snapshot{Now: t0}
	owners := make([]*cluster.Owner, roundPodsPer+roundSpecs)
	for i := range owners {
		rs := fmt.Sprintf("rs-%02d", i)
		owners[i] = &cluster.Owner{Kind: "ReplicaSet", Name: rs, UID: cluster.UID("uid-" + rs)}
	}
	for i := range roundPodsPer {
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": owners[i].Name},
			Requests: cluster.Resources{MilliCPU: int64(16000 * r.use / 100 / roundPodsPer), Memory: int64(64<<30) * int64(r.use) / 100 / roundPodsPer, Pods: 1}})
	}
	for i := range roundSpecs {
		s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": owners[roundPodsPer+i].Name},
			Requests: cluster.Resources{MilliCPU: int64(2000 + 100*i), Memory: int64(4096+256*i) << 20, Pods: 1}})
	}
	for g := range roundGroups {
		name := fmt.Sprintf("pool-%d", g)
		labels := map[string]string{"pool": name, "topology.kubernetes.io/zone": "zone-a"}
		s.Groups = append(s.Groups, cluster.NodeGroup{ID: cluster.GroupID(name), Max: 100000, Target: r.nodes / roundGroups, ReadAt: t0,
			Template: cluster.Template{Spec: "lt-" + name, Capacity: alloc, Allocatable: alloc, Labels: labels}})
	}
	for i := range r.nodes {
		s.Nodes = append(s.Nodes, r.node(&s.Groups[i%roundGroups], i, owners))
	}
	for i := range r.pending {
		class := roundPodsPer + i%roundSpecs
		p := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/pending-%06d", i)), UID: cluster.UID(fmt.Sprintf("pending-%06d", i)), Class: class, Created: t0, Unschedulable: t0}
		if !r.ownerless {
			p.Owner = owners[class]
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}

func (r rounds) node(g *cluster.NodeGroup, i int, owners []*cluster.Owner) *cluster.Node {
	id := cluster.InstanceID(fmt.Sprintf("aws:///zone-a/i-%017d", i))
	name := cluster.NodeName(fmt.Sprintf("ip-10-%d-%d.example.internal", i/256, i%256))
	born := t0.Add(-24 * time.Hour)
	g.Instances = append(g.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: born})
	n := &cluster.Node{Name: name, UID: cluster.UID(id), ProviderID: string(id), Created: born, Labels: map[string]string{"pool": g.Template.Labels["pool"],
		"topology.kubernetes.io/zone": "zone-a", "kubernetes.io/hostname": string(name)}, Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable, Ready: cluster.StatusTrue, ReadySince: born}
	for k := range roundPodsPer {
		key := cluster.PodKey(fmt.Sprintf("default/%s-%05d", owners[k].Name, i))
		n.Pods = append(n.Pods, cluster.Pod{Key: key, UID: cluster.UID(key[8:]), Class: k, Node: name, Created: born, Owner: owners[k], SafeToEvict: "true", GracePeriod: 30 * time.Second})
	}
	return n
}

func (r rounds) String() string {
	s := fmt.Sprintf("N=%d/Q=%d/U=%d", r.nodes, r.pending, r.use)
	switch {
	case r.pending > 0 && r.ownerless:
		s += "/ownerless"
	case r.pending > 0:
		s += "/owned"
	}
	return s
}

// first is loop 1, the first round after a start.
func (r rounds) first(b *testing.B) {
	s := r.snapshot()
	b.ReportAllocs()
	for b.Loop() {
		Decide(s, Memory{}, policy())
	}
}

func BenchmarkR(b *testing.B) {
	for _, r := range []rounds{
		{nodes: 1000, pending: 1000, use: 90}, {nodes: 1000, pending: 1000, use: 90, ownerless: true}, {nodes: 1000, pending: 10000, use: 90},
		{nodes: 1000, use: 40}, {nodes: 5000, pending: 1000, use: 90}, {nodes: 5000, pending: 1000, use: 90, ownerless: true}, {nodes: 5000, use: 40},
		{nodes: 1000, use: 90}, {nodes: 5000, use: 90},
	} {
		b.Run(strings.ReplaceAll(r.String(), " ", "_")+"/first", r.first)
	}
}

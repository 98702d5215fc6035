package plan

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// The R workloads are whole rounds: N nodes (16 CPU, 64 GiB, 110 pods, one zone) in 10
// groups with the label pool=NAME, each node with 30 running pods of 30 ReplicaSets
// that together request U % of it and are safe to evict; Q pending pods, pod i of spec
// s = i mod 10: cpu 2000+100s milli, memory 4096+256s MiB, owned by 10 ReplicaSets or
// by nobody. test/cmd/bench/README.md says what other autoscalers need for them.
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
		p := cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/pending-%06d", i)), UID: cluster.UID(fmt.Sprintf("pending-%06d", i)), Class: class, Created: cluster.At(t0), Unschedulable: cluster.At(t0)}
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
		n.Pods = append(n.Pods, cluster.Pod{Key: key, UID: cluster.UID(key[8:]), Class: k, Node: name, Created: cluster.At(born), Owner: owners[k], SafeToEvict: "true", GracePeriod: 30})
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
	measure(b, func(int) { Decide(s, decision.Memory{}, policy()) })
	b.ReportMetric(cold(func() { Decide(s, decision.Memory{}, policy()) }), "heap-MB")
}

// cold is what a round allocates, in MB: at least its peak heap
// without the objects themselves.
func cold(round func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	round()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / 1e6
}

// later are loops that follow at once: nothing has changed but the time.
func (r rounds) later(b *testing.B) {
	s, e := r.snapshot(), new(Engine)
	before := live()
	m := settled(e, &s)
	measure(b, func(int) {
		s.Now = s.Now.Add(time.Microsecond)
		e.Decide(s, m, policy())
	})
	if !e.Cached() {
		b.Fatal("an idle round was worked out anew")
	}
	kept := float64(live()-before) / 1e6
	b.ReportMetric(kept+cold(func() { e.Decide(s, m, policy()) }), "heap-MB")
	runtime.KeepAlive(e)
	runtime.KeepAlive(s)
}

// live is the heap that is in use.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// event are loops between any two of which one running pod was replaced by another.
func (r rounds) event(b *testing.B) {
	s, e := r.snapshot(), new(Engine)
	m := settled(e, &s)
	measure(b, func(i int) {
		s.Now = s.Now.Add(time.Microsecond)
		n := *s.Nodes[i%len(s.Nodes)]
		n.Pods = slices.Clone(n.Pods)
		n.Pods[3].UID = cluster.UID(fmt.Sprint(i))
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[i%len(s.Nodes)] = &n
		_, m = e.Decide(s, m, policy())
	})
}

// measure runs a round again and again and reports the processor time that one takes,
// that of the garbage collector included, beside the time that passes.
func measure(b *testing.B, round func(i int)) {
	runtime.GC()
	b.ReportAllocs()
	start := cpu(b)
	for i := 0; b.Loop(); i++ {
		round(i)
	}
	b.ReportMetric(float64(cpu(b)-start)/1e6/float64(b.N), "cpu-ms/op")
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settled makes the first three rounds.
func settled(e *Engine, s *cluster.Snapshot) decision.Memory {
	var m decision.Memory
	for range 3 {
		_, m = e.Decide(*s, m, policy())
		s.Now = s.Now.Add(time.Second)
	}
	return m
}

// BenchmarkR has the rows of test/cmd/bench/README.md, and larger ones that show how the
// cost grows.
func BenchmarkR(b *testing.B) {
	for _, n := range []int{1000, 5000, 10000} {
		full, light := rounds{nodes: n, use: 90}, rounds{nodes: n, use: 40}
		b.Run(full.String()+"/first", full.first)
		b.Run(full.String()+"/later", full.later)
		b.Run(full.String()+"/event", full.event)
		b.Run(light.String()+"/first", light.first) // every node is a candidate
		b.Run(light.String()+"/later", light.later)
		b.Run(light.String()+"/event", light.event)
		for _, q := range []int{1000, 10000, 100000} {
			for _, ownerless := range []bool{false, true} {
				r := rounds{nodes: n, pending: q, use: 90, ownerless: ownerless}
				b.Run(r.String()+"/first", r.first)
			}
		}
	}
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// hostname is the label of a node that no other has.
const hostname = "kubernetes.io/hostname"

// packRow is one row of the packing workloads: pods pending pods of specs specs for new
// machines of one group (16 CPU, 64 GiB, 110 pods), beside full nodes.
type packRow struct {
	name              string
	kind              string // generic, anti-host, spread-host, spread-zone
	pods, specs, full int
	peer              int // machines that Cluster Autoscaler buys; 0: it does not place all pods
	most              int // machines that we may buy
}

var packRows = []packRow{
	{"generic-300-1", "generic", 300, 1, 0, 8, 8},
	{"generic-30000-1", "generic", 30000, 1, 0, 750, 750},
	{"generic-30000-10", "generic", 30000, 10, 0, 0, 1131},
	{"generic-3000-300", "generic", 3000, 300, 0, 104, 104},
	{"generic-30000-300", "generic", 30000, 300, 0, 1064, 1042},
	{"generic-30000-300-full1000", "generic", 30000, 300, 1000, 0, 1042},
	{"anti-host-3000-10", "anti-host", 3000, 10, 0, 300, 300},
	{"anti-host-30000-10", "anti-host", 30000, 10, 0, 0, 3000},
	{"spread-host-30000-10", "spread-host", 30000, 10, 0, 0, 1160},
	{"spread-zone-30000-10", "spread-zone", 30000, 10, 0, 0, 1131},
}

// world is the row as a Snapshot.
func (row *packRow) world() cluster.Snapshot {
	a := cluster.Resources{MilliCPU: 16000, Memory: 64 << 30, Pods: 110}
	s := cluster.Snapshot{Now: t0, Groups: []cluster.NodeGroup{{ID: "workers", Max: 100000, Target: row.full, ReadAt: t0,
		Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a, Labels: map[string]string{"topology.kubernetes.io/zone": "zone-a"}}}}}
	for i := range row.specs {
		k := int64(i + 9)
		app := map[string]string{"app": fmt.Sprint("app-", i)}
		c := cluster.PodClass{Namespace: "default", Labels: app, Requests: cluster.Resources{MilliCPU: 100 + 50*((7*k)%19), Memory: (128 + 64*((11*k)%31)) << 20, Pods: 1}}
		own := &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app["app"]}}}}
		switch row.kind {
		case "anti-host":
			c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: hostname, Selector: own, Namespaces: []string{"default"}}}
		case "spread-host":
			c.Spread = []cluster.Spread{{TopologyKey: hostname, MaxSkew: 1, Selector: own}}
		case "spread-zone":
			c.Spread = []cluster.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, Selector: own}}
		}
		s.Classes = append(s.Classes, c)
	}
	s.Classes = append(s.Classes, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": "old"}, Requests: cluster.Resources{MilliCPU: 530, Memory: 1800 << 20, Pods: 1}})
	for i := range row.full {
		addFull(&s, i, a, row.specs)
	}
	for i := range row.pods {
		rs := fmt.Sprint("rs-", i%row.specs)
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/pod-%05d", i)), UID: cluster.UID(fmt.Sprint(i)), Class: i % row.specs, Created: cluster.At(t0), Unschedulable: cluster.At(t0),
			Owner: &cluster.Owner{Kind: "ReplicaSet", Name: rs, UID: cluster.UID(rs)}, GracePeriod: 30})
	}
	return s
}

// addFull adds a node with 30 pods of the last class.
func addFull(s *cluster.Snapshot, i int, a cluster.Resources, class int) {
	id := cluster.InstanceID(fmt.Sprintf("aws:///zone-a/i-%017d", i))
	s.Groups[0].Instances = append(s.Groups[0].Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: t0.Add(-time.Hour)})
	n := &cluster.Node{Name: cluster.NodeName(fmt.Sprintf("node-%04d", i)), UID: cluster.UID(id), ProviderID: string(id), Created: t0.Add(-time.Hour), Capacity: a, Allocatable: a, Ready: cluster.StatusTrue}
	n.Labels = map[string]string{"topology.kubernetes.io/zone": "zone-a", hostname: string(n.Name)}
	for k := range 30 {
		key := fmt.Sprintf("default/old-%04d-%02d", i, k)
		n.Pods = append(n.Pods, cluster.Pod{Key: cluster.PodKey(key), UID: cluster.UID(key), Class: class, Node: n.Name, Created: cluster.At(t0), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: "old", UID: "old"}})
	}
	s.Nodes = append(s.Nodes, n)
}

// bought is how many machines a plan buys, and how many pods have room then.
func bought(plan decision.Plan) (machines, pods int) {
	for _, a := range plan.Actions {
		if g, ok := a.(decision.Grow); ok {
			machines += g.To - g.From
			pods += len(g.Pods) + g.Expected
		}
	}
	for _, h := range plan.Held {
		if h.Rule == decision.RuleRoomOnNode {
			pods += h.Count
		}
	}
	return machines, pods
}

// cpuTime is what this process has used of all cores: on a busy machine it says more
// than the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func packPolicy() decision.Policy {
	p := policy()
	p.MaxNodesTotal = 0
	return p
}

// BenchmarkE measures whole rounds on the packing workloads.
func BenchmarkE(b *testing.B) {
	for i := range packRows {
		row := &packRows[i]
		b.Run(row.name, func(b *testing.B) {
			s, p := row.world(), packPolicy()
			plan, _ := Decide(s, decision.Memory{}, p)
			machines, pods := bought(plan)
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				Decide(s, decision.Memory{}, p)
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(machines), "nodes")
			b.ReportMetric(float64(pods), "pods")
		})
	}
}

// floor is plain first fit decreasing by counts, one bin after the other: what nobody who
// packs by counts can be much faster than.
func floor(row *packRow, classes []cluster.PodClass) (bins int) {
	type spec struct{ cpu, memory, left int64 }
	specs := make([]spec, row.specs)
	for i := range specs {
		q := &classes[i].Requests
		specs[i] = spec{q.MilliCPU, q.Memory, int64(row.pods / row.specs)}
	}
	share := func(s spec) float64 { return float64(s.cpu)/16000 + float64(s.memory)/(64<<30) }
	slices.SortStableFunc(specs, func(a, b spec) int { return cmp.Compare(share(b), share(a)) })
	type room struct{ cpu, memory, pods int64 }
	var open []room
	for i := range specs {
		s := &specs[i]
		for b := 0; s.left > 0; b++ {
			if b == len(open) {
				open = append(open, room{16000, 64 << 30, 110})
			}
			r := &open[b]
			if n := min(s.left, r.cpu/s.cpu, r.memory/s.memory, r.pods); n > 0 {
				r.cpu, r.memory, r.pods, s.left = r.cpu-n*s.cpu, r.memory-n*s.memory, r.pods-n, s.left-n
			}
		}
	}
	return len(open)
}

// BenchmarkFloor measures it on the generic rows that are held against it.
func BenchmarkFloor(b *testing.B) {
	for i := range packRows {
		row := &packRows[i]
		if want := floors[row.name]; want > 0 {
			b.Run(row.name, func(b *testing.B) {
				s := row.world()
				before := cpuTime()
				bins := 0
				for b.Loop() {
					bins = floor(row, s.Classes)
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(bins), "nodes")
			})
		}
	}
}

// floors are how many machines it buys. When the peers were measured it bought 1064 and
// 1131: what is equally large came in another order.
var floors = map[string]int{"generic-30000-300": 1063, "generic-30000-10": 1131}

func TestFloor(t *testing.T) {
	for i := range packRows {
		row := &packRows[i]
		s := row.world()
		if want, ok := floors[row.name]; ok && floor(row, s.Classes) != want {
			t.Errorf("%s: %d machines, want %d", row.name, floor(row, s.Classes), want)
		}
	}
}

// TestPackingRows holds every row against what the peers buy and against its own bound.
func TestPackingRows(t *testing.T) {
	for i := range packRows {
		row := &packRows[i]
		t.Run(row.name, func(t *testing.T) {
			plan, _ := Decide(row.world(), decision.Memory{}, packPolicy())
			machines, pods := bought(plan)
			t.Logf("%d machines for %d pods", machines, pods)
			if pods != row.pods || machines > row.most || row.peer > 0 && machines > row.peer {
				t.Errorf("%d machines for %d of %d pods; at most %d, the peer buys %d\n%.2000s", machines, pods, row.pods, row.most, row.peer, plan)
			}
		})
	}
}

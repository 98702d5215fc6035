package plan

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// BenchmarkGrowth doubles one thing at a time and leaves the others as they are: nodes, pods
// that wait, their classes, node groups, terms on hosts of each class, and machines that are
// upcoming. It reports the steps of each part beside the time.
func BenchmarkGrowth(b *testing.B) {
	base := dear{Seed: 1, PodsPerNode: 10, Classes: 50, Use: 95, Pending: 480, PendingClasses: 24, Large: 30, Groups: 6, Sizes: 6, Zones: 3, Priced: 100, Terms: 1, Owners: 1}
	for _, c := range []struct {
		letter      string
		first, last int
		set         func(d *dear, n int)
	}{
		{"N", 250, 4000, func(d *dear, n int) { d.Nodes, d.Sizes = n, 1 }},
		{"N-pinned", 250, 4000, func(d *dear, n int) {
			d.Nodes, d.Classes, d.PodsPerNode, d.Use, d.Pinned, d.Groups, d.Pending = n, n, 1, 20, 100, 1, 0
		}},
		{"P", 240, 3840, func(d *dear, n int) { d.Pending = n }},
		{"C", 12, 192, func(d *dear, n int) { d.PendingClasses = n }},
		{"G", 3, 48, func(d *dear, n int) { d.Groups, d.Sizes = n, n }},
		{"T", 1, 8, func(d *dear, n int) { d.Hosts, d.Terms = 100, n }},
		{"U", 200, 3200, func(d *dear, n int) { d.Pending, d.Late = n, 100 }},
	} {
		for n := c.first; n <= c.last; n *= 2 {
			d := base
			c.set(&d, n)
			b.Run(fmt.Sprintf("%s=%d", c.letter, n), d.bench)
		}
	}
}

func (d dear) bench(b *testing.B) {
	s, m, p := d.last()
	coming := 0
	for i := range s.Groups {
		coming += s.Groups[i].Target - len(s.Groups[i].Instances)
	}
	b.ReportAllocs()
	var sum bill
	n := 0
	for b.Loop() {
		x := billOf(&s, m, p)
		sum.time += x.time
		sum.steps = x.steps
		n++
	}
	b.ReportMetric(float64(sum.time.Microseconds())/1000/float64(n), "cpu-ms/op")
	b.ReportMetric(float64(coming), "upcoming")
	for i, unit := range []string{"search-steps", "relocation-steps", "consolidation-steps"} {
		b.ReportMetric(float64(sum.steps[round.Parts()[i]]), unit)
	}
}

// BenchmarkOddShapes decides first rounds in which one number is far from what clusters have. None
// may take two seconds of processor time.
func BenchmarkOddShapes(b *testing.B) {
	for _, c := range []struct {
		name string
		dear
	}{
		{"200-groups-200-classes", dear{Pending: 2_000, PendingClasses: 200, Groups: 200, Sizes: 20}},
		{"5000-nodes-5000-specs", dear{Nodes: 5_000, PodsPerNode: 30, Classes: 300, Use: 90, Pending: 5_000, PendingClasses: 5_000, Groups: 10, Sizes: 5}},
		{"2000-terms-on-hosts", dear{Pending: 4_000, PendingClasses: 1_000, Groups: 12, Sizes: 12, Hosts: 100, Terms: 2}},
		{"3900-classes-on-hosts-1500-nodes", dear{Nodes: 1_500, PodsPerNode: 3, Classes: 30, Use: 40, Pending: 3_900, PendingClasses: 3_900, Groups: 4, Sizes: 4, Hosts: 100, Terms: 1}},
		{"50-zones", dear{Nodes: 500, PodsPerNode: 30, Classes: 50, Use: 90, Pending: 3_000, PendingClasses: 60, Groups: 100, Sizes: 2, Zones: 50, Spread: 100, Terms: 2}},
		{"5000-nodes-5000-classes-8-terms", dear{Nodes: 5_000, PodsPerNode: 3, Classes: 30, Use: 40, Pending: 5_000, PendingClasses: 5_000, Groups: 4, Sizes: 4, Hosts: 100, Terms: 8}},
		{"2000-running-classes-8-terms", dear{Nodes: 5_000, PodsPerNode: 48, Classes: 2_000, Use: 90, Pending: 500, PendingClasses: 500, Groups: 4, Sizes: 4, Hosts: 100, Terms: 8}},
		{"terms-on-hosts-in-zones", dear{Nodes: 700, Use: 50, Pending: 30_000, PendingClasses: 1_074, Large: 100, Groups: 8, Sizes: 3, Zones: 9, Hosts: 100, Spread: 50, Terms: 2, Late: 5_000, Expander: 3}},
		{"5000-pinned-classes-400-groups", dear{Nodes: 5_000, PodsPerNode: 30, Classes: 5_000, Use: 21, Pending: 30_000, PendingClasses: 5_000, Large: 100, Groups: 400, Sizes: 14, Zones: 41, Taints: 100, Spread: 25, Affinity: 100, Pinned: 69, Terms: 2, Late: 5_000, Expander: 1}},
		{"100000-specs", dear{Pending: 100_000, PendingClasses: 100_000, Groups: 12, Sizes: 12}},
	} {
		d := c.dear
		d.Seed, d.Large, d.Priced, d.Owners, d.Zones = 1, max(d.Large, 30), 100, 1, max(d.Zones, 3)
		b.Run(c.name, d.bench)
	}
}

// odd is what EKS leaves allocatable of a machine of 16 CPU and 64 GiB.
var odd = cluster.Resources{MilliCPU: 15890, Memory: 60<<30 + 512<<20, Pods: 110}

// oddTwin is a world whose machines have that room in place of round numbers.
func oddTwin(s cluster.Snapshot) cluster.Snapshot {
	for i := range s.Groups {
		s.Groups[i].Template.Allocatable = odd
	}
	for _, n := range s.Nodes {
		n.Allocatable = odd
	}
	return s
}

// BenchmarkTwins decides rows of round machines and their twins of odd ones.
func BenchmarkTwins(b *testing.B) {
	run := func(name string, world func() cluster.Snapshot, p decision.Policy) {
		for _, twin := range []bool{false, true} {
			s := world()
			if twin {
				s = oddTwin(s)
			}
			b.Run(fmt.Sprintf("%s/odd=%t", name, twin), func(b *testing.B) { measure(b, func(int) { Decide(s, decision.Memory{}, p) }) })
		}
	}
	for i := range packRows {
		if row := &packRows[i]; row.pods*row.specs > 30_000 {
			run(row.name, row.world, packPolicy())
		}
	}
	for _, r := range []rounds{{nodes: 1000, pending: 1000, use: 90}, {nodes: 1000, pending: 10000, use: 90}, {nodes: 5000, pending: 1000, use: 90}, {nodes: 1000, use: 40}} {
		run(r.String(), r.snapshot, policy())
	}
}

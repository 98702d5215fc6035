package fit

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func app(name string) *cluster.Selector {
	return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{name}}}}
}

// benchClasses are n applications; each keeps apart on hostname, spreads over zones
// and over hostnames.
func benchClasses(n int) []cluster.PodClass {
	list := make([]cluster.PodClass, n)
	for i := range list {
		name := fmt.Sprint("app-", i)
		list[i] = cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": name, "pod-template-hash": name}}
		switch i % 3 {
		case 0:
			list[i].PodAntiAffinity = []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Selector: app(name), Namespaces: []string{"default"}}}
		case 1:
			list[i].Spread = []cluster.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, Selector: app(name)}}
		case 2:
			list[i].Spread = []cluster.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, Selector: app(name)}}
		}
	}
	return list
}

func benchNodes(s *State, n int) {
	for i := range n {
		name := fmt.Sprint("node-", i)
		s.AddNode(&NodeInfo{Name: cluster.NodeName(name), Labels: map[string]string{
			"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3), "kubernetes.io/os": "linux"}}, nil)
	}
}

func benchState(classes, nodes int) *State {
	s := NewState(benchClasses(classes), nil)
	benchNodes(s, nodes)
	return s
}

func BenchmarkPasses(b *testing.B) {
	s := benchState(9, 5000)
	for i := range 45000 {
		s.Put(i%9, i%5000, 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Passes(i%9, i%5000)
	}
}

func BenchmarkMost(b *testing.B) {
	s := benchState(9, 5000)
	for i := range 45000 {
		s.Put(i%9, i%5000, 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.MaxFit(i%9, i%5000)
	}
}

func BenchmarkPut(b *testing.B) {
	s := benchState(9, 5000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Put(i%9, i%5000, 1)
		if i >= 100 {
			s.Put((i-100)%9, (i-100)%5000, -1)
		}
	}
}

// BenchmarkWhatIf adds a node, fills it, and forgets it.
func BenchmarkWhatIf(b *testing.B) {
	s := benchState(9, 5000)
	shape := &NodeInfo{Labels: map[string]string{"topology.kubernetes.io/zone": "zone-1"}}
	s.AddNode(shape, nil)
	b.ReportAllocs()
	for b.Loop() {
		mark := s.Mark()
		node := s.AddNode(shape, nil)
		for class := range 9 {
			if s.MaxFit(class, node) > 0 {
				s.Put(class, node, 1)
			}
		}
		s.Rollback(mark)
	}
}

// BenchmarkApart places 30,000 pods of ten classes that keep apart on hostname, a
// node for every round of ten.
func BenchmarkApart(b *testing.B) {
	classes := benchClasses(30)
	s := NewState(classes, nil)
	benchNodes(s, 100)
	shape := &NodeInfo{Labels: map[string]string{"topology.kubernetes.io/zone": "zone-1"}}
	b.ReportAllocs()
	for b.Loop() {
		mark := s.Mark()
		for range 3000 {
			node := s.AddNode(shape, nil)
			for class := 0; class < 30; class += 3 {
				s.Put(class, node, s.MaxFit(class, node))
			}
		}
		s.Rollback(mark)
	}
}

// replicas are the pods of n StatefulSets of 300: a class each, for its name and its
// volume.
func replicas(n int) []cluster.PodClass {
	list := make([]cluster.PodClass, 0, n*300)
	for i := range n {
		for j := range 300 {
			name := fmt.Sprint("set-", i)
			list = append(list, cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": name, "statefulset.kubernetes.io/pod-name": fmt.Sprint(name, "-", j)},
				PodAntiAffinity: []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Selector: app(name), Namespaces: []string{"default"}}},
				Volumes: []cluster.Volume{{Claim: fmt.Sprint("default/data-", name, "-", j), Driver: "ebs.csi.aws.com", Handle: fmt.Sprint("vol-", i, "-", j),
					Affinity: []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "topology.kubernetes.io/zone", Operator: "In", Values: []string{"zone-1"}}}}}}}})
		}
	}
	return list
}

func BenchmarkNewStateReplicas(b *testing.B) {
	classes := replicas(100)
	b.ReportAllocs()
	for b.Loop() {
		NewState(classes, nil)
	}
}

func BenchmarkNewState(b *testing.B) {
	for _, n := range []int{10, 300, 30000} {
		classes := benchClasses(n)
		b.Run(fmt.Sprint(n, " classes"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewState(classes, nil)
			}
		})
	}
}

// BenchmarkFill is a State of a whole cluster: 5,000 nodes, 150,000 pods.
func BenchmarkFill(b *testing.B) {
	classes := benchClasses(300)
	shapes := make([]*NodeInfo, 5000)
	for i := range shapes {
		name := fmt.Sprint("node-", i)
		shapes[i] = &NodeInfo{Name: cluster.NodeName(name), Labels: map[string]string{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3)}}
	}
	b.ReportAllocs()
	for b.Loop() {
		s := NewState(classes, nil)
		for _, shape := range shapes {
			s.AddNode(shape, nil)
		}
		for i := range 150000 {
			s.Put(i%300, i%5000, 1)
		}
	}
}

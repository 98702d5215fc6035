package schedsim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// world is a Sim over replicated classes and machines in three zones.
func world(classes, nodes int) (*Sim, []cluster.PodClass) {
	rows := make([]cluster.PodClass, classes)
	cfg := Config{Classes: rows, Replicated: make([]bool, classes)}
	for i := range rows {
		rows[i] = cluster.PodClass{Namespace: "n", Labels: map[string]string{"app": fmt.Sprint(i)},
			Requests: cluster.Resources{MilliCPU: int64(100 + 50*i), Memory: int64(256+100*i) << 20, Pods: 1}}
		cfg.Replicated[i] = true
		cfg.Binds = append(cfg.Binds, i)
	}
	cfg.Dimensions = fit.NewDimensions(rows)
	s := New(cfg)
	infos := make([]*fit.NodeInfo, 3)
	for z := range infos {
		infos[z] = &fit.NodeInfo{Labels: map[string]string{labelZone: fmt.Sprint(z)}}
	}
	for i := range nodes {
		a := cluster.Resources{MilliCPU: 15890, Memory: 121 << 29, Pods: 110}
		room := make([]int64, cfg.Dimensions.Len())
		cfg.Dimensions.Capacity(room, a)
		s.AddNode(Node{Info: infos[i%3], Allocatable: a, Room: room})
	}
	return s, rows
}

// TestSpreadsOverZones: the system's default constraints put equal numbers in the zones.
func TestSpreadsOverZones(t *testing.T) {
	s, _ := world(1, 9)
	m := s.Mark()
	if n := s.Bind(0, 90); n != 90 {
		t.Fatalf("%d of 90 bound", n)
	}
	var zones [3]int
	for _, p := range s.Placed(m) {
		zones[p.Node%3] += p.Count
	}
	if zones != [3]int{30, 30, 30} {
		t.Errorf("by zone %v", zones)
	}
}

// TestRollback: a trial that was taken back leaves no trace in rooms and scores, and the
// same calls with the same seeds bind alike.
func TestRollback(t *testing.T) {
	bind := func() []Placement {
		s, rows := world(6, 12)
		r := rand.New(rand.NewPCG(1, 2))
		first := s.Mark()
		facts := func() (out string) {
			for class := range rows {
				out += fmt.Sprint(s.Best(class))
			}
			for n := range s.Nodes() {
				out += fmt.Sprint(s.Room(n))
			}
			return out
		}
		for step := range 20 {
			before := facts()
			m := s.Mark()
			s.Seed(uint64(step + 1))
			s.AddNode(Node{Info: s.shapes[step%3].info, Allocatable: cluster.Resources{MilliCPU: 8000, Memory: 1 << 34}, Room: s.Room(0)})
			for range 5 {
				s.Bind(r.IntN(len(rows)), 1+r.IntN(9))
			}
			s.Rollback(m)
			if after := facts(); after != before {
				t.Fatalf("step %d: %s before, %s after", step, before, after)
			}
			s.Bind(step%len(rows), 5)
		}
		return slices.Clone(s.Placed(first))
	}
	if !slices.Equal(bind(), bind()) {
		t.Error("the same calls bind in two ways")
	}
}

// TestBindCostsSetsAndNotNodes counts steps: 30,000 alike pods on ever more nodes.
func TestBindCostsSetsAndNotNodes(t *testing.T) {
	for _, nodes := range []int{300, 1200} {
		s, _ := world(1, nodes)
		s.Bind(0, 30000)
		if per := s.Steps / 30000; per > 40 {
			t.Errorf("%d nodes: %d steps a pod", nodes, per)
		}
		t.Logf("%d nodes: %d steps", nodes, s.Steps)
	}
}

// TestLimit: Bind ends when the steps are used up.
func TestLimit(t *testing.T) {
	s, _ := world(1, 3)
	s.Limit = s.Steps + 10
	n := s.Bind(0, 30)
	if n == 0 || n == 30 || !s.Spent() {
		t.Errorf("%d of 30 bound in %d steps of %d", n, s.Steps, s.Limit)
	}
	s.Steps = s.Limit - 1
	if s.Spent() {
		t.Errorf("%d steps of %d are all", s.Steps, s.Limit)
	}
	if s.Steps = s.Limit; !s.Spent() {
		t.Errorf("%d steps of %d are not all", s.Steps, s.Limit)
	}
	if s.Limit = 0; s.Spent() || s.Bind(0, 30-n) != 30-n {
		t.Error("without a limit not all are bound")
	}
}

// TestHostnameOfTwo: of two nodes that claim one hostname, one takes a pod of a class that keeps off its like.
func TestHostnameOfTwo(t *testing.T) {
	rows := []cluster.PodClass{{Namespace: "n", Labels: map[string]string{"app": "x"}, Requests: cluster.Resources{MilliCPU: 1, Pods: 1},
		PodAntiAffinity: []cluster.PodTerm{{TopologyKey: labelHostname, Namespaces: []string{"n"}, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"x"}}}}}}}}
	for seed := range uint64(20) {
		s := New(Config{Classes: rows, Dimensions: fit.NewDimensions(rows), State: fit.NewState(rows, nil), Binds: []int{0}})
		for name, host := range []string{"own", "one", "one"} {
			s.AddNode(Node{Info: &fit.NodeInfo{Name: cluster.NodeName(fmt.Sprint(name)), Labels: map[string]string{labelHostname: host}}, Allocatable: cluster.Resources{MilliCPU: 9, Memory: 9, Pods: 9}, Room: slices.Repeat([]int64{9}, s.cfg.Dimensions.Len())})
		}
		s.Seed(seed)
		if n := s.Bind(0, 3); n != 2 {
			t.Errorf("seed %d: %d bound, want 2", seed, n)
		}
	}
}

// TestEligibility: the pods of which nodes a soft constraint counts.
func TestEligibility(t *testing.T) {
	class := &cluster.PodClass{NodeSelector: map[string]string{"disk": "0"}}
	other := &fit.NodeInfo{Labels: map[string]string{"disk": "1"}}
	tainted := &fit.NodeInfo{Labels: map[string]string{"disk": "0"}, Taints: []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}}
	for _, c := range []struct {
		what  string
		e     eligibility
		shape shape
		want  bool
	}{
		{"all that is asked for", eligibility{affinity: true, taints: true, hostname: true, keys: []int32{0}}, shape{info: &fit.NodeInfo{Labels: tainted.Labels}, hostname: true, domains: []int32{0}}, true},
		{"nothing is asked for", eligibility{}, shape{info: other, domains: []int32{-1}}, true},
		{"no hostname", eligibility{hostname: true}, shape{info: other}, false},
		{"no zone", eligibility{keys: []int32{0}}, shape{info: other, domains: []int32{-1}}, false},
		{"not selected", eligibility{affinity: true}, shape{info: other}, false},
		{"not selected, which is not asked", eligibility{taints: true}, shape{info: other}, true},
		{"tainted", eligibility{taints: true}, shape{info: tainted}, false},
		{"tainted, which is not asked", eligibility{affinity: true}, shape{info: tainted}, true},
	} {
		c.e.class = class
		if got := c.e.holds(&c.shape); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// TestOwnedTerm: all classes that the affinity of a running pod selects are drawn to its zone.
func TestOwnedTerm(t *testing.T) {
	rows := make([]cluster.PodClass, 3)
	for i := range rows {
		rows[i] = cluster.PodClass{Namespace: "n", Labels: map[string]string{"app": "x", "class": fmt.Sprint(i)}, Requests: cluster.Resources{Pods: 1}}
	}
	rows[0].PodAffinity = []cluster.PodTerm{{TopologyKey: labelZone, Namespaces: []string{"n"}, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"x"}}}}}}
	s := New(Config{Classes: rows, Dimensions: fit.NewDimensions(rows), Binds: []int{1, 2}})
	for _, zone := range []string{"a", "b", "b"} {
		s.AddNode(Node{Info: &fit.NodeInfo{Labels: map[string]string{labelZone: zone}}, Room: slices.Repeat([]int64{9}, s.cfg.Dimensions.Len())})
	}
	s.Put(0, 1, 1, false)
	for class := 1; class < 3; class++ {
		if got := s.Best(class); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("class %d: best %v, want [1 2]", class, got)
		}
	}
}

// TestDraw: nothing is drawn without a seed, nor where there is one to draw.
func TestDraw(t *testing.T) {
	none, d, drawn := draw(0), draw(1), [3]int{}
	for range 100 {
		if none.below(9) != 0 || none != 0 {
			t.Fatal("drawn without a seed")
		}
		if before := d; d.below(1) != 0 || d != before {
			t.Fatal("one of one is drawn")
		}
		drawn[d.below(2)]++
	}
	if drawn[0] < 20 || drawn[1] < 20 || drawn[2] > 0 {
		t.Errorf("of two drawn %v", drawn)
	}
}

// TestTables: what is kept in tables is as what is worked out.
func TestTables(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		if got, want := spreadWeight(n), math.Log(float64(n+2)); got != want {
			t.Errorf("the weight of %d domains is %v, want %v", n, got, want)
		}
	}
	var c nodeCounts
	c.add(200, 3)
	for node, want := range map[int]int32{0: 0, 63: 0, 199: 0, 200: 3, 256: 0, 900: 0} {
		if got := c.at(node); got != want {
			t.Errorf("node %d counts %d, want %d", node, got, want)
		}
	}
}

func BenchmarkBind(b *testing.B) {
	for b.Loop() {
		s, _ := world(1, 300)
		s.Bind(0, 30000)
	}
}

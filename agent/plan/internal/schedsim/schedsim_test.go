package schedsim

import (
	"fmt"
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

func BenchmarkBind(b *testing.B) {
	for b.Loop() {
		s, _ := world(1, 300)
		s.Bind(0, 30000)
	}
}

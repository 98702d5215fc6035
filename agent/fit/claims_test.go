package fit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

func gpus(n, taken int) *cluster.Devices {
	d := &cluster.Devices{}
	for i := range n {
		d.Devices = append(d.Devices, cluster.Device{Driver: "gpu", Name: fmt.Sprint(i), Matches: []string{"gpu"}, Taken: i < taken})
	}
	return d
}

func claiming(n int) cluster.PodClass {
	return cluster.PodClass{Claims: []cluster.DeviceClaim{{Requests: []cluster.DeviceRequest{{Name: "r", Alternatives: []cluster.DeviceAsk{{Selectors: []string{"gpu"}, Count: n}}}}}}}
}

// TestClaims: devices are taken by pods that come, not by those that are there, and what-ifs give them back.
func TestClaims(t *testing.T) {
	pinned := cluster.PodClass{Claims: []cluster.DeviceClaim{{On: []cluster.NodeTerm{{Fields: []cluster.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{"b"}}}}}}}}
	s := NewState([]cluster.PodClass{claiming(1), claiming(2), pinned, {}}, nil)
	a := s.AddNode(&NodeInfo{Name: "a", Devices: gpus(4, 1)}, nil)
	b := s.AddNode(&NodeInfo{Name: "b"}, nil)
	most := func(want ...int) {
		t.Helper()
		got := []int{s.MaxFit(0, a), s.MaxFit(1, a), s.MaxFit(0, b), s.MaxFit(2, a)}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	most(3, 1, 0, 0)
	s.PutBound(0, a, 1)
	most(3, 1, 0, 0)
	s.PutTerminating(0, a, 1)
	most(3, 1, 0, 0)
	m := s.Mark()
	s.Put(1, a, 1)
	most(1, 0, 0, 0)
	n := s.Mark()
	s.Put(0, a, 1)
	next := s.AddNode(&NodeInfo{Devices: gpus(8, 0)}, nil)
	if got := s.MaxFit(1, next); got != 4 {
		t.Errorf("%d pairs on a new machine", got)
	}
	most(0, 0, 0, 0)
	s.Rollback(n)
	most(1, 0, 0, 0)
	s.Rollback(m)
	most(3, 1, 0, 0)
	if !s.Constrained(0) || s.Constrained(3) || !s.Passes(2, b) || s.MaxFit(2, b) < 100 {
		t.Error("who is constrained, and where an allocated claim can be used")
	}
	for node, want := range map[int]string{b: "cannot allocate all claims", s.AddNode(&NodeInfo{}, nil): wordsUnknown} {
		if rule, words := s.Refused(0, node); rule != RuleDevices || words != want {
			t.Errorf("%s %s, want %s", rule, words, want)
		}
	}
	if _, words := s.Refused(2, a); words != wordsAllocated {
		t.Error(words)
	}
}

// TestClaimsRollback: after any nest of what-ifs every node has what it had.
func TestClaimsRollback(t *testing.T) {
	seed := drawn.Seed(t)
	for i := range 200 * drawn.Times(t) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		s := NewState([]cluster.PodClass{claiming(1), claiming(2), {}}, nil)
		for k := range 3 {
			s.AddNode(&NodeInfo{Name: cluster.NodeName(fmt.Sprint(k)), Devices: gpus(r.IntN(6), r.IntN(3))}, nil)
		}
		type frame struct {
			mark int
			has  string
		}
		var open []frame
		for range 40 {
			switch k := r.IntN(6); {
			case k == 0:
				open = append(open, frame{s.Mark(), fmt.Sprint(s.has)})
			case k == 1 && len(open) > 0:
				last := open[len(open)-1]
				open = open[:len(open)-1]
				if s.Rollback(last.mark); fmt.Sprint(s.has) != last.has {
					t.Fatalf("world %d: %v, want %v", i, s.has, last.has)
				}
			case k == 2:
				s.AddNode(&NodeInfo{Devices: gpus(2, 0)}, nil)
			case k == 3:
				s.PutBound(r.IntN(3), r.IntN(3), 1)
			default:
				s.Put(r.IntN(3), r.IntN(3), r.IntN(4)-1)
			}
		}
	}
}

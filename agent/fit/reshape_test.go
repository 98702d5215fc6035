package fit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestReshape: a node that is cordoned or taken away later is as one that was so from the beginning, and Rollback undoes it.
func TestReshape(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		classes := make([]cluster.PodClass, 3)
		for i := range classes {
			classes[i] = cluster.PodClass{Namespace: "n", Labels: map[string]string{"app": pick(r, "a", "b")}}
			for _, key := range topologyKeys[:2] {
				if r.IntN(3) > 0 {
					classes[i].Spread = append(classes[i].Spread, cluster.Spread{TopologyKey: key, MaxSkew: 1 + r.IntN(2), MinDomains: r.IntN(4), HonorTaints: r.IntN(2) == 0,
						Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{pick(r, "a", "b")}}}}})
				}
			}
			if r.IntN(4) == 0 {
				classes[i].Tolerations = []cluster.Toleration{{Operator: "Exists"}}
			}
		}
		shapes := make([]*NodeInfo, 4)
		pods := make([][3]int, len(shapes)) // by node and class
		for n := range shapes {
			name := fmt.Sprint("n", n)
			shapes[n] = &NodeInfo{Name: cluster.NodeName(name), Labels: map[string]string{topologyKeys[0]: name, topologyKeys[1]: pick(r, "x", "y")}}
			for c := range classes {
				pods[n][c] = r.IntN(3)
			}
		}
		const changed = 1
		build := func(shape *NodeInfo) *State {
			s := NewState(classes, nil)
			for n := range shapes {
				switch {
				case n != changed:
					s.AddNode(shapes[n], nil)
				case shape == nil:
					continue
				default:
					s.AddNode(shape, nil)
				}
				for c, count := range pods[n] {
					s.Put(c, s.lastNode(), count)
				}
			}
			return s
		}
		s := build(shapes[changed])
		verdicts := func(s *State, without bool) (out string) {
			at := 0
			for n := range shapes {
				if n == changed {
					if !without {
						at++
					}
					continue
				}
				for c := range classes {
					_, words := s.Refused(c, at)
					out += words + ";"
				}
				at++
			}
			return out
		}
		before, mark := verdicts(s, false), s.Mark()
		for _, shape := range []*NodeInfo{shapes[changed].Cordoned(), nil} {
			kept := pods[changed]
			for c, count := range kept {
				s.Put(c, changed, -count)
			}
			s.Reshape(changed, shape)
			if shape != nil {
				for c, count := range kept {
					s.Put(c, changed, count)
				}
			}
			if got, want := verdicts(s, false), verdicts(build(shape), shape == nil); got != want {
				t.Fatalf("seed %d, node gone %v: %s\nwant %s\n%+v\n%v", seed, shape == nil, got, want, classes, pods)
			}
			if shape == nil {
				break
			}
		}
		s.Rollback(mark)
		if got := verdicts(s, false); got != before {
			t.Fatalf("seed %d, rolled back: %s\nwant %s", seed, got, before)
		}
	}
}

func (s *State) lastNode() int { return len(s.shapeOf) - 1 }

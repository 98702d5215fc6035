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

// TestCounted: which nodes a spread constraint counts, and whether it still does when they are cordoned.
func TestCounted(t *testing.T) {
	spread := func(change func(*cluster.PodClass, *cluster.Spread)) cluster.PodClass {
		c := evenly(cluster.Spread{TopologyKey: zoneKey, MaxSkew: 1, Selector: in("app", "me")})
		change(&c, &c.Spread[0])
		return c
	}
	elsewhere := func(c *cluster.PodClass) { c.NodeSelector = map[string]string{zoneKey: "z"} }
	for name, c := range map[string]struct {
		class             cluster.PodClass
		node              int
		counted, cordoned bool
	}{
		"a node":                           {spread(func(*cluster.PodClass, *cluster.Spread) {}), a1, true, true},
		"one without the label":            {spread(func(*cluster.PodClass, *cluster.Spread) {}), bare, false, false},
		"one that it does not select":      {spread(func(c *cluster.PodClass, _ *cluster.Spread) { elsewhere(c) }), a1, false, false},
		"and its selector is ignored":      {spread(func(c *cluster.PodClass, s *cluster.Spread) { elsewhere(c); s.IgnoreNodeAffinity = true }), a1, true, true},
		"a tainted node":                   {spread(func(*cluster.PodClass, *cluster.Spread) {}), b1, true, true},
		"and its taints are honoured":      {spread(func(_ *cluster.PodClass, s *cluster.Spread) { s.HonorTaints = true }), b1, false, false},
		"a node whose taints are honoured": {spread(func(_ *cluster.PodClass, s *cluster.Spread) { s.HonorTaints = true }), a1, true, false},
		"and tolerated": {spread(func(c *cluster.PodClass, s *cluster.Spread) {
			s.HonorTaints, c.Tolerations = true, []cluster.Toleration{{Operator: "Exists"}}
		}), b1, true, true},
	} {
		shape := tableNodes()[c.node]
		if counted, cordoned := Counted(&c.class, &c.class.Spread[0], shape), CountsCordoned(&c.class, shape); counted != c.counted || cordoned != c.cordoned {
			t.Errorf("%s: counted %v, cordoned %v", name, counted, cordoned)
		}
	}
	s := NewState([]cluster.PodClass{spread(func(*cluster.PodClass, *cluster.Spread) {}), named("db")}, nil)
	for _, shape := range tableNodes() {
		s.AddNode(shape, nil)
	}
	s.Put(0, a1, 2)
	s.Put(0, a2, 1)
	s.Put(0, template, 1)
	occupied := ""
	for class := range 2 {
		s.Occupied(class, func(key string, domains int) { occupied += fmt.Sprintf("%s %d;", key, domains) })
	}
	if occupied != zoneKey+" 2;" {
		t.Errorf("occupied: %s", occupied)
	}
}

// TestHostnamesOfTemplates: each template's node is a host of its own, also after nodes have been taken back.
func TestHostnamesOfTemplates(t *testing.T) {
	me := avoids(near(hostKey, in("app", "me")))
	known, unknown, template := &NodeInfo{Name: "a", Labels: map[string]string{hostKey: "a"}}, &NodeInfo{Name: "b", Labels: map[string]string{hostKey: "b"}}, &NodeInfo{}
	for name, c := range map[string]struct{ before, tried, after []*NodeInfo }{
		"a template":                {nil, []*NodeInfo{template}, []*NodeInfo{template, template}},
		"a node":                    {nil, []*NodeInfo{unknown}, []*NodeInfo{template, unknown}},
		"both":                      {nil, []*NodeInfo{unknown, template}, []*NodeInfo{template, unknown, template}},
		"in the other order":        {nil, []*NodeInfo{template, unknown}, []*NodeInfo{template, unknown, template}},
		"a node beside a template":  {[]*NodeInfo{known, template}, []*NodeInfo{known}, []*NodeInfo{template}},
		"a node without a hostname": {[]*NodeInfo{template}, []*NodeInfo{{Name: "c"}}, []*NodeInfo{template, unknown}},
	} {
		s := NewState([]cluster.PodClass{me}, nil)
		var there []*NodeInfo
		add := func(shapes []*NodeInfo) {
			for _, shape := range shapes {
				node := s.AddNode(shape, nil)
				free := true
				for _, o := range there {
					free = free && (o != shape || shape == template)
				}
				if s.Passes(0, node) != free {
					t.Errorf("%s: node %d %q is another's host: %v", name, node, shape.Name, free)
				}
				s.Put(0, node, 1)
				there = append(there, shape)
			}
		}
		add(c.before)
		mark, was := s.Mark(), len(there)
		add(c.tried)
		s.Rollback(mark)
		there = there[:was]
		add(c.after)
	}
}

// TestFarDomains: domains beyond the first page of a counter, of which the first counts nothing.
func TestFarDomains(t *testing.T) {
	me := evenly(cluster.Spread{TopologyKey: hostKey, MaxSkew: 1, Selector: in("app", "me")})
	me.NodeSelector = map[string]string{"disk": "ssd"}
	s := NewState([]cluster.PodClass{me}, nil)
	for i := range 3 << pageBits {
		labels := map[string]string{hostKey: fmt.Sprint(i)}
		if i >= 2<<pageBits {
			labels["disk"] = "ssd"
		}
		s.AddNode(&NodeInfo{Name: cluster.NodeName(fmt.Sprint(i)), Labels: labels}, nil)
	}
	const last = 3<<pageBits - 1
	for i := 2 << pageBits; i < last; i++ {
		s.Put(0, i, lowCounts+1)
	}
	s.Put(0, last, lowCounts)
	if s.Passes(0, last-1) || !s.Passes(0, last) || !s.Passes(0, 0) {
		t.Errorf("above the others %v, below them %v, where nothing counts %v", s.Passes(0, last-1), s.Passes(0, last), s.Passes(0, 0))
	}
	if got := s.MaxFit(0, last); got != 2 {
		t.Errorf("%d more fit where one less is than elsewhere", got)
	}
}

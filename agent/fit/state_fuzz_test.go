package fit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func someLabels(r *rand.Rand, keys []string, odds int) map[string]string {
	m := map[string]string{}
	for _, k := range keys {
		if r.IntN(odds) > 0 {
			m[k] = pick(r, "a", "b", "c")
		}
	}
	return m
}

func someSelector(r *rand.Rand, keys ...string) *cluster.Selector {
	if r.IntN(12) == 0 {
		return nil
	}
	s := &cluster.Selector{}
	for range r.IntN(3) {
		q := cluster.Requirement{Key: pick(r, keys...), Operator: pick(r, "In", "In", "In", "NotIn", "Exists", "DoesNotExist")}
		if q.Operator == "In" || q.Operator == "NotIn" {
			q.Values = pick(r, []string{"a"}, []string{"b"}, []string{"a", "b"}, []string{"c", "c"})
		}
		s.Requirements = append(s.Requirements, q)
	}
	return s
}

// requirements are those of a selector that may be nil.
func requirements(s *cluster.Selector) []cluster.Requirement {
	if s == nil {
		return nil
	}
	return s.Requirements
}

var topologyKeys = []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"}

func someTerms(r *rand.Rand) (list []cluster.PodTerm) {
	for range r.IntN(3) {
		t := cluster.PodTerm{TopologyKey: pick(r, topologyKeys...), Selector: someSelector(r, "app", "tier")}
		switch r.IntN(4) {
		case 0:
			t.Namespaces = pick(r, []string{"n1"}, []string{"n1", "n2"}, []string{"unknown"})
		case 1:
			t.NamespaceSelector = someSelector(r, "team", "env")
		}
		list = append(list, t)
	}
	return list
}

func someVolumes(r *rand.Rand) (list []cluster.Volume) {
	for range r.IntN(3) {
		v := cluster.Volume{Claim: fmt.Sprint("n/", r.IntN(3))}
		zone := []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "topology.kubernetes.io/zone", Operator: "In", Values: pick(r, []string{"a"}, []string{"b", "c"})}}}}
		switch r.IntN(8) {
		case 0:
			v.OnePod = true
		case 1:
			v.Affinity = zone
		case 2:
			v.Topologies = zone
		case 3:
			key := pick(r, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region")
			v.Zones = []cluster.Requirement{{Key: key, Operator: "In", Values: pick(r, []string{"a"}, []string{"a__b"}, []string{"b", "c"})}}
		case 4:
			if r.IntN(3) == 0 {
				v.Refused = "persistentvolumeclaim \"x\" not found"
			}
		default:
			v.Driver, v.Handle = pick(r, "ebs", "nfs"), pick(r, "1", "2", "3")
		}
		list = append(list, v)
	}
	return list
}

// someTied is a class of the features that State judges. Each is left out often
// enough that the later ones get their say.
func someTied(r *rand.Rand) cluster.PodClass {
	c := cluster.PodClass{Namespace: pick(r, "n1", "n2", "unknown"), Labels: someLabels(r, []string{"app", "tier"}, 5)}
	if r.IntN(3) == 0 {
		c.PodAffinity = someTerms(r)
	}
	if r.IntN(2) == 0 {
		c.PodAntiAffinity = someTerms(r)
	}
	if r.IntN(3) == 0 {
		c.Volumes = someVolumes(r)
	}
	if r.IntN(4) == 0 {
		c.NodeSelector = someLabels(r, []string{"rack", "topology.kubernetes.io/zone"}, 3)
	}
	if r.IntN(4) == 0 {
		for range r.IntN(3) {
			c.Affinity = append(c.Affinity, cluster.NodeTerm{Labels: append(requirements(someSelector(r, "rack", "topology.kubernetes.io/zone")), requirements(someSelector(r, "rack"))...)})
		}
	}
	if r.IntN(4) == 0 {
		c.Tolerations = []cluster.Toleration{{Key: "team", Operator: "Exists"}}
	}
	for range r.IntN(3) {
		c.Spread = append(c.Spread, cluster.Spread{TopologyKey: pick(r, topologyKeys...), MaxSkew: 1 + r.IntN(3), MinDomains: r.IntN(5),
			Selector: someSelector(r, "app", "tier"), IgnoreNodeAffinity: r.IntN(3) == 0, HonorTaints: r.IntN(3) == 0})
	}
	return c
}

func someShape(r *rand.Rand, name string) *NodeInfo {
	s := &NodeInfo{Name: cluster.NodeName(name), Labels: someLabels(r, []string{"topology.kubernetes.io/zone", "rack", "failure-domain.beta.kubernetes.io/zone"}, 6)}
	if name != "" && r.IntN(8) > 0 {
		s.Labels["kubernetes.io/hostname"] = name
	}
	if r.IntN(4) == 0 {
		s.Taints = []cluster.Taint{{Key: "team", Effect: "NoSchedule"}}
	}
	return s
}

// beside is a State and the naive judge of the same world.
type beside struct {
	t *testing.T
	w *naive
	s *State
}

func (b *beside) addNode(shape *NodeInfo, limits map[string]int64) {
	b.w.nodes = append(b.w.nodes, naiveNodeOf(shape, limits, len(b.w.nodes)))
	if got := b.s.AddNode(shape, limits); got != len(b.w.nodes)-1 {
		b.t.Fatalf("node %d, want %d", got, len(b.w.nodes)-1)
	}
}

func (b *beside) put(p naivePod) {
	b.w.pods = append(b.w.pods, p)
	b.tell(p, 1)
}

func (b *beside) take(i int) {
	b.tell(b.w.pods[i], -1)
	b.w.pods = slices.Delete(slices.Clone(b.w.pods), i, i+1)
}

func (b *beside) tell(p naivePod, n int) {
	if p.leaving {
		b.s.PutTerminating(p.class, p.node, n)
	} else {
		b.s.Put(p.class, p.node, n)
	}
}

func (b *beside) compare(what string) {
	b.t.Helper()
	for class := range b.w.classes {
		for node := range b.w.nodes {
			rule, words := b.s.Refused(class, node)
			wantRule, wantWords := b.w.refused(class, node)
			if rule != wantRule || words != wantWords || b.s.Passes(class, node) != (rule == "") {
				b.t.Fatalf("%s: class %d on node %d: %q %q, passes %v; want %q %q\nclass %+v\nnode %+v\npods %+v\nclasses %+v", what, class, node, rule, words,
					b.s.Passes(class, node), wantRule, wantWords, b.w.classes[class], b.w.nodes[node], b.w.pods, b.w.classes)
			}
			if rule != "" && !b.s.Constrained(class) {
				b.t.Fatalf("%s: class %d is refused by %s and not tied", what, class, rule)
			}
		}
	}
}

// step changes both worlds at random.
func (b *beside) step(r *rand.Rand, shapes []*NodeInfo) {
	switch n := r.IntN(12); {
	case n == 0 && len(b.w.nodes) < 8:
		shape := pick(r, shapes...)
		b.addNode(shape, pick(r, nil, map[string]int64{"ebs": 1, "nfs": 2}, map[string]int64{"ebs": 0}))
	case n < 4 && len(b.w.pods) > 0:
		b.take(r.IntN(len(b.w.pods)))
	case len(b.w.pods) < 40:
		node := r.IntN(len(b.w.nodes))
		b.put(naivePod{class: r.IntN(len(b.w.classes)), node: node, leaving: r.IntN(6) == 0})
	}
}

func world(t *testing.T, r *rand.Rand) (*beside, []*NodeInfo) {
	w := &naive{namespaces: map[string]map[string]string{}}
	var namespaces []cluster.Namespace
	for _, name := range []string{"n1", "n2", "n3"} {
		n := cluster.Namespace{Name: name, Labels: someLabels(r, []string{"team", "env"}, 3)}
		namespaces = append(namespaces, n)
		w.namespaces[name] = n.Labels
	}
	for range 2 + r.IntN(4) {
		w.classes = append(w.classes, someTied(r))
	}
	for range r.IntN(3) { // one constraint class for both, and most often two: TestTie has the close ones
		c := pick(r, w.classes...)
		c.Requests.MilliCPU++
		c.Namespace = pick(r, c.Namespace, "n1")
		w.classes = append(w.classes, c)
	}
	b := &beside{t: t, w: w, s: NewState(w.classes, namespaces)}
	shapes := []*NodeInfo{someShape(r, ""), someShape(r, "")}
	for i := range 3 {
		shapes = append(shapes, someShape(r, fmt.Sprint("node-", i)))
	}
	for range 1 + r.IntN(4) {
		b.addNode(pick(r, shapes...), pick(r, nil, map[string]int64{"ebs": 2}))
	}
	return b, shapes
}

func FuzzState(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		b, shapes := world(t, r)
		for range 3 {
			for range r.IntN(12) {
				b.step(r, shapes)
			}
			b.compare("after steps")
		}
		for class := range b.w.classes {
			node := r.IntN(len(b.w.nodes))
			const enough = 12
			if got, want := min(b.s.MaxFit(class, node), enough), b.w.most(class, node, enough); got != want {
				t.Fatalf("most of class %d on node %d: %d, want %d\n%+v\n%+v", class, node, got, want, b.w.classes[class], b.w.pods)
			}
		}
		b.compareTerms()
		whatIf(b, r, shapes)
		b.empty()
	})
}

// compareTerms: to F11 and F12 nodes are alike that have the same domains of a class's terms.
func (b *beside) compareTerms() {
	for class := range b.w.classes {
		c, terms, known := &b.w.classes[class], b.s.Terms(class), map[string]bool{}
		for node := range b.w.nodes {
			var key string
			for _, t := range terms {
				key += fmt.Sprint(b.s.DomainOf(t, node), " ")
			}
			passes := b.w.spread(c, &b.w.nodes[node]) == "" && b.w.interPod(c, &b.w.nodes[node]) == ""
			if was, is := known[key]; is && was != passes {
				b.t.Fatalf("class %d passes on node %d: %v, and not on one with the domains %s\n%+v\n%+v", class, node, passes, key, terms, c)
			}
			known[key] = passes
		}
	}
}

// leastOf is the smallest count that a spread term without minDomains is held against, and the number of domains that it is taken over.
func leastOf(s *State, t Term) (count, domains int) {
	c := &s.counters[t.counter]
	return int(s.fewest(c, 1)), int(s.eligibleNodes[c.eligible].domains)
}

// empty: after the last pod, nothing is counted anywhere.
func (b *beside) empty() {
	for i := range b.s.counters {
		c := &b.s.counters[i]
		if c.sum != 0 {
			b.t.Fatalf("counter %d counts %d when all pods went", i, c.sum)
		}
		if c.minimum < 0 {
			continue
		}
		domains := b.s.eligibleNodes[c.eligible].domains
		if l := &b.s.minimums[c.minimum]; l.nonZero != 0 || domains > 0 && b.s.least(c) != 0 {
			b.t.Fatalf("counter %d has its minimum at %d over %d domains, of which %d count, when all pods went", i, b.s.least(c), domains, l.nonZero)
		}
	}
	if len(b.s.handles) != 0 || slices.Max(append(b.s.claims, 0)) != 0 || slices.Max(append(b.s.attached, 0)) != 0 {
		b.t.Fatal("volumes are counted when all pods went")
	}
}

// whatIf: a State that is rolled back is what it was.
func whatIf(b *beside, r *rand.Rand, shapes []*NodeInfo) {
	before := *b.w
	outer := b.s.Mark()
	b.step(r, shapes)
	middle := *b.w
	inner := b.s.Mark()
	for range r.IntN(12) {
		b.step(r, shapes)
	}
	b.compare("in a what-if")
	b.s.Rollback(inner)
	*b.w = middle
	b.compare("after the inner rollback")
	b.s.Rollback(outer)
	*b.w = before
	b.compare("after the outer rollback")
	for len(b.w.pods) > 0 {
		b.take(r.IntN(len(b.w.pods)))
	}
	b.compare("after all pods went")
}

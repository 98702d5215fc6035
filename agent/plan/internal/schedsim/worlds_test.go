package schedsim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func someKey(r *rand.Rand) string { return pick(r, labelHostname, labelZone, "rack") }

func someSelector(r *rand.Rand) *cluster.Selector {
	in := func(key, op string, values ...string) cluster.Requirement {
		return cluster.Requirement{Key: key, Operator: op, Values: values}
	}
	switch r.IntN(8) {
	case 0:
		return nil
	case 1:
		return &cluster.Selector{}
	case 2:
		return &cluster.Selector{Requirements: []cluster.Requirement{in("app", "NotIn", "x")}}
	case 3:
		return &cluster.Selector{Requirements: []cluster.Requirement{in("app", "In", "x", "y"), in("tier", "In", "1")}}
	case 4:
		return &cluster.Selector{Requirements: []cluster.Requirement{in("tier", "Exists"), in("app", "In", "y")}}
	}
	return &cluster.Selector{Requirements: []cluster.Requirement{in("app", "In", pick(r, "x", "y"))}}
}

func someTerm(r *rand.Rand) cluster.PodTerm {
	t := cluster.PodTerm{TopologyKey: someKey(r), Selector: someSelector(r), Namespaces: []string{"a"}}
	switch r.IntN(5) {
	case 0:
		t.Namespaces = []string{"a", "b"}
	case 1:
		t.Namespaces, t.NamespaceSelector = nil, &cluster.Selector{Requirements: []cluster.Requirement{{Key: "team", Operator: "In", Values: []string{"1"}}}}
	}
	return t
}

func someSpread(r *rand.Rand, keys int) (out []cluster.Spread) {
	for range keys {
		out = append(out, cluster.Spread{TopologyKey: someKey(r), MaxSkew: 1 + r.IntN(3), Selector: someSelector(r), IgnoreNodeAffinity: r.IntN(3) == 0, HonorTaints: r.IntN(2) == 0})
	}
	return out
}

func somePreferences(r *rand.Rand) *cluster.Preferences {
	p := &cluster.Preferences{}
	if r.IntN(3) == 0 {
		p.MilliCPU, p.Memory = pick[int64](r, 0, 100, 700), pick[int64](r, 0, 2, 9)
	}
	if r.IntN(3) == 0 {
		p.IncomingMilliCPU, p.IncomingMemory = pick[int64](r, 0, 100, 900), pick[int64](r, 0, 5, 30)
	}
	for range r.IntN(3) {
		p.Nodes = append(p.Nodes, cluster.PreferredNodes{Weight: int64(r.IntN(5)), Term: cluster.NodeTerm{Labels: []cluster.Requirement{{Key: pick(r, "disk", "rack"), Operator: "In", Values: []string{pick(r, "0", "1")}}}}})
	}
	for range r.IntN(3) {
		p.Pods = append(p.Pods, cluster.PreferredPods{Weight: pick[int64](r, 1, 7, -3), Term: someTerm(r)})
	}
	if r.IntN(2) == 0 {
		p.Spread = someSpread(r, 1+r.IntN(2))
	}
	return p
}

func someClass(r *rand.Rand, constrained bool) cluster.PodClass {
	c := cluster.PodClass{Namespace: pick(r, "a", "b"), Labels: map[string]string{"app": pick(r, "x", "y")},
		Requests: cluster.Resources{MilliCPU: pick[int64](r, 0, 300, 600), Memory: pick[int64](r, 0, 3, 8), Pods: 1}}
	switch r.IntN(4) {
	case 0:
		c.Labels["tier"] = "1"
	case 1:
		c.Labels = pick(r, nil, c.Labels)
	}
	if r.IntN(3) > 0 {
		c.Prefers = somePreferences(r)
	}
	if r.IntN(4) == 0 {
		c.Tolerations = []cluster.Toleration{{Key: "k", Operator: "Exists"}}
	}
	if r.IntN(4) == 0 {
		c.NodeSelector = map[string]string{"disk": "0"}
	}
	if r.IntN(20) == 0 {
		c.NotUnderstood = []string{"a field"}
	}
	if !constrained {
		return c
	}
	switch r.IntN(8) {
	case 0:
		c.PodAffinity = []cluster.PodTerm{someTerm(r)}
	case 1, 2:
		c.PodAntiAffinity = []cluster.PodTerm{someTerm(r)}
	case 3, 4:
		c.Spread = someSpread(r, 1)
	case 5:
		c.Volumes = []cluster.Volume{{Driver: "ebs", Handle: pick(r, "1", "2", "3"), OnePod: r.IntN(3) == 0, Claim: pick(r, "p", "q")}}
	}
	return c
}

// cases is a Sim beside a naive cluster.
type cases struct {
	t     *testing.T
	r     *rand.Rand
	sim   *Sim
	naive *naive
	infos []*fit.NodeInfo
}

func (w *cases) info() *fit.NodeInfo {
	if len(w.infos) > 0 && w.r.IntN(2) == 0 {
		if info := pick(w.r, w.infos...); info.Name == "" {
			return info
		}
	}
	x := &fit.NodeInfo{Labels: map[string]string{labelZone: pick(w.r, "1", "2", "3"), "rack": pick(w.r, "0", "1"), "disk": pick(w.r, "0", "1")}}
	for _, key := range []string{labelZone, "rack", "disk"} {
		if w.r.IntN(5) == 0 {
			delete(x.Labels, key)
		}
	}
	if w.r.IntN(2) == 0 {
		x.Name = cluster.NodeName(fmt.Sprint("n", len(w.infos)))
		if w.r.IntN(6) > 0 {
			x.Labels[labelHostname] = string(x.Name)
		}
	}
	switch w.r.IntN(6) {
	case 0:
		x.Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
	case 1:
		x.Taints = []cluster.Taint{{Key: "k", Effect: "PreferNoSchedule"}, {Key: "l", Effect: "PreferNoSchedule"}}
	case 2:
		x.Taints = []cluster.Taint{{Key: "l", Effect: "PreferNoSchedule"}}
	}
	w.infos = append(w.infos, x)
	return x
}

// addNode adds a node to both. known: the State has it already.
func (w *cases) addNode(known bool) {
	a := cluster.Resources{MilliCPU: pick[int64](w.r, 0, 2000, 4000), Memory: pick[int64](w.r, 0, 20, 64), Pods: pick[int64](w.r, 2, 9)}
	n := Node{Info: w.info(), Allocatable: a, Room: make([]int64, w.sim.cfg.Dimensions.Len()), VolumeLimits: map[string]int64{"ebs": 1}}
	w.sim.cfg.Dimensions.Capacity(n.Room, a)
	if st := w.sim.cfg.State; known && st != nil {
		n.Known, n.InState = true, st.AddNode(n.Info, n.VolumeLimits)
	}
	w.sim.AddNode(n)
	n.Room = slices.Clone(n.Room)
	w.naive.nodes = append(w.naive.nodes, n)
}

// put puts a pod that runs on a node of both, before the first Mark.
func (w *cases) put(class, node int, terminating bool) {
	size := w.sim.cfg.Dimensions.Class(class)
	binpack.Sub(w.sim.nodes[node].room, size, 1)
	w.sim.nodes[node].usedMilliCPU += size[0]
	w.sim.nodes[node].usedByte += size[1]
	if st := w.sim.cfg.State; st != nil && terminating {
		st.PutTerminating(class, node, 1)
	} else if st != nil {
		st.Put(class, node, 1)
	}
	w.sim.Put(class, node, 1, terminating)
	w.bound(naivePod{class, node, terminating})
}

// bound tells the naive cluster.
func (w *cases) bound(p naivePod) {
	binpack.Sub(w.naive.nodes[p.node].Room, w.sim.cfg.Dimensions.Class(p.class), 1)
	w.naive.pods = append(w.naive.pods, p)
}

func newCases(t *testing.T, r *rand.Rand) *cases {
	cfg := &Config{Namespaces: []cluster.Namespace{{Name: "a", Labels: map[string]string{"team": "1"}}, {Name: "b"}}}
	constrained := r.IntN(2) == 0
	for i := range 2 + r.IntN(4) {
		cfg.Classes = append(cfg.Classes, someClass(r, constrained))
		cfg.Replicated = append(cfg.Replicated, r.IntN(2) == 0)
		if r.IntN(5) > 0 {
			cfg.Binds = append(cfg.Binds, i)
		}
	}
	cfg.Dimensions = fit.NewDimensions(cfg.Classes)
	w := &cases{t: t, r: r, naive: &naive{cfg: cfg, labels: map[string]map[string]string{"a": {"team": "1"}, "b": nil}}}
	simCfg := *cfg
	if constrained {
		simCfg.State = fit.NewState(cfg.Classes, cfg.Namespaces)
	}
	if !slices.Contains(cfg.Replicated, true) {
		simCfg.Replicated = nil
	}
	w.sim = New(simCfg)
	for range 1 + r.IntN(4) {
		w.addNode(true)
	}
	for range r.IntN(4) {
		w.addNode(false)
	}
	for range r.IntN(12) {
		class := r.IntN(len(cfg.Classes))
		if at := w.naive.feasible(class); len(at) > 0 {
			w.put(class, pick(r, at...), r.IntN(4) == 0)
		}
	}
	return w
}

// compare holds the best nodes and the filters of the Sim against those of the naive cluster.
func (w *cases) compare() {
	for _, class := range w.naive.cfg.Binds {
		want := w.naive.best(class)
		if got := w.sim.Best(class); !slices.Equal(got, want) {
			w.t.Fatalf("class %d: best %v, want %v; pods %v", class, got, want, w.naive.pods)
		}
		feasible := w.naive.feasible(class)
		w.compareScores(class, feasible)
		for n := range w.naive.nodes {
			if got, want := canBind(w.sim, class, n), slices.Contains(feasible, n); got != want {
				w.t.Fatalf("class %d: node %d is open: %v, want %v; pods %v", class, n, got, want, w.naive.pods)
			}
		}
	}
}

// canBind tells whether a node passes the filters for one more pod of a class.
func canBind(s *Sim, class, node int) bool {
	v := s.viewOf(class)
	return v.where[node].set > 0 && (!v.constrained || s.cfg.State.Passes(class, int(s.nodes[node].state)))
}

// compareScores holds what the Sim has just scored against the naive cluster.
func (w *cases) compareScores(class int, nodes []int) {
	s, v, work := w.sim, w.sim.views[class], &w.sim.work
	least, balanced, spread, inter := w.naive.least(class, nodes), w.naive.balanced(class, nodes), w.naive.spread(class, nodes), w.naive.inter(class, nodes)
	weighs := slices.ContainsFunc(v.reads.inter, func(x interRead) bool { return s.inter[x.counter].pods > 0 })
	for i, id := range work.passes {
		for _, b := range v.sets[id].buckets {
			for _, n := range b.nodes {
				k := slices.Index(nodes, int(n))
				if c := w.naive.class(class); c.Requests.MilliCPU+c.Requests.Memory > 0 && int64(b.score) != least[k]+balanced[k] {
					w.t.Fatalf("class %d: its own room scores node %d %d, want %d and %d", class, n, b.score, least[k], balanced[k])
				}
				if len(v.reads.spread) > 0 && work.spread[i] != spread[k] {
					w.t.Fatalf("class %d: spread scores node %d %d, want %d", class, n, work.spread[i], spread[k])
				}
				if weighs && work.inter[i] != inter[k] || !weighs && inter[k] != 0 {
					w.t.Fatalf("class %d: inter-pod affinity scores node %d %v, want %d", class, n, work.inter, inter[k])
				}
			}
		}
	}
}

// bind binds a pod as the Sim wants, or to a node that it may go to.
func (w *cases) bind() {
	class, m := pick(w.r, w.naive.cfg.Binds...), len(w.sim.log)
	want := w.naive.best(class)
	if w.r.IntN(4) == 0 && len(want) > 0 {
		at := pick(w.r, w.naive.feasible(class)...)
		w.sim.BindTo(class, at)
		w.bound(naivePod{class, at, false})
		return
	}
	before := slices.Clone(w.sim.log)
	n := w.sim.Bind(class, 1)
	if n != min(len(want), 1) {
		w.t.Fatalf("class %d: %d bound, best nodes %v", class, n, want)
	}
	if n == 0 {
		return
	}
	at := w.sim.log[len(w.sim.log)-1].Node
	if !slices.Contains(want, at) {
		w.t.Fatalf("class %d: bound to %d, best are %v; log %v and %v", class, at, want, before[:m], w.sim.log)
	}
	w.bound(naivePod{class, at, false})
}

// TestAgainstNaive holds a Sim against a naive cluster, through bindings, what-ifs and new nodes.
func TestAgainstNaive(t *testing.T) {
	seed := drawn.Seed(t)
	for i := range uint64(800) {
		w := newCases(t, rand.New(rand.NewPCG(seed, i)))
		if len(w.naive.cfg.Binds) == 0 {
			continue
		}
		w.sim.Seed(i % 3)
		w.compare()
		w.steps(8, 2)
		if t.Failed() {
			t.Fatalf("seed %d, world %d", seed, i)
		}
	}
}

// steps binds pods and adds nodes; some steps are taken back.
func (w *cases) steps(n, depth int) {
	for range n {
		switch k := w.r.IntN(8); {
		case k == 0 && depth > 0:
			m, nodes, pods := w.sim.Mark(), slices.Clone(w.naive.nodes), slices.Clone(w.naive.pods)
			for i := range nodes {
				nodes[i].Room = slices.Clone(nodes[i].Room)
			}
			w.steps(4, depth-1)
			w.checkPlaced(m, len(pods), depth == 1)
			w.sim.Rollback(m)
			w.naive.nodes, w.naive.pods = nodes, pods
			if w.r.IntN(2) == 0 { // in place of one that is gone
				w.addNode(false)
			}
		case k == 1:
			w.addNode(false)
		case k == 2:
			w.sim.ResetOrder()
		case k == 3 && depth > 0:
			w.pack()
		default:
			w.bind()
		}
		w.compare()
	}
}

// pack lets nodes stand otherwise and packs pods: on the first node that takes one, of those that are open and then of those that come last, as
// many as it takes; and takes it back.
func (w *cases) pack() {
	m, nodes, pods, standing := w.sim.Mark(), slices.Clone(w.naive.nodes), slices.Clone(w.naive.pods), make([]Standing, len(w.naive.nodes))
	for i := range nodes {
		nodes[i].Room = slices.Clone(nodes[i].Room)
		standing[i] = pick(w.r, Open, Open, Last, Closed)
		w.sim.Stand(i, standing[i])
	}
	class, n := pick(w.r, w.naive.cfg.Binds...), 1+w.r.IntN(5)
	done, last := w.sim.Pack(class, n), -1
	for k := range n {
		at := w.naive.feasible(class)
		first := slices.Index(at, last)
		if first < 0 {
			first = slices.IndexFunc(at, func(i int) bool { return standing[i] == Open })
		}
		if first < 0 {
			first = slices.IndexFunc(at, func(i int) bool { return standing[i] == Last })
		}
		if (first >= 0) != (k < done) {
			w.t.Fatalf("class %d: %d of %d packed; %v is open, nodes stand %v, placed %v", class, done, n, at, standing, w.sim.Placed(m))
		}
		if first < 0 {
			break
		}
		last = at[first]
		w.bound(naivePod{class, last, false})
	}
	w.checkPlaced(m, len(pods), true)
	w.sim.Rollback(m)
	w.naive.nodes, w.naive.pods = nodes, pods
}

// checkPlaced holds what is placed since a mark against the pods of the naive cluster from the given one on.
// whole: no Mark has come between.
func (w *cases) checkPlaced(m Mark, from int, whole bool) {
	var got []naivePod
	for i, p := range w.sim.Placed(m) {
		for range p.Count {
			got = append(got, naivePod{p.Class, p.Node, false})
		}
		if o := w.sim.Placed(m); whole && i > 0 && o[i-1].Class == p.Class && o[i-1].Node == p.Node {
			w.t.Fatalf("one run in two parts: %v", o)
		}
	}
	if want := w.naive.pods[from:]; !slices.Equal(got, want) {
		w.t.Fatalf("placed %v, want %v", got, want)
	}
}

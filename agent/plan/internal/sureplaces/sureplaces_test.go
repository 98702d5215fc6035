package sureplaces

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/certain"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

const keyZone = "topology.kubernetes.io/zone"

// world is a small cluster in which one node or two are emptied, and no machine, one or two come.
type world struct {
	r       *rand.Rand
	classes []cluster.PodClass
	sizes   [][]int64
	ends    []bool // by class: its pods end with their node, as those of a DaemonSet
	shapes  []*fit.NodeInfo
	limits  []map[string]int64
	pods    [][]int // by node, the classes of its pods
	rooms   [][]int64
	going   []int
	machine *fit.NodeInfo
	come    int
}

func selector(app string) *cluster.Selector {
	return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}
}

func drawClass(r *rand.Rand, i int) cluster.PodClass {
	apps := []string{"x", "y"}
	c := cluster.PodClass{Namespace: "default", Labels: map[string]string{"app": apps[r.IntN(2)]}}
	key := []string{keyHostname, keyZone}[r.IntN(2)]
	about := c.Labels["app"]
	if r.IntN(4) == 0 {
		about = apps[r.IntN(2)]
	}
	spread := func(key string) {
		c.Spread = append(c.Spread, cluster.Spread{MaxSkew: 1 + r.IntN(2), TopologyKey: key, Selector: selector(about), MinDomains: []int{0, 0, 2, 3}[r.IntN(4)], HonorTaints: r.IntN(2) == 0})
	}
	switch r.IntN(9) {
	case 0, 1:
		spread(key)
	case 2:
		spread(keyZone)
		spread(keyHostname)
	case 3, 4:
		c.PodAntiAffinity = []cluster.PodTerm{{Selector: selector(about), TopologyKey: key}}
	case 5:
		c.PodAffinity = []cluster.PodTerm{{Selector: selector(about), TopologyKey: key}}
	case 6, 7:
		v := cluster.Volume{Claim: fmt.Sprintf("default/c%d", i), Driver: "ebs", Handle: fmt.Sprintf("v%d", r.IntN(6)), OnePod: r.IntN(4) == 0}
		if r.IntN(2) == 0 {
			zone := []string{"a", "b"}[r.IntN(2)]
			v.Affinity = []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: keyZone, Operator: "In", Values: []string{zone}}}}}
		}
		c.Volumes = []cluster.Volume{v}
	}
	return c
}

func drawWorld(r *rand.Rand) *world {
	w := &world{r: r}
	for i := range 2 + r.IntN(4) {
		w.classes = append(w.classes, drawClass(r, i))
		w.sizes = append(w.sizes, []int64{1 + r.Int64N(3), 1})
		w.ends = append(w.ends, r.IntN(6) == 0)
	}
	shape := func(name string) *fit.NodeInfo {
		s := &fit.NodeInfo{Name: cluster.NodeName(name), Labels: map[string]string{keyZone: []string{"a", "b", "c"}[r.IntN(3)]}}
		if r.IntN(12) == 0 {
			delete(s.Labels, keyZone)
		}
		if name != "" {
			s.Labels[keyHostname] = name
		}
		return s
	}
	st := fit.NewState(w.classes, nil)
	for i := range 3 + r.IntN(5) {
		w.shapes, w.rooms = append(w.shapes, shape(fmt.Sprint("n", i))), append(w.rooms, []int64{3 + r.Int64N(8), 20})
		w.limits = append(w.limits, []map[string]int64{nil, {"ebs": 1 + r.Int64N(3)}}[r.IntN(2)])
		st.AddNode(w.shapes[i], w.limits[i])
	}
	w.pods = make([][]int, len(w.shapes))
	for range 2 + r.IntN(8) {
		class := r.IntN(len(w.classes))
		if open := w.open(st, class, w.rooms, len(w.shapes)); len(open) > 0 {
			at := open[r.IntN(len(open))]
			st.Put(class, at, 1)
			binpack.Sub(w.rooms[at], w.sizes[class], 1)
			w.pods[at] = append(w.pods[at], class)
		}
	}
	w.going = r.Perm(len(w.shapes))[:1+r.IntN(2)]
	w.machine, w.come = shape(""), r.IntN(3)
	if r.IntN(3) == 0 {
		delete(w.machine.Labels, keyZone) // not known: see play
	}
	return w
}

// state is the world before the first pod is evicted.
func (w *world) state() *fit.State {
	st := fit.NewState(w.classes, nil)
	for i, shape := range w.shapes {
		st.AddNode(shape, w.limits[i])
		for _, class := range w.pods[i] {
			st.Put(class, i, 1)
		}
	}
	return st
}

// open are the nodes that kube-scheduler may put a pod on.
func (w *world) open(st *fit.State, class int, rooms [][]int64, nodes int, but ...int) (out []int) {
	for k := range nodes {
		if !slices.Contains(but, k) && binpack.Fits(rooms[k], w.sizes[class]) && st.Passes(class, k) {
			out = append(out, k)
		}
	}
	return out
}

// sure asks whether the pods of the nodes that go find room.
func (w *world) sure() (moved int, ok bool) {
	st, count := w.state(), make([]int, len(w.classes))
	m := Begin(st, w.classes, len(w.shapes))
	for _, node := range w.going {
		var pods []cluster.Pod
		for _, class := range w.pods[node] {
			pods = append(pods, cluster.Pod{Class: class})
			if !w.ends[class] {
				count[class]++
				moved++
			}
		}
		shape := w.shapes[node]
		if len(w.going) == 1 {
			shape = shape.Cordoned()
		}
		m.Leaves(node, pods, shape)
	}
	m.Come(w.machine, map[string]int64{"ebs": 2}, w.come)
	var loads []certain.Load
	var classes, places []int
	var rooms [][]int64
	for class, n := range count {
		if n > 0 {
			classes, loads = append(classes, class), append(loads, certain.Load{N: n, Size: w.sizes[class], Takes: func(int) bool { return true }})
		}
	}
	for k := range w.shapes {
		if !slices.Contains(w.going, k) {
			places, rooms = append(places, k), append(rooms, w.rooms[k])
		}
	}
	for range w.come {
		rooms = append(rooms, []int64{6, 20})
	}
	look := func(int) bool { return true }
	ok = m.Constrain(loads, classes, places, look) && certain.Fits(loads, rooms, look)
	m.End()
	return moved, ok
}

// play empties the nodes in a random order: nodes are cordoned, pods are evicted and bound, and emptied Node objects go. It says which pod
// found no place at some moment.
func (w *world) play() (left string) {
	st, r := w.state(), w.r
	var rooms [][]int64
	for _, room := range w.rooms {
		rooms = append(rooms, slices.Clone(room))
	}
	for range w.come {
		shape := *w.machine
		if zone := []string{"a", "b", "c", "d"}[r.IntN(4)]; shape.Labels[keyZone] == "" {
			shape.Labels = map[string]string{keyZone: zone}
		}
		st.AddNode(&shape, map[string]int64{"ebs": 2})
		rooms = append(rooms, []int64{6, 20})
	}
	pods, cordoned, gone, pending := make([][]int, len(rooms)), []int(nil), []int(nil), []int(nil)
	for i := range w.pods {
		pods[i] = slices.Clone(w.pods[i])
	}
	// reshape lets a node look otherwise, with the pods that are still on it.
	reshape := func(k int, shape *fit.NodeInfo, back int) {
		for _, class := range pods[k] {
			st.Put(class, k, -1)
		}
		st.Reshape(k, shape)
		for _, class := range pods[k] {
			st.Put(class, k, back)
		}
	}
	evictable := func(k int) int { return slices.IndexFunc(pods[k], func(class int) bool { return !w.ends[class] }) }
	for {
		var steps []func() string
		for _, k := range w.going {
			switch {
			case !slices.Contains(cordoned, k):
				steps = append(steps, func() string {
					reshape(k, w.shapes[k].Cordoned(), 1)
					cordoned = append(cordoned, k)
					return ""
				})
			case evictable(k) >= 0:
				steps = append(steps, func() string {
					r.Shuffle(len(pods[k]), func(i, j int) { pods[k][i], pods[k][j] = pods[k][j], pods[k][i] })
					i := evictable(k)
					class := pods[k][i]
					pods[k] = slices.Delete(pods[k], i, i+1)
					st.Put(class, k, -1)
					pending = append(pending, class)
					return ""
				})
			case !slices.Contains(gone, k):
				steps = append(steps, func() string {
					reshape(k, nil, 0)
					gone, pods[k] = append(gone, k), nil
					return ""
				})
			}
		}
		for i, class := range pending {
			steps = append(steps, func() string {
				open := w.open(st, class, rooms, len(rooms), cordoned...)
				if len(open) == 0 {
					return fmt.Sprintf("a pod of class %d finds no place beside %v; pending %v, cordoned %v, gone %v", class, pods, pending, cordoned, gone)
				}
				at := open[r.IntN(len(open))]
				st.Put(class, at, 1)
				binpack.Sub(rooms[at], w.sizes[class], 1)
				pods[at] = append(pods[at], class)
				pending = slices.Delete(pending, i, i+1)
				return ""
			})
		}
		if len(steps) == 0 {
			return ""
		}
		if why := steps[r.IntN(len(steps))](); why != "" {
			return why
		}
	}
}

// TestConstrain plays drains at random after each yes: none leaves a pod at any moment. It says yes in many of the worlds where none does.
func TestConstrain(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	worlds, yes, possible := 0, 0, 0
	for worlds < 2000 {
		w := drawWorld(r)
		moved, says := w.sure()
		if moved == 0 {
			continue
		}
		worlds++
		left := ""
		for range 30 {
			if left = w.play(); left != "" {
				break
			}
		}
		if left == "" {
			possible++
		}
		if says {
			yes++
		}
		if says && left != "" {
			t.Fatalf("seed %d, world %d: all pods are said to find places, and %s\nclasses %+v\nshapes %v\npods %v\nrooms %v\ngoing %v, machines %d of %v, ends %v", seed, worlds, left, w.classes, w.shapes, w.pods, w.rooms, w.going, w.come, w.machine, w.ends)
		}
	}
	t.Logf("yes in %d of %d worlds; random play finds places in %d", yes, worlds, possible)
	if yes*100 < possible*70 {
		t.Errorf("seed %d: yes in %d worlds, and random play finds places for all in %d", seed, yes, possible)
	}
}

// TestMoments has what becomes of the domains themselves: of a node that is cordoned, and of a machine whose zone nobody knows yet.
func TestMoments(t *testing.T) {
	node := func(name, zone string) *fit.NodeInfo {
		return &fit.NodeInfo{Name: cluster.NodeName(name), Labels: map[string]string{keyHostname: name, keyZone: zone}}
	}
	spread := func(key string, honor bool) cluster.Spread {
		return cluster.Spread{MaxSkew: 1, TopologyKey: key, Selector: selector("x"), HonorTaints: honor}
	}
	known, unknown := &fit.NodeInfo{Labels: map[string]string{keyZone: "a"}}, &fit.NodeInfo{Labels: map[string]string{}}
	for _, c := range []struct {
		what    string
		spread  cluster.Spread
		machine *fit.NodeInfo
		want    bool
	}{
		{"hosts, and the emptied node counts no pod until it is gone", spread(keyHostname, false), nil, false},
		{"hosts, and the cordoned node is no domain", spread(keyHostname, true), nil, true},
		{"zones", spread(keyZone, false), nil, true},
		{"zones, and a machine comes in one of them", spread(keyZone, false), known, true},
		{"zones, and a machine may come in another one", spread(keyZone, false), unknown, false},
		{"hosts, and a machine comes without a pod", spread(keyHostname, false), unknown, true},
	} {
		w := &world{
			classes: []cluster.PodClass{{Namespace: "default", Labels: map[string]string{"app": "x"}, Spread: []cluster.Spread{c.spread}}},
			sizes:   [][]int64{{1, 1}}, ends: []bool{false},
			shapes: []*fit.NodeInfo{node("n0", "a"), node("n1", "a"), node("n2", "b")}, limits: make([]map[string]int64, 3),
			pods: [][]int{{0}, {0}, {0}}, rooms: [][]int64{{9, 9}, {9, 9}, {9, 9}}, going: []int{0}, machine: c.machine,
		}
		if c.machine != nil {
			w.come = 1
		}
		if _, got := w.sure(); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

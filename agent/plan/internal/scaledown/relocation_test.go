package scaledown

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
)

// firstFit is relocation without cursors: each class goes to the first nodes that have room for it, pods that keep apart first.
type firstFit struct {
	w     *world
	rooms [][]int64
	apart []int // pods of the class that keeps apart, by domain
	class int   // that class
	zones bool  // its domains are the zones, three, and not the hosts
}

func (f *firstFit) domain(node int) int {
	if f.zones {
		return node % 3
	}
	return node
}

func newFirstFit(w *world, class int, zones bool) *firstFit {
	f := &firstFit{w: w, apart: make([]int, len(w.Nodes)), class: class, zones: zones}
	for i := range w.Nodes {
		f.rooms = append(f.rooms, slices.Clone(w.Nodes[i].Room))
		for k := range w.Nodes[i].Pods {
			if w.Nodes[i].Pods[k].Class == class {
				f.apart[f.domain(i)]++
			}
		}
	}
	return f
}

// move takes room for all pods of a node, or none.
func (f *firstFit) move(from int) bool {
	rooms, apart := make([][]int64, len(f.rooms)), slices.Clone(f.apart)
	for i := range rooms {
		rooms[i] = slices.Clone(f.rooms[i])
	}
	loads := f.w.DrainPlanOf(&f.w.Nodes[from]).Classes
	for _, l := range loads {
		if int(l.Class) == f.class {
			apart[f.domain(from)] -= int(l.N)
		}
	}
	for _, first := range []bool{true, false} {
		for _, l := range loads {
			if (int(l.Class) == f.class) == first && !f.place(from, int(l.Class), int(l.N), rooms, apart) {
				return false
			}
		}
	}
	f.rooms, f.apart = rooms, apart
	return true
}

func (f *firstFit) place(from, class, n int, rooms [][]int64, apart []int) bool {
	size := f.w.Dimensions.Class(class)
	for i := range rooms {
		for n > 0 && i != from && !f.w.Nodes[i].Removing && f.w.Passes(class, i) && !(class == f.class && apart[f.domain(i)] > 0) {
			for d := range size {
				if rooms[i][d] < size[d] {
					goto full
				}
			}
			for d := range size {
				rooms[i][d] -= size[d]
			}
			if n--; class == f.class {
				apart[f.domain(i)]++
			}
		}
	full:
	}
	return n == 0
}

// TestAgainstFirstFit: cursors change no answer, whatever moves are tried, taken or given back, and in whichever order.
func TestAgainstFirstFit(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld()
		var names []string
		for i := range 4 + r.IntN(5) {
			names = append(names, fmt.Sprintf("n%d", i))
		}
		w.group("pool", names...)
		w.class(cluster.PodClass{Requests: size(2)})
		w.class(cluster.PodClass{Requests: size(0.5), NodeSelector: map[string]string{"disk": "ssd"}})
		zones := seed%2 == 1
		class := w.alone(map[bool]string{false: hostname, true: zone}[zones])
		for i, n := range names {
			w.node(n).Labels[zone] = fmt.Sprint(i % 3)
			if r.IntN(2) == 0 {
				w.node(n).Labels["disk"] = "ssd"
			}
			for range r.IntN(4) {
				k := r.IntN(4)
				if k != class || !slices.ContainsFunc(w.node(n).Pods, func(p cluster.Pod) bool { return p.Class == class }) {
					w.pods(n, k, 1)
				}
			}
		}
		w.begin()
		model := newFirstFit(w, class, zones)
		for step := range 12 {
			i := r.IntN(len(w.Nodes))
			if w.Nodes[i].Removing {
				continue
			}
			name, before := names[i], *model
			if r.IntN(3) == 0 {
				if got, want := w.moves(name), model.move(i); got != want {
					t.Fatalf("seed %d, step %d: %s has room elsewhere: %v, want %v", seed, step, name, got, want)
				}
				*model = before
			} else if got, want := w.move(name), model.move(i); got != want {
				t.Fatalf("seed %d, step %d: %s goes: %v, want %v", seed, step, name, got, want)
			}
			for k := range w.Nodes {
				if !slices.Equal(w.Nodes[k].Room, model.rooms[k]) {
					t.Fatalf("seed %d, step %d: after %s node %s has room %v, want %v", seed, step, name, names[k], w.Nodes[k].Room, model.rooms[k])
				}
			}
		}
	}
}

// TestLooksOfARound: all moves of a round together look at each node about once.
func TestLooksOfARound(t *testing.T) {
	const full, movers = 100, 50
	w := newWorld()
	var names []string
	for i := range full + movers + 20 {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	w.group("pool", names...)
	for i, n := range names[:full+movers] {
		if w.pods(n, 0, 1); i < full {
			w.pods(n, w.class(cluster.PodClass{Requests: size(3)}), 1)
		}
	}
	w.begin()
	for i := range movers { // from the last on, so that the others stay places
		name := names[full+movers-1-i]
		if w.at(name).InUse = false; !w.move(name) {
			t.Fatalf("%s stays", name)
		}
	}
	if spent := budget.Relocation.Budget() - w.looks; spent > full+3*movers {
		t.Errorf("%d looks", spent)
	}
}

// TestHeadroomMoves: the headroom of a node needs room elsewhere as its pods do. It is three pieces of a core.
func TestHeadroomMoves(t *testing.T) {
	const stays = "D7 pod headroom/spare has room nowhere else"
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
		kept   [2]int // pieces on b and c
	}{
		{"room on one", func(w *world) { w.node("b").Pods = nil }, "cordon a [D1] utilisation 0%, 0 pods to move", [2]int{3, 0}},
		{"room on two", func(w *world) { w.node("b").Pods = w.node("b").Pods[:2]; w.node("c").Pods = w.node("c").Pods[:2] }, "cordon a [D1] utilisation 0%, 0 pods to move", [2]int{2, 1}},
		{"none on the first", func(w *world) { w.pods("b", 0, 1); w.node("c").Pods = nil }, "cordon a [D1] utilisation 0%, 0 pods to move", [2]int{0, 3}},
		{"too little room", func(*world) {}, stays, [2]int{}},
		{"a node that is not Ready", func(w *world) { w.node("b").Pods = nil; w.unready("b", time.Hour) }, stays, [2]int{}},
		{"a node that is not for it", func(w *world) {
			w.node("b").Pods = nil
			w.node("b").Taints = []cluster.Taint{{Key: "gpu", Effect: "NoSchedule"}}
		}, stays, [2]int{}},
	} {
		w := idleNode()
		w.node("a").Pods = nil
		w.keep("b")
		w.keep("c")
		c.change(w)
		w.p.Headroom = []cluster.Headroom{{Name: "spare", Piece: cluster.PodClass{Requests: size(1)}, Count: 3}}
		w.begin()
		a, piece := w.at("a"), len(w.Snapshot.Classes)-1
		a.KeepHeadroom(piece, 3)
		before := fmt.Sprint(w.at("b").Room, w.at("c").Room)
		w.Decide()
		if got := w.fate("a"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		kept := [2]int{}
		for i, n := range []string{"b", "c"} {
			for _, h := range w.at(n).Headroom {
				kept[i] += h.Count
			}
		}
		if kept != c.kept {
			t.Errorf("%s: %v are kept, want %v", c.name, kept, c.kept)
		}
		if after := fmt.Sprint(w.at("b").Room, w.at("c").Room); (after == before) != (c.want == stays) {
			t.Errorf("%s: room %s after %s", c.name, after, before)
		}
	}
}

// TestHeadroomLooks: a look at a node for headroom is paid for, and without looks the node stays.
func TestHeadroomLooks(t *testing.T) {
	for looks, want := range map[int]bool{2: true, 1: false} { // a itself and b
		w := idleNode()
		w.node("a").Pods, w.node("b").Pods = nil, nil
		w.p.Headroom = []cluster.Headroom{{Name: "spare", Piece: cluster.PodClass{Requests: size(1)}, Count: 1}}
		w.begin()
		w.at("a").KeepHeadroom(len(w.Snapshot.Classes)-1, 1)
		w.looks = looks
		if _, ok := w.relocateHeadroom(w.ByName["a"]); ok != want {
			t.Errorf("%d looks: %v", looks, ok)
		}
	}
	w := idleNode()
	w.node("a").Pods, w.node("b").Pods = nil, nil
	w.p.Headroom = []cluster.Headroom{{Name: "spare", Piece: cluster.PodClass{Requests: size(1)}, Count: 1}}
	w.begin()
	w.at("a").KeepHeadroom(len(w.Snapshot.Classes)-1, 1)
	w.at("b").Removing = true
	if _, ok := w.relocateHeadroom(w.ByName["a"]); !ok || len(w.at("c").Headroom) != 1 {
		t.Error("b goes, and c has room")
	}
}

// TestPlaces: pods go to nodes that stay for sure first, and to those that are replaced last.
func TestPlaces(t *testing.T) {
	w := idleNode()
	w.group("pool2", "d")
	w.unready("c", time.Hour)
	w.replace("a")
	w.begin()
	var got []cluster.NodeName
	for _, i := range w.newCursors([]int{w.ByName["b"]}).to {
		got = append(got, w.Nodes[i].Name)
	}
	if fmt.Sprint(got) != "[d a b]" {
		t.Errorf("%v", got)
	}
}

// TestCounted: nodes that several moves count on are in use by moved pods alone.
func TestCounted(t *testing.T) {
	w := newWorld()
	w.group("pool", "a", "b", "c")
	w.pods("b", 0, 1)
	w.pods("c", 0, 1)
	if w.begin(); !w.move("b") || !w.move("c") || !w.at("a").InUse || !w.at("a").OnlyRelocated {
		t.Error("a is in use by the pods of b and c")
	}
	w = newWorld()
	w.group("pool", "a", "b")
	w.pods("b", 0, 1)
	w.waits(0, 1)
	w.s.Pods[0].Nominated, w.s.Pods[0].Unschedulable = "a", 0
	if w.begin(); !w.move("b") || w.at("a").OnlyRelocated {
		t.Error("a is in use by a pod that is to come")
	}
}

// TestNamedPod: of the pods that have no room the first by name is named.
func TestNamedPod(t *testing.T) {
	for rooms, want := range map[int]string{0: "default/a-1", 1: "default/a-3", 2: "default/a-4"} {
		w := newWorld()
		w.group("pool", "a", "b", "c")
		large := w.class(cluster.PodClass{Requests: size(1.5)})
		for _, class := range []int{0, large, 0, large, large} {
			w.pods("a", class, 1)
		}
		w.p.UtilizationThreshold = 9
		w.pods("b", w.class(cluster.PodClass{Requests: size(4 - 1.5*float64(rooms))}), 1)
		w.pods("c", w.class(cluster.PodClass{Requests: size(4)}), 1)
		w.keep("b")
		w.keep("c")
		w.decide()
		if got, want := w.fate("a"), decision.RuleNoRoom+" pod "+want+" has room nowhere else"; got != want {
			t.Errorf("%d rooms: %q, want %q", rooms, got, want)
		}
	}
}

// TestLateAndNoRoom: of spread pods that have no room, also without the emptied node, the first is named that has none.
func TestLateAndNoRoom(t *testing.T) {
	w := newWorld()
	w.group("pool", "a", "b", "c")
	class := w.spread(hostname, func(*cluster.Spread) {})
	w.pods("a", class, 2)
	w.pods("a", w.class(cluster.PodClass{Requests: size(0.5)}), 1)
	w.pods("b", w.class(cluster.PodClass{Requests: size(2.5)}), 1) // room for one, and for the small pod
	w.pods("c", w.class(cluster.PodClass{Requests: size(4)}), 1)
	w.keep("b")
	w.keep("c")
	w.p.UtilizationThreshold = 1
	w.decide()
	if got, want := w.fate("a"), "D7 pod default/a-1 has room nowhere else"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEmptiest: pods that depend on others go to the node with most room, to the first of equal ones, as long as looks are left.
func TestEmptiest(t *testing.T) {
	for _, c := range []struct {
		name  string
		pods  [4]int // plain ones on a to d
		looks int
		want  string // where the pod of x goes
	}{
		{"the first of all", [4]int{0, 0, 0, 0}, 1000, "a"},
		{"the emptiest", [4]int{3, 2, 1, 2}, 1000, "c"},
		{"the last", [4]int{3, 2, 2, 0}, 1000, "d"},
		{"of equal ones the first", [4]int{2, 1, 1, 2}, 1000, "b"},
		{"too few looks for the emptiest", [4]int{3, 2, 1, 0}, 43, "c"},
		{"just enough looks", [4]int{3, 2, 1, 0}, 44, "d"},
		{"one is full", [4]int{4, 2, 3, 3}, 1000, "b"},
	} {
		w := newWorld()
		w.group("pool", "a", "b", "c", "d", "x")
		for i, n := range []string{"a", "b", "c", "d"} {
			w.pods(n, 0, c.pods[i])
		}
		w.pods("x", w.alone(zone), 1)
		w.begin()
		x := w.ByName["x"]
		st := w.RelocationState()
		w.cursors = w.newCursors(nil)
		a := tentative{unplaceable: -1}
		w.looks, w.emptiestFirst = c.looks, true
		if left := w.relocateClass(st, x, w.DrainPlanOf(&w.Nodes[x]).Classes[0], &a); left != 0 || len(a.done) != 1 {
			t.Fatalf("%s: %d left, %v", c.name, left, a.done)
		}
		if got := string(w.Nodes[w.cursors.to[a.done[0].at]].Name); got != c.want {
			t.Errorf("%s: on %s, want %s", c.name, got, c.want)
		}
	}
}

// sizes is a world of nodes with room for so many cores each, kept, and of node a, the pods of which are asked about. Class 0 is spread over
// hosts with a maxSkew that lets all go anywhere.
func sizes(rooms map[string]float64, nodes ...string) *world {
	w := newWorld()
	w.s.Classes = nil
	w.wide(1, nil)
	w.group("pool", append([]string{"a"}, nodes...)...)
	for _, n := range nodes {
		w.pods(n, w.class(cluster.PodClass{Requests: size(4 - rooms[n])}), 1)
		w.keep(n)
	}
	w.p.UtilizationThreshold = 9
	w.idle(10*time.Minute, "a")
	return w
}

// wide is a class of pods that are spread over hosts with a large maxSkew.
func (w *world) wide(cores float64, selector map[string]string) int {
	class := w.spread(hostname, func(s *cluster.Spread) { s.MaxSkew = 9 })
	w.s.Classes[class].Requests, w.s.Classes[class].NodeSelector = size(cores), selector
	return class
}

// TestOtherPlaces: where the first places of spread pods leave one without any, the emptiest nodes are tried; pods that depend on nobody
// go to the first nodes then too.
func TestOtherPlaces(t *testing.T) {
	ssd := map[string]string{"disk": "ssd"}
	w := sizes(map[string]float64{"b": 2, "c": 3.9, "d": 2.1, "e": 3}, "b", "c", "d", "e")
	w.s.Classes[0].NodeSelector = ssd // only b takes it
	w.node("b").Labels["disk"] = "ssd"
	w.node("e").Labels["disk"] = "hdd"
	w.pods("a", w.wide(2, nil), 1) // has the first place on b
	w.pods("a", 0, 1)
	w.pods("a", w.class(cluster.PodClass{Requests: size(2.1)}), 1) // has room on d and e
	w.pods("a", w.class(cluster.PodClass{Requests: size(2), NodeSelector: map[string]string{"disk": "hdd"}}), 1)
	w.decide()
	if got, want := w.fate("a"), "cordon a [D1] utilisation 178%, 4 pods to move"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWavesAnywhere: a drain in waves has to end whether pods go to the first nodes or to the emptiest ones.
func TestWavesAnywhere(t *testing.T) {
	const blocked = "D6 PodDisruptionBudget default/web lets 1 of its 3 pods here go at once, and no more before they are bound, which their topology spread does not allow while it counts this node and its pods (nodeTaintsPolicy: Ignore): the drain would not end"
	for _, c := range []struct {
		name  string
		b, c  float64
		disks string // of b
		want  string
	}{
		{"either way", 3, 2.1, "", "cordon a [D1] utilisation 102%, 3 pods to move"},
		{"the emptiest node is the place of the second pod", 2, 2.1, "", blocked},
		{"the first node is the place of the second pod", 2.1, 3, "ssd", blocked},
	} {
		w := sizes(map[string]float64{"b": c.b, "c": c.c}, "b", "c")
		second := w.wide(2.1, nil)
		if c.disks != "" {
			w.node("b").Labels["disk"] = c.disks
			w.s.Classes[second].NodeSelector = map[string]string{"disk": c.disks}
		}
		w.pods("a", 0, 1)
		w.pods("a", second, 1)
		w.pods("a", 0, 1)
		w.guard("a", 1, 0, 1, 2)
		w.decide()
		if got := w.fate("a"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRestOfAMovedNode: the pods that a drain leaves alone go with the node, once, also where the pods that it moves wait for that.
func TestRestOfAMovedNode(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, company := range []bool{false, true} {
			w := hosts(func(w *world) int {
				return w.spread(hostname, func(s *cluster.Spread) { s.HonorTaints = !late })
			}, "a", "b", "c")
			for _, n := range []string{"a", "b", "c"} {
				w.node(n).Labels[zone] = "1"
			}
			cache := w.class(cluster.PodClass{Labels: map[string]string{"app": "cache"}, Requests: size(1)})
			wants := w.class(cluster.PodClass{Requests: size(1), PodAffinity: []cluster.PodTerm{{TopologyKey: zone, Selector: is("cache"), Namespaces: []string{"default"}}}})
			w.pods("a", cache, 1)[1].Owner = &cluster.Owner{Kind: "DaemonSet", UID: "ds"}
			if company {
				w.pods("c", cache, 1)
			}
			if w.begin(); !w.move("a") || w.RelocationState().State.Passes(wants, w.ByName["b"]) != company {
				t.Errorf("late %v, with company %v", late, company)
			}
		}
	}
}

package scaledown

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

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
		rooms := func() string { return fmt.Sprint(w.onBoard().Room(w.ByName["b"]), w.board.Room(w.ByName["c"])) }
		before := rooms()
		w.Decide()
		w.wantFate(t, c.name, "a", c.want)
		kept := [2]int{}
		for i, n := range []string{"b", "c"} {
			for _, h := range w.at(n).Headroom {
				kept[i] += h.Count
			}
		}
		if kept != c.kept {
			t.Errorf("%s: %v are kept, want %v", c.name, kept, c.kept)
		}
		if after := rooms(); (after == before) != (c.want == stays) {
			t.Errorf("%s: room %s after %s", c.name, after, before)
		}
	}
}

// TestHeadroomLooks: looking for room for headroom is paid for, and without looks the node stays.
func TestHeadroomLooks(t *testing.T) {
	for looks, want := range map[int]bool{1000: true, -1: false} {
		w := idleNode()
		w.node("a").Pods, w.node("b").Pods = nil, nil
		w.p.Headroom = []cluster.Headroom{{Name: "spare", Piece: cluster.PodClass{Requests: size(1)}, Count: 1}}
		w.begin()
		w.at("a").KeepHeadroom(len(w.Snapshot.Classes)-1, 1)
		w.empty(w.ByName["a"], nil)
		w.looks = looks
		if _, ok := w.relocateHeadroom(w.ByName["a"]); ok != want || ok && w.looks == looks {
			t.Errorf("%d looks: %v, %d left", looks, ok, w.looks)
		}
	}
}

// TestPlaces: pods go to nodes that stay for sure first, to those that are replaced after them, and to no other.
func TestPlaces(t *testing.T) {
	w := idleNode()
	w.group("pool2", "d")
	w.unready("c", time.Hour)
	w.replace("a")
	w.begin()
	w.at("b").Removing = true
	m, left := w.onBoard().Mark(), w.place(0, 9, false)
	var got []string
	for _, p := range w.board.Placed(m) {
		got = append(got, fmt.Sprint(w.Nodes[p.Node].Name, p.Count))
	}
	if fmt.Sprint(got, left) != "[d4 a3] 2" {
		t.Errorf("%v, %d left", got, left)
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

// TestEmptiest: pods that depend on others go to the node with most room where that is asked, and to the first otherwise.
func TestEmptiest(t *testing.T) {
	for _, c := range []struct {
		name            string
		pods            [4]int // plain ones on a to d
		emptiest, first string // where the pod of x goes
	}{
		{"all are empty", [4]int{0, 0, 0, 0}, "a", "a"},
		{"one is", [4]int{3, 2, 1, 2}, "c", "a"},
		{"the last is", [4]int{3, 2, 2, 0}, "d", "a"},
		{"the first is full", [4]int{4, 3, 2, 3}, "c", "b"},
	} {
		for _, emptiest := range []bool{true, false} {
			w := newWorld()
			w.group("pool", "a", "b", "c", "d", "x")
			for i, n := range []string{"a", "b", "c", "d"} {
				w.pods(n, 0, c.pods[i])
			}
			class := w.alone(zone)
			w.pods("x", class, 1)
			w.begin()
			a := w.beginMove(nil)
			w.empty(w.ByName["x"], w.DrainPlanOf(w.at("x")).Classes)
			left := w.place(int32(class), 1, emptiest)
			want := map[bool]string{true: c.emptiest, false: c.first}[emptiest]
			if got := w.board.Placed(a.mark); left != 0 || len(got) != 1 || string(w.Nodes[got[0].Node].Name) != want {
				t.Errorf("%s, emptiest %v: %d left, %v, want %s", c.name, emptiest, left, got, want)
			}
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
		w.wantFate(t, c.name, "a", c.want)
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
			w.pods("a", cache, 1)[1].Owner = daemonSet
			if company {
				w.pods("c", cache, 1)
			}
			if w.begin(); !w.move("a") || w.Constraints().Passes(wants, w.ByName["b"]) != company {
				t.Errorf("late %v, with company %v", late, company)
			}
		}
	}
}

// TestRestOfANodeWithoutSpread: so it is where no pod of the cluster is spread.
func TestRestOfANodeWithoutSpread(t *testing.T) {
	w := newWorld()
	w.group("pool", "a", "b")
	cache := w.class(cluster.PodClass{Labels: map[string]string{"app": "cache"}, Requests: size(1)})
	wants := w.class(cluster.PodClass{Requests: size(1), PodAffinity: []cluster.PodTerm{{TopologyKey: zone, Selector: is("cache"), Namespaces: []string{"default"}}}})
	for _, n := range []string{"a", "b"} {
		w.node(n).Labels[zone] = "1"
	}
	w.pods("a", cache, 1)[0].Owner = daemonSet
	w.begin()
	before := w.Constraints().Passes(wants, w.ByName["b"])
	if !before || !w.move("a") || w.Constraints().Passes(wants, w.ByName["b"]) {
		t.Error("the company of a goes with it")
	}
}

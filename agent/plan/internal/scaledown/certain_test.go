package scaledown

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// hosts is a cluster of nodes, each with a pod of a class.
func hosts(class func(w *world) int, nodes ...string) *world {
	w := newWorld()
	w.group("pool", nodes...)
	k := class(w)
	for _, n := range nodes {
		w.pods(n, k, 1)
	}
	return w
}

// TestCertain: whether pods find room wherever kube-scheduler puts each of them.
func TestCertain(t *testing.T) {
	any := func(*world) int { return 0 }
	alone := func(w *world) int { return w.alone(hostname) }
	none := func(*world) {}
	noRoom := func(w *world, nodes ...string) {
		full := w.class(cluster.PodClass{Requests: size(3)})
		for _, n := range nodes {
			w.pods(n, full, 1)
		}
	}
	for _, c := range []struct {
		name   string
		class  func(w *world) int
		change func(w *world)
		goes   string // nodes that go in this round
		ask    asked
	}{
		{"room", any, none, "", asked{"a", 0, "", true}},
		{"no room", any, func(w *world) { noRoom(w, "b", "c", "d") }, "", asked{"a", 0, "", false}},
		{"an empty node", any, func(w *world) { w.node("a").Pods = nil; w.begin().looks = 0 }, "", asked{"a", 0, "", true}},
		{"too few looks are left", any, func(w *world) { w.begin().looks = 3 }, "", asked{"a", 0, "", false}},
		{"room on a new machine", any, func(w *world) { noRoom(w, "b", "c", "d") }, "", asked{"a", 1, "", true}},
		{"no room on a new machine", func(w *world) int {
			return w.class(cluster.PodClass{Requests: size(1), NodeSelector: map[string]string{"disk": "ssd"}})
		}, none, "", asked{"a", 1, "", false}},
		{"room on a node that goes", any, func(w *world) { noRoom(w, "b", "c") }, "d", asked{"a", 0, "", false}},
		{"room on a node that would go and stays", any, func(w *world) { noRoom(w, "b", "c") }, "d", asked{"a", 0, "d", true}},
		{"room on a node that is not Ready", any, func(w *world) { noRoom(w, "b", "c"); w.unready("d", time.Hour) }, "", asked{"a", 0, "", false}},
		{"apart, and a host without one", alone, func(w *world) { w.node("d").Pods = nil }, "", asked{"a", 0, "", true}},
		{"apart, and a new machine", alone, none, "", asked{"a", 1, "", true}},
		{"apart, and a pod like it waits", alone, func(w *world) { w.node("d").Pods = nil; w.waits(1, 1) }, "", asked{"a", 0, "", false}},
		{"apart, of the first class, and a pod like it waits", func(w *world) int { w.s.Classes = nil; return w.alone(hostname) }, func(w *world) { w.node("d").Pods = nil; w.waits(0, 1) }, "", asked{"a", 0, "", false}},
		{"apart, and another pod waits", alone, func(w *world) { w.node("d").Pods = nil; w.pods("a", 0, 1); w.waits(0, 1) }, "", asked{"a", 0, "", true}},
		{"apart, and a pod waits that is apart from others", alone, func(w *world) {
			w.node("d").Pods = nil
			other := w.class(cluster.PodClass{Labels: map[string]string{"app": "x"}, Requests: size(1), PodAntiAffinity: []cluster.PodTerm{{TopologyKey: hostname, Selector: is("x"), Namespaces: []string{"default"}}}})
			w.waits(other, 1)
		}, "", asked{"a", 0, "", true}},
		{"any pod, where others are apart", alone, func(w *world) { w.node("a").Pods[0].Class = 0 }, "", asked{"a", 0, "", true}},
	} {
		w := hosts(c.class, "a", "b", "c", "d")
		c.change(w)
		looks := 1000
		if w.Planner != nil {
			looks = w.looks
		}
		w.decideNothing()
		w.looks = looks
		for _, i := range w.indexes(c.goes) {
			w.Nodes[i].Removing = true
		}
		for range 2 {
			if got := w.Certain(w.indexes(c.ask.from), w.indexes(c.ask.idle), w.bought(c.ask.machines), c.ask.machines); got != c.ask.want {
				t.Errorf("%s: %v", c.name, got)
			}
		}
	}
}

// TestUncertain: the first node goes whatever may become of its pods, and few are refused.
func TestUncertain(t *testing.T) {
	w := idleNode().begin()
	c := &Candidate{Node: w.ByName["a"]}
	for _, x := range []struct {
		refused int
		waits   bool
	}{{mostUncertain - 1, false}, {mostUncertain, true}} {
		w.moving, w.refused = 1, x.refused
		if got := w.uncertain(c) != ""; got != x.waits {
			t.Errorf("%d were refused: waits %v", x.refused, got)
		}
	}
	if w.moving = 0; w.uncertain(c) != "" {
		t.Error("the first node waits")
	}
	w.Nodes[c.Node].Pods, w.Nodes[c.Node].Facts.DrainKnown = nil, false
	w.Nodes[c.Node].Facts.Drain.Movable = 0
	if w.noteGoing(c.Node); w.moving != 0 || len(w.going) != 1 {
		t.Errorf("an empty node: %d have pods that must move", w.moving)
	}
	if w.noteGoing(w.ByName["b"]); w.moving != 1 || len(w.going) != 2 {
		t.Errorf("a node with pods: %d have pods that must move", w.moving)
	}
}

package scaledown

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// is selects the pods of an app.
func is(app string) *cluster.Selector {
	return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}
}

// spread is a class of pods of one core that are spread, with a maxSkew of 1 and nodeTaintsPolicy Ignore.
func (w *world) spread(key string, change func(*cluster.Spread)) int {
	s := cluster.Spread{TopologyKey: key, MaxSkew: 1, Selector: is("web")}
	change(&s)
	return w.class(cluster.PodClass{Labels: map[string]string{"app": "web"}, Requests: size(1), Spread: []cluster.Spread{s}})
}

// TestInTurn: a node whose pods are bound only when its Node object is gone goes alone. A pod on each of three nodes is spread over hosts; d is empty, and kept.
func TestInTurn(t *testing.T) {
	const goesToo, moved = "cordon c [D1] utilisation 25%, 1 pod to move", "D9 pods of another node that goes count on it"
	const first = "D13 not needed, and waits: 1 pod of it can be bound only when its Node object is gone (nodeTaintsPolicy: Ignore), and that of a first"
	const waits = "D13 not needed, and waits: 1 pod of it can be bound only when its Node object is gone (nodeTaintsPolicy: Ignore), and others like them wait for a place now"
	honor := func(s *cluster.Spread) { s.HonorTaints = true }
	ignore := func(*cluster.Spread) {}
	none := func(*world) {}
	pending := func(w *world) { w.waits(1, 1) }
	plain := func(w *world) { // in place of the pods of a and c
		w.node("a").Pods[0].Class, w.node("c").Pods[0].Class = 0, 0
		w.keep("b")
	}
	ends := func(w *world) { // and counts for the spread until its Node object is gone
		w.node("d").Labels[hostname], w.node("d").Deleting = "d", true
	}
	for _, c := range []struct {
		name   string
		spread func(*cluster.Spread)
		change func(w *world)
		want   [3]string // of a, b and c
	}{
		{"nodeTaintsPolicy Ignore", ignore, none, [3]string{goes, moved, first}},
		{"nodeTaintsPolicy Honor", honor, none, [3]string{goes, moved, goesToo}},
		{"a maxSkew that lets the pods wait for nothing", func(s *cluster.Spread) { s.MaxSkew = 3 }, none, [3]string{goes, moved, goesToo}},
		{"a pod like it waits", ignore, pending, [3]string{waits, moved, waits}},
		{"a pod like it is to be judged", ignore, func(w *world) { pending(w); w.s.Pods[0].Unschedulable = 0 }, [3]string{goes, moved, first}},
		{"another pod waits", ignore, func(w *world) { w.waits(0, 1) }, [3]string{goes, moved, first}},
		{"no spread pod on it, and one waits", ignore, func(w *world) { plain(w); pending(w) }, [3]string{goes, "D5 annotated autoscaler-agent/keep", goesToo}},
		{"no spread pod on it, and one waits for another node", ignore, func(w *world) { plain(w); pending(w); ends(w) },
			[3]string{"D13 not needed, and waits: pods wait until the Node object of d is gone, and their topology spread would count this node too (nodeTaintsPolicy: Ignore)", "D5 annotated autoscaler-agent/keep",
				"D13 not needed, and waits: pods wait until the Node object of d is gone, and their topology spread would count this node too (nodeTaintsPolicy: Ignore)"}},
		{"no spread pod on it, and one is to be judged", ignore, func(w *world) { plain(w); pending(w); w.s.Pods[0].Unschedulable = 0; ends(w) },
			[3]string{goes, "D5 annotated autoscaler-agent/keep", goesToo}},
		{"no spread pod on it, and one waits for no node", honor, func(w *world) { plain(w); pending(w); ends(w) },
			[3]string{goes, "D5 annotated autoscaler-agent/keep", goesToo}},
	} {
		w := newWorld()
		w.group("pool", "a", "b", "c", "d")
		class := w.spread(hostname, c.spread)
		for _, n := range []string{"a", "b", "c"} {
			w.pods(n, class, 1)
		}
		w.node("d").Labels = map[string]string{}
		w.node("d").Unschedulable = true
		w.idle(11*time.Minute, "a", "b", "c")
		c.change(w)
		w.decide()
		for i, n := range []string{"a", "b", "c"} {
			if got := w.fate(n); got != c.want[i] {
				t.Errorf("%s: %s: %q, want %q", c.name, n, got, c.want[i])
			}
		}
	}
}

// TestRedundancy: a node with the only pod of its zone stays, unless somebody asked for it to go or it is not Ready.
func TestRedundancy(t *testing.T) {
	const lost = "D7 pod default/a-0 has room nowhere else without less redundancy: its topology spread over topology.kubernetes.io/zone has pods in 2 domains and would have them in 1 (autoscaler-agent/scale-down-requested lets the node go)"
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"of its own accord", func(*world) {}, lost},
		{"another one of the zone stays", func(w *world) { w.node("c").Labels[zone] = "1"; w.node("c").Pods[0].Class = 1 }, goes},
		{"beside a larger pod", func(w *world) {
			w.s.Classes[1].Requests = size(0.5)
			w.pods("a", 0, 1)
		}, lost},
		{"requested", func(w *world) { w.request("a") }, "cordon a [D20] utilisation 25%, 1 pod to move"},
		{"not Ready", func(w *world) { w.unready("a", time.Hour) }, "cordon a [D2] utilisation 25%, 1 pod to move"},
	} {
		w := idleNode()
		class := w.spread(zone, func(s *cluster.Spread) { s.MaxSkew = 2 })
		w.node("a").Labels[zone] = "1"
		w.node("b").Labels[zone] = "2"
		w.node("c").Labels[zone] = "2"
		w.node("a").Pods[0].Class = class
		w.node("b").Pods[0].Class = class
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
	}
}

// TestLookEmptied: a drain is looked at twice, with the emptied node and without it, and leaves nothing behind.
func TestLookEmptied(t *testing.T) {
	w := hosts(func(w *world) int { return w.spread(hostname, func(*cluster.Spread) {}) }, "a", "b", "c").begin()
	b := w.ByName["b"]
	for found := 1; found <= 3; found++ { // at the look that something is found at; 3: nothing is
		looks := 0
		late := w.LookEmptied(w.ByName["a"], func(st *fit.State) bool {
			looks++
			if open := st.Passes(1, b); open != (looks == 2) { // a counts with no pod at the first look, so that maxSkew closes b
				t.Errorf("look %d: b is open: %v", looks, open)
			}
			return looks == found
		})
		if late != (found == 2) || looks != min(found, 2) {
			t.Errorf("found at look %d: %d looks, late %v", found, looks, late)
		}
	}
}

// TestEvictedInWaves: of which budgets a node has more pods than may go at once, where some are spread.
func TestEvictedInWaves(t *testing.T) {
	const words = "PodDisruptionBudget default/web lets 1 of its 2 pods here go at once, and no more before they are bound, which their topology spread does not allow while it counts this node and its pods (nodeTaintsPolicy: Ignore): the drain would not end"
	for _, c := range []struct {
		name    string
		allowed int
		classes [2]int
		want    string
	}{
		{"both are spread", 1, [2]int{1, 1}, words},
		{"one is spread", 1, [2]int{1, 0}, words},
		{"the other is spread", 1, [2]int{0, 1}, words},
		{"none is spread", 1, [2]int{0, 0}, ""},
		{"as many as may go", 2, [2]int{1, 1}, ""},
	} {
		w := hosts(func(w *world) int { return w.spread(hostname, func(*cluster.Spread) {}) }, "a", "b")
		p := w.pods("a", 0, 1)
		p[0].Class, p[1].Class = c.classes[0], c.classes[1]
		w.guard("a", c.allowed, 0, 1)
		w.begin()
		if got := w.evictedInWaves(w.at("a")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestDrainInWaves: a drain of two pods under a budget of one ends where the first is bound while the second still runs.
func TestDrainInWaves(t *testing.T) {
	cordoned := "cordon a [D1] utilisation 50%, 2 pods to move"
	const blocked = "D6 PodDisruptionBudget default/web lets 1 of its 2 pods here go at once, and no more before they are bound, which their topology spread does not allow while it counts this node and its pods (nodeTaintsPolicy: Ignore): the drain would not end"
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"no more pods elsewhere", func(*world) {}, cordoned},
		{"two pods on each other node", func(w *world) { w.pods("b", 1, 1); w.pods("c", 1, 1) }, blocked},
		{"nodeTaintsPolicy Honor", func(w *world) { w.pods("b", 1, 1); w.pods("c", 1, 1); w.s.Classes[1].Spread[0].HonorTaints = true }, cordoned},
		{"a budget for both", func(w *world) { w.pods("b", 1, 1); w.pods("c", 1, 1); w.s.Budgets[0].Allowed = 2 }, cordoned},
		{"a pod that nobody would miss", func(w *world) { // it needs no place, and takes none of the budget in this play
			w.node("a").Pods[1].Class = w.class(cluster.PodClass{Requests: size(5), Priority: -11})
			w.pods("a", 0, 1)[2].Class = 1
			w.guard("a", 1, 2)
		}, "cordon a [D1] utilisation 50%, 3 pods to move"},
		{"a pod that nobody would miss, and two pods on each other node", func(w *world) {
			w.pods("b", 1, 1)
			w.pods("c", 1, 1)
			w.node("a").Pods[1].Class = w.class(cluster.PodClass{Requests: size(0.1), Priority: -11})
			w.pods("a", 0, 1)[2].Class = 1
			w.guard("a", 1, 2)
		}, strings.Replace(blocked, "2 pods", "3 pods", 1)},
	} {
		w := hosts(func(w *world) int { return w.spread(hostname, func(*cluster.Spread) {}) }, "a", "b", "c")
		w.pods("a", 1, 1)
		w.guard("a", 1, 0, 1)
		w.keep("b")
		w.keep("c")
		w.p.UtilizationThreshold = 0.8
		w.idle(10*time.Minute, "a")
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
	}
}

// TestBlockedDrainTakesNothingBack: what moved before a node whose drain would not end still counts. The pod of d has taken the only place
// for that of e.
func TestBlockedDrainTakesNothingBack(t *testing.T) {
	w := hosts(func(w *world) int { return w.spread(hostname, func(*cluster.Spread) {}) }, "a", "b", "c")
	for _, n := range []string{"a", "b", "c"} {
		w.pods(n, 1, 1)
		w.node(n).Labels["for"] = "web"
	}
	w.s.Classes[1].NodeSelector = map[string]string{"for": "web"}
	w.guard("a", 1, 0, 1)
	w.group("rest", "d", "e", "f")
	db := w.alone(hostname)
	w.s.Classes[db].NodeSelector = map[string]string{"for": "db"}
	for _, n := range []string{"d", "e", "f"} {
		w.node(n).Labels["for"] = "db"
	}
	w.pods("d", db, 1)
	w.pods("e", db, 1)
	if w.begin(); !w.moves("e") || !w.move("d") {
		t.Fatal("node f has a place for either")
	}
	i := w.ByName["a"]
	if r := w.relocate(i, w.DrainPlanOf(&w.Nodes[i]).Classes, false); r.Rule != decision.RuleBlocked {
		t.Fatalf("the drain of a: %+v", r)
	}
	if w.moves("e") {
		t.Error("the pod of d still takes the only place for that of e")
	}
}

// TestSpreadKeepsOff: a node that stays because of topology spread alone says so. Node a has a pod, b and c have three.
func TestSpreadKeepsOff(t *testing.T) {
	const noRoom = "D7 pod default/a-0 has room nowhere else"
	words := func(more string) string {
		return noRoom + ": its topology spread keeps it off nodes that have room (kubernetes.io/hostname, maxSkew 1" + more + ")"
	}
	full := func(w *world) { w.pods("b", 0, 1); w.pods("c", 0, 1) }
	spread := func(w *world, change func(*cluster.Spread)) { // b and c have pods like it, and d, without room, has none
		class := w.spread(hostname, change)
		for _, n := range []string{"a", "b", "c"} {
			w.node(n).Pods[0].Class = class
		}
		w.node("d").Labels[hostname] = "d"
	}
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"no spread", full, noRoom},
		{"spread", func(w *world) { spread(w, func(*cluster.Spread) {}) }, words(", nodeTaintsPolicy Ignore")},
		{"spread, taints honoured", func(w *world) { spread(w, func(s *cluster.Spread) { s.HonorTaints = true }) }, words(", nodeTaintsPolicy Honor")},
		{"spread, and no room", func(w *world) { spread(w, func(*cluster.Spread) {}); full(w) }, noRoom},
		{"spread over zones, and room on the node alone", func(w *world) {
			class := w.spread(zone, func(*cluster.Spread) {})
			for n, z := range map[string]string{"a": "1", "b": "1", "c": "2"} {
				w.node(n).Pods[0].Class, w.node(n).Labels[zone] = class, z
			}
			w.node("b").Pods[1].Class = class
			full(w)
		}, noRoom},
		{"spread, and kept off by others", func(w *world) {
			class := w.alone(hostname)
			c := &w.s.Classes[class]
			c.Spread = []cluster.Spread{{TopologyKey: zone, MaxSkew: 1, Selector: is("db")}}
			for _, n := range []string{"a", "b", "c"} {
				w.node(n).Pods[0].Class = class
				w.node(n).Labels[zone] = "1"
			}
		}, noRoom},
	} {
		w := idleNode()
		w.group("pool2", "d")
		w.node("d").Labels = map[string]string{}
		w.pods("d", w.class(cluster.PodClass{Requests: size(4)}), 1)
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
	}
	for _, c := range []struct {
		minDomains int
		want       string
	}{{0, "zone, maxSkew 2, nodeTaintsPolicy Ignore"}, {1, "zone, maxSkew 2, nodeTaintsPolicy Ignore"}, {2, "zone, maxSkew 2, minDomains 2, nodeTaintsPolicy Ignore"}} {
		if got := spreadWords(&cluster.Spread{TopologyKey: "zone", MaxSkew: 2, MinDomains: c.minDomains}); got != c.want {
			t.Errorf("minDomains %d: %q, want %q", c.minDomains, got, c.want)
		}
	}
}

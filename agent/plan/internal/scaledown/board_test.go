package scaledown

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// moves tells whether the pods of a node have room elsewhere, and takes nothing.
func (w *world) moves(node string) bool {
	i := w.ByName[cluster.NodeName(node)]
	return w.CanRelocate(i, w.DrainPlanOf(&w.Nodes[i]).Classes)
}

// move takes room for the pods of a node elsewhere, and the node goes.
func (w *world) move(node string) bool {
	i := w.ByName[cluster.NodeName(node)]
	r := w.relocate(i, w.DrainPlanOf(&w.Nodes[i]).Classes, false)
	w.Nodes[i].Removing = r.Rule == ""
	return r.Rule == ""
}

func apart(w *world) int { return w.alone(hostname) }

// TestMovesAreRemembered: a pod that was moved counts where it goes, and so does one that this round's scale-up counts on a node.
func TestMovesAreRemembered(t *testing.T) {
	w := hosts(apart, "a", "b", "c", "d")
	w.node("c").Pods = nil
	if w.begin(); !w.moves("a") || !w.moves("b") || !w.move("a") || w.moves("b") {
		t.Error("the pod of a takes the only place for that of b")
	}
	w = hosts(apart, "a", "b", "c", "d")
	w.node("c").Pods = nil
	st := w.begin().NewState()
	st.Put(1, w.ByName["c"], 1)
	if w.SetApplied(st); w.moves("a") {
		t.Error("a pending pod counts on the only place")
	}
}

// TestOtherZonesMatter: where pods keep others out of a zone, a host that was no place is one when they have gone.
func TestOtherZonesMatter(t *testing.T) {
	w := newWorld()
	w.group("pool", "a", "b", "x", "z")
	for n, k := range map[string]string{"a": "1", "b": "2", "x": "3", "z": "2"} {
		w.node(n).Labels[zone] = k
	}
	w.pods("a", w.class(cluster.PodClass{Requests: size(3)}), 1)
	class := w.alone(hostname)
	w.s.Classes[class].Requests = size(2)
	w.pods("x", class, 1)
	w.pods("z", w.class(cluster.PodClass{Labels: map[string]string{"app": "x"}, Requests: size(1), PodAntiAffinity: []cluster.PodTerm{{TopologyKey: zone, Selector: is("db"), Namespaces: []string{"default"}}}}), 1)
	if w.begin(); w.moves("x") || !w.move("z") || !w.moves("x") {
		t.Error("node b is a place for the pod of x when that of z has gone to another zone")
	}
}

// TestSeveralToOneNode: pods that keep off others, and not off each other, may go to one node.
func TestSeveralToOneNode(t *testing.T) {
	w := newWorld()
	w.group("pool", "a", "b", "c")
	w.pods("a", w.class(cluster.PodClass{Requests: size(1), PodAntiAffinity: []cluster.PodTerm{{TopologyKey: hostname, Selector: is("db"), Namespaces: []string{"default"}}}}), 3)
	w.pods("c", w.class(cluster.PodClass{Labels: map[string]string{"app": "db"}, Requests: size(1)}), 1)
	if w.begin(); !w.moves("a") {
		t.Error("b has room for all three")
	}
}

// TestCordonedNode: a spread constraint with nodeTaintsPolicy Honor does not count an emptied node, and one with Ignore does until its
// Node object is gone.
func TestCordonedNode(t *testing.T) {
	for _, honor := range []bool{false, true} {
		w := hosts(func(w *world) int { return w.spread(hostname, func(s *cluster.Spread) { s.HonorTaints = honor }) }, "a", "b", "c")
		w.begin()
		for range 2 {
			i := w.ByName["a"]
			if r := w.Relocation(i, w.DrainPlanOf(&w.Nodes[i]).Classes, true); r.Rule != "" || (len(r.late) == 0) != honor {
				t.Errorf("honor %v: %+v", honor, r)
			}
		}
	}
}

// TestDrainedNodeIsGone: the pods of a node that is being removed are judged as if its Node object were gone.
func TestDrainedNodeIsGone(t *testing.T) {
	w := hosts(func(w *world) int { return w.spread(hostname, func(*cluster.Spread) {}) }, "a", "b", "c")
	w.mark("a", decision.RuleUnneeded, time.Minute)
	w.begin().Resume()
	if got, want := w.fate("a"), "evict default/a-0 from a; D14 draining: 1 to evict, 0 wait for a budget, 0 terminating"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRemovedNode: with a node its pods go that its drain leaves alone. A pod that wants company in its zone finds none there then, but where another is.
func TestRemovedNode(t *testing.T) {
	for _, c := range []struct {
		name          string
		change        func(w *world, p *cluster.Pod)
		before, after bool // the pod of a is company
	}{
		{"finished", func(_ *world, p *cluster.Pod) { p.Finished = true }, false, false},
		{"terminating", func(w *world, p *cluster.Pod) { p.Deleting = cluster.At(w.s.Now) }, true, false},
		{"of a DaemonSet", func(_ *world, p *cluster.Pod) { p.Owner = daemonSet }, true, false},
		{"runs to its end", func(_ *world, p *cluster.Pod) { p.SafeToEvict = cluster.SafeOnCompletion }, true, false},
		{"nobody would miss it", func(w *world, p *cluster.Pod) {
			p.Class = w.class(cluster.PodClass{Labels: map[string]string{"app": "cache"}, Priority: -11, Requests: size(1)})
		}, true, false},
		{"moved by its drain, which takes it off itself", func(*world, *cluster.Pod) {}, true, true},
	} {
		for _, company := range []bool{false, true} {
			w := newWorld()
			w.group("pool", "a", "b", "c")
			for _, n := range []string{"a", "b", "c"} {
				w.node(n).Labels[zone] = "1"
			}
			cache := w.class(cluster.PodClass{Labels: map[string]string{"app": "cache"}, Requests: size(1)})
			wants := w.class(cluster.PodClass{Requests: size(1), PodAffinity: []cluster.PodTerm{{TopologyKey: zone, Selector: is("cache"), Namespaces: []string{"default"}}}})
			c.change(w, &w.pods("a", cache, 1)[0])
			if company {
				w.pods("c", cache, 1)
			}
			w.begin()
			st := w.Constraints()
			b := w.ByName["b"]
			if got := st.Passes(wants, b); got != (c.before || company) {
				t.Errorf("%s, company %v: before: %v", c.name, company, got)
			}
			w.remove(w.ByName["a"])
			if got := st.Passes(wants, b); got != (c.after || company) {
				t.Errorf("%s, company %v: after: %v", c.name, company, got)
			}
		}
	}
}

// TestRemovedNodeThatWasDrained: a volume that one pod at a time may use is not free before the pod on a drained node has ended.
func TestRemovedNodeThatWasDrained(t *testing.T) {
	w := newWorld()
	w.group("pool", "a", "b", "c")
	class := w.class(cluster.PodClass{Requests: size(1), Volumes: []cluster.Volume{{Claim: "default/data", OnePod: true}}})
	w.pods("a", class, 1)[0].SafeToEvict = cluster.SafeOnCompletion
	w.mark("a", decision.RuleRequested, time.Minute)
	w.request("a")
	w.begin().Resume()
	if w.Constraints().Passes(class, w.ByName["b"]) {
		t.Error("the pod of a still uses the volume")
	}
}

// TestLostDomains: the first of the domains that a workload would lose is named, and hosts are none.
func TestLostDomains(t *testing.T) {
	w := hosts(func(w *world) int {
		class := w.spread(hostname, func(s *cluster.Spread) { s.MaxSkew = 3 })
		for _, key := range []string{zone, "rack", "room"} {
			w.s.Classes[class].Spread = append(w.s.Classes[class].Spread, cluster.Spread{TopologyKey: key, MaxSkew: 3, Selector: is("web")})
		}
		return class
	}, "a", "b")
	for n, k := range map[string]string{"a": "1", "b": "2"} {
		w.node(n).Labels[zone], w.node(n).Labels["rack"], w.node(n).Labels["room"] = "1", k, k
	}
	i := w.begin().ByName["a"]
	want := "pod default/a-0 has room nowhere else without less redundancy: its topology spread over rack has pods in 2 domains and would have them in 1 (autoscaler-agent/scale-down-requested lets the node go)"
	if r := w.Relocation(i, w.DrainPlanOf(&w.Nodes[i]).Classes, true); r.Why != want || !r.Lost {
		t.Errorf("%+v", r)
	}
}

// TestCompanyComes: a host that was no place for want of company is one when company has been moved there.
func TestCompanyComes(t *testing.T) {
	w := newWorld()
	w.group("pool", "b", "x", "z")
	w.pods("x", w.class(cluster.PodClass{Requests: size(1), PodAffinity: []cluster.PodTerm{{TopologyKey: hostname, Selector: is("cache"), Namespaces: []string{"default"}}}}), 1)
	w.pods("z", w.class(cluster.PodClass{Labels: map[string]string{"app": "cache"}, Requests: size(3.5)}), 1)
	w.node("b").Allocatable = size(8)
	w.node("b").Allocatable.Pods = 110
	if w.begin(); w.moves("x") || !w.move("z") || !w.moves("x") {
		t.Error("node b is a place for the pod of x when that of z has come to it")
	}
}

package scaledown

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestRemovable: a node may go as far as it and its pods are concerned, however busy it is.
func TestRemovable(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   bool
	}{
		{"busy", func(*world) {}, true},
		{"kept", func(w *world) { w.keep("b") }, false},
		{"the cloud keeps machines", func(w *world) { w.s.Groups[0].Keeps = "a rollout" }, false},
		{"blocked", func(w *world) { w.guard("b", 0, 0) }, false},
		{"a pod runs to its end", func(w *world) { w.node("b").Pods[0].SafeToEvict = cluster.SafeOnCompletion }, false},
		{"a pod ends", func(w *world) { w.node("b").Pods[0].Deleting = cluster.At(w.s.Now) }, false},
	} {
		w := idleNode()
		c.change(w)
		w.begin()
		if got := w.Removable(w.ByName["b"]); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if w := idleNode().begin(); !w.Removable(w.ByName["a"]) || w.Moved(w.ByName["b"]) != 3 {
		t.Error("node a may go, and b has three pods")
	}
}

// TestSettled: consolidation waits where anything else goes on, and not because a machine has come.
func TestSettled(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   bool
	}{
		{"at rest", func(w *world) { w.begin() }, true},
		{"a node has come", func(w *world) { w.node("b").Created = w.s.Now; w.begin() }, true},
		{"the round grows", func(w *world) { w.begin().Grew = true }, false},
		{"a node goes", func(w *world) { w.begin().removals.empty = 1 }, false},
	} {
		w := idleNode()
		c.change(w)
		if got := w.Settled(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// alone adds a class of pods of one core that keep off each other on hosts, or over another key.
func (w *world) alone(key string) int {
	return w.class(cluster.PodClass{Labels: map[string]string{"app": "db"}, Requests: size(1),
		PodAntiAffinity: []cluster.PodTerm{{TopologyKey: key, Selector: is("db"), Namespaces: []string{"default"}}}})
}

const hostname, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

// asked is a question that consolidation asks: whether the pods of some nodes have room on the others and on so many machines.
type asked struct {
	from     string
	machines int
	idle     string // nodes that stay for them
	want     bool
}

func (w *world) indexes(names string) (out []int) {
	for _, n := range strings.Fields(names) {
		out = append(out, w.ByName[cluster.NodeName(n)])
	}
	return out
}

// TestFit: each question is asked twice, because an answer takes nothing.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		goes   string // nodes that go in this round, because nothing needs them
		ask    []asked
	}{
		{"room for one", func(*world) {}, "", []asked{{"a", 0, "", true}, {"b", 0, "", true}, {"a b", 0, "", false}, {"a b", 1, "", true}, {"a b c", 1, "", false}, {"a b c", 2, "", true}}},
		{"the last place", func(w *world) { w.pods("c", 0, 1) }, "", []asked{{"a", 0, "", true}, {"a b", 0, "", false}}},
		{"a node that goes is needed", func(w *world) { w.pods("c", 0, 1) }, "a", []asked{{"b", 0, "a", true}}},
		{"a node that goes is not needed", func(w *world) { w.node("c").Pods = nil }, "a", []asked{{"b", 0, "", true}}},
		{"a node that is drained", func(w *world) { w.mark("a", decision.RuleUnneeded, time.Minute); w.pods("c", 0, 1) }, "", []asked{{"b", 0, "", false}}},
		{"pods that keep off each other", func(w *world) {
			class := w.alone(hostname)
			for _, n := range []string{"a", "b", "c"} {
				w.node(n).Pods = nil
				w.pods(n, class, 1)
			}
		}, "", []asked{{"a b", 1, "", false}, {"a b", 2, "", true}, {"a", 0, "", false}}},
		{"pods that keep off each other, and an empty node", func(w *world) {
			class := w.alone(hostname)
			w.node("b").Pods = nil
			w.node("a").Pods[0].Class, w.node("c").Pods[0].Class = class, class
		}, "", []asked{{"a b", 0, "", false}, {"a", 0, "", true}}},
		{"the only pod of a zone", func(w *world) {
			class := w.spread(zone, func(s *cluster.Spread) { s.MaxSkew = 2 })
			for n, z := range map[string]string{"a": "1", "b": "2", "c": "2"} {
				w.node(n).Labels[zone] = z
			}
			w.node("a").Pods[0].Class, w.node("b").Pods[0].Class = class, class
		}, "", []asked{{"a", 0, "", false}}},
	} {
		w := idleNode()
		c.change(w)
		w.decideNothing()
		for _, i := range w.indexes(c.goes) {
			w.Nodes[i].Removing = true
		}
		before := w.removing()
		for _, q := range append(c.ask, c.ask...) {
			idle, ok := w.Fit(w.indexes(q.from), w.bought(q.machines), q.machines)
			var names []string
			for _, i := range idle {
				names = append(names, string(w.Nodes[i].Name))
			}
			if got := strings.Join(names, " "); ok != q.want || got != q.idle {
				t.Errorf("%s: %s by %d machines: %v, and %q stays", c.name, q.from, q.machines, ok, got)
			}
			if got := w.removing(); got != before {
				t.Errorf("%s: %q go, want %q", c.name, got, before)
			}
		}
	}
}

// decideNothing is a round up to where nodes are marked.
func (w *world) decideNothing() {
	w.begin()
	w.DrainInterrupted()
	w.Resume()
}

// bought is the group that machines would come in; nil: none come.
func (w *world) bought(machines int) *round.Group {
	if machines == 0 {
		return nil
	}
	return &w.Groups[0]
}

// removing are the nodes that go.
func (w *world) removing() string {
	var out []string
	for i := range w.Nodes {
		if w.Nodes[i].Removing {
			out = append(out, string(w.Nodes[i].Name))
		}
	}
	return strings.Join(out, " ")
}

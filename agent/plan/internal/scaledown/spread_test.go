package scaledown

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
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

// TestInTurn: a node whose pods are bound only when its Node object is gone goes alone. A pod on each of three nodes is spread over hosts.
func TestInTurn(t *testing.T) {
	const goesToo, moved = "cordon c [D1] utilisation 25%, 1 pod to move", "D9 pods of another node that goes count on it"
	for _, c := range []struct {
		name   string
		spread func(*cluster.Spread)
		change func(w *world)
		want   [3]string // of a, b and c
	}{
		{"nodeTaintsPolicy Ignore", func(*cluster.Spread) {}, func(*world) {},
			[3]string{goes, moved, "D13 not needed, and waits: 1 pod of it can be bound only when its Node object is gone (nodeTaintsPolicy: Ignore), and that of a first"}},
		{"nodeTaintsPolicy Honor", func(s *cluster.Spread) { s.HonorTaints = true }, func(*world) {}, [3]string{goes, moved, goesToo}},
		{"a maxSkew that lets the pods wait for nothing", func(s *cluster.Spread) { s.MaxSkew = 3 }, func(*world) {}, [3]string{goes, moved, goesToo}},
	} {
		w := newWorld()
		w.group("pool", "a", "b", "c")
		class := w.spread("kubernetes.io/hostname", c.spread)
		for _, n := range []string{"a", "b", "c"} {
			w.pods(n, class, 1)
		}
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
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"of its own accord", func(*world) {}, "D7 pod default/a-0 has room nowhere else without less redundancy: its topology spread over topology.kubernetes.io/zone has pods in 2 domains and would have them in 1 (autoscaler-agent/scale-down-requested lets the node go)"},
		{"requested", func(w *world) { w.request("a") }, "cordon a [D20] utilisation 25%, 1 pod to move"},
		{"not Ready", func(w *world) { w.unready("a", time.Hour) }, "cordon a [D2] utilisation 25%, 1 pod to move"},
	} {
		w := idleNode()
		class := w.spread("topology.kubernetes.io/zone", func(s *cluster.Spread) { s.MaxSkew = 2 })
		w.node("a").Labels["topology.kubernetes.io/zone"] = "1"
		w.node("b").Labels["topology.kubernetes.io/zone"] = "2"
		w.node("c").Labels["topology.kubernetes.io/zone"] = "2"
		w.node("a").Pods[0].Class = class
		w.node("b").Pods[0].Class = class
		c.change(w)
		w.decide()
		if got := w.fate("a"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

package packing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// withIn lets pods go only where a pod of an app is, on a host or in a zone.
func withIn(key, app string) term {
	return func(c *cluster.PodClass) {
		c.PodAffinity = append(c.PodAffinity, cluster.PodTerm{TopologyKey: key, Namespaces: []string{"default"}, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{app}}}}})
	}
}

// TestOneHost: where pods go that keep to one host: to the node that holds most of them, else to the machine that does.
func TestOneHost(t *testing.T) {
	host := "kubernetes.io/hostname"
	// Two pods go where others are: one node has room for one, the next for both.
	besideDB := func(w *world, terms ...term) {
		w.g("b").Template.Labels[zone] = "z"
		w.node("m", "b")
		w.node("n", "b")
		for i, n := range []string{"m", "n"} {
			w.run(n, w.pods(3-i, "db-of-"+n, 1000, func(c *cluster.PodClass) { c.Labels["app"] = "db" }))
		}
		w.pods(2, "web", 1000, append(terms, withIn(host, "db"))...)
	}
	starts := func(w *world, n *cluster.Node) { n.Ready, n.Created = cluster.StatusFalse, w.s.Now.Add(-time.Second) }
	for _, c := range []struct {
		name   string
		change func(*world)
		want   string
	}{
		{"a new machine", func(w *world) { w.pods(3, "web", 1000, withIn(host, "web")) }, "b:3"},
		{"more than one machine holds", func(w *world) { w.g("a").Max = 0; w.pods(6, "web", 1000, withIn(host, "web")) }, "b:4 left 2"},
		{"a node has room for all", func(w *world) { w.node("n", "b"); w.pods(3, "web", 1000, withIn(host, "web")) }, "n:3"},
		{"a node has room for some", func(w *world) { w.node("n", "a"); w.pods(3, "web", 1000, withIn(host, "web")) }, "n:2 left 1"},
		{"the second node has more room", func(w *world) {
			w.node("m", "a")
			w.node("n", "b")
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "n:3"},
		{"the first node has more room", func(w *world) {
			w.node("m", "b")
			w.node("n", "a")
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "m:3"},
		{"two nodes with as much", func(w *world) {
			w.node("m", "b")
			w.node("n", "b")
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "m:3"},
		{"a node that starts beside one that is Ready", func(w *world) {
			starts(w, w.node("m", "b"))
			w.node("n", "a")
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "n:2 left 1"},
		{"a node that is Ready beside one that starts", func(w *world) {
			w.node("m", "a")
			starts(w, w.node("n", "b"))
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "m:2 left 1"},
		{"a node that starts holds all", func(w *world) {
			starts(w, w.node("n", "b"))
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "n:3"},
		{"two nodes that start", func(w *world) {
			starts(w, w.node("m", "b"))
			starts(w, w.node("n", "a"))
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "m:3"},
		{"a node that starts holds less than a machine", func(w *world) {
			starts(w, w.node("n", "a"))
			w.pods(3, "web", 1000, withIn(host, "web"))
		}, "b:3"},
		{"a node that starts holds as many as a machine", func(w *world) {
			w.g("a").Max = 0
			starts(w, w.node("n", "b"))
			w.pods(5, "web", 1000, withIn(host, "web"))
		}, "n:4 left 1"},
		{"nothing is bought for them", func(w *world) { w.waiting(w.pods(3, "web", 1000, withIn(host, "web"))) }, "left 3"},
		{"nothing is bought for them, and a node starts", func(w *world) {
			starts(w, w.node("n", "a"))
			w.waiting(w.pods(3, "web", 1000, withIn(host, "web")))
		}, "n:2 left 1"},
		{"nothing is bought for them, and a machine is coming", func(w *world) {
			w.coming("b")
			w.waiting(w.pods(3, "web", 1000, withIn(host, "web")))
		}, "left 3"},
		{"too large for any machine", func(w *world) { w.pods(1, "web", 9000, withIn(host, "web")) }, "left 1"},
		{"pods that keep to one zone", func(w *world) {
			w.g("a").Template.Labels[zone], w.g("b").Template.Labels[zone] = "z", "z"
			w.pods(6, "web", 1000, withIn(zone, "web"))
		}, "b:4 a:2"},
		{"pods that go where others are", func(w *world) { besideDB(w) }, "m:1 n:1"},
		{"pods that keep to one zone, and away from a pod that waits", func(w *world) {
			for i, n := range []string{"m", "n"} {
				w.g("b").Template.Labels[zone] = "z"
				w.node(n, "b")
				w.run(n, w.pods(3-i, "db-of-"+n, 1000))
			}
			w.pods(1, "cache", 9000)
			w.pods(2, "web", 1000, withIn(zone, "web"), func(c *cluster.PodClass) {
				c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: host, Namespaces: []string{"default"}, Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"cache"}}}}}}
			})
		}, "m:1 n:1 left 1"},
		{"and are spread over hosts", func(w *world) {
			besideDB(w, spread(host), func(c *cluster.PodClass) { c.Spread[0].MaxSkew = 5 })
		}, "m:1 n:1"},
	} {
		w := newWorld("least-waste")
		w.group("a", 2)
		w.group("b", 4)
		c.change(w)
		p := w.packer()
		s := p.BestSolution()
		on := map[string]int{}
		var order []string
		for i := range s.Bins {
			name := ""
			if n := s.Bins[i].Node; n >= 0 {
				name = string(p.Nodes[n].Name)
			} else {
				name = string(p.Groups[s.Bins[i].Group].ID)
			}
			for _, x := range s.Bins[i].Portions {
				if on[name] == 0 {
					order = append(order, name)
				}
				on[name] += x.N
			}
		}
		var out []string
		for _, name := range order {
			out = append(out, fmt.Sprintf("%s:%d", name, on[name]))
		}
		if left := s.Unplaced(); left > 0 {
			out = append(out, fmt.Sprintf("left %d", left))
		}
		if got := strings.Join(out, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

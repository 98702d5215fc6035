package topology

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestStranding: which groups' first machine would open a zone that keeps spread pods out of the others.
func TestStranding(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		want   string
	}{
		{"no spread", func(w *world) { w.pods(3, "web", on(zone, "a")) }, "[false false false]"},
		{"a spread that each zone takes", func(w *world) { w.pods(3, "web", spread(zone, 1, "web")) }, "[false false false]"},
		{"a spread over hosts", func(w *world) { w.pods(3, "web", spread(KeyHostname, 1, "web"), on("disk", "ssd")) }, "[false false false]"},
		{"pods too large for a zone", func(w *world) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.pods(3, "web", spread(zone, 1, "web"))
		}, "[false true false]"},
		{"the zone has a node", func(w *world) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.node("n", "b")
			w.pods(3, "web", spread(zone, 1, "web"))
		}, "[false false false]"},
		{"another group of the zone takes them", func(w *world) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.g("c").Template.Labels[zone] = "b"
			w.pods(3, "web", spread(zone, 1, "web"))
		}, "[false false false]"},
		{"another that cannot grow", func(w *world) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.g("c").Template.Labels[zone] = "b"
			w.g("c").Max = 0
			w.pods(3, "web", spread(zone, 1, "web"))
		}, "[false true true]"},
		{"a taint keeps them out", func(w *world) {
			w.g("b").Template.Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
			w.pods(3, "web", spread(zone, 1, "web"))
		}, "[false true false]"},
		{"they do not select the zone's machines, which so do not count", func(w *world) {
			w.g("a").Template.Labels["disk"], w.g("c").Template.Labels["disk"] = "ssd", "ssd"
			w.pods(3, "web", spread(zone, 1, "web"), on("disk", "ssd"))
		}, "[false false false]"},
		{"of two classes the first is stranded", func(w *world) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.pods(3, "web", spread(zone, 1, "web"))
			w.pods(3, "db", spread(zone, 1, "db"), on(zone, "a"))
		}, "[false true false]"},
	} {
		w := newWorld("a", "b", "c")
		c.change(w)
		_, r := w.compile()
		if got := fmt.Sprint(Stranding(r)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

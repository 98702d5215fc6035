package purchase

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestStranding: which groups' first machine would open a zone that keeps spread pods out of the others.
func TestStranding(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*market)
		want   string
	}{
		{"no spread", func(w *market) { w.waiting(3, 500, 256).NodeSelector = map[string]string{zoneLabel: "a"} }, "[false false false]"},
		{"a spread that each zone takes", func(w *market) { spreadOver(w.waiting(3, 500, 256), zoneLabel) }, "[false false false]"},
		{"a spread over hosts", func(w *market) {
			c := w.waiting(3, 500, 256)
			spreadOver(c, hostname)
			c.NodeSelector = map[string]string{"disk": "ssd"}
		}, "[false false false]"},
		{"pods too large for a zone", func(w *market) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			spreadOver(w.waiting(3, 500, 256), zoneLabel)
		}, "[false true false]"},
		{"the zone has a node", func(w *market) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.s.Nodes = append(w.s.Nodes, &cluster.Node{Name: "n", Labels: map[string]string{zoneLabel: "b"}})
			spreadOver(w.waiting(3, 500, 256), zoneLabel)
		}, "[false false false]"},
		{"another group of the zone takes them", func(w *market) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.g("c").Template.Labels[zoneLabel] = "b"
			spreadOver(w.waiting(3, 500, 256), zoneLabel)
		}, "[false false false]"},
		{"another that cannot grow", func(w *market) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			w.g("c").Template.Labels[zoneLabel] = "b"
			w.g("c").Max = 0
			spreadOver(w.waiting(3, 500, 256), zoneLabel)
		}, "[false true true]"},
		{"a taint keeps them out", func(w *market) {
			w.g("b").Template.Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
			spreadOver(w.waiting(3, 500, 256), zoneLabel)
		}, "[false true false]"},
		{"they do not select the zone's machines, which so do not count", func(w *market) {
			w.g("a").Template.Labels["disk"], w.g("c").Template.Labels["disk"] = "ssd", "ssd"
			c := w.waiting(3, 500, 256)
			spreadOver(c, zoneLabel)
			c.NodeSelector = map[string]string{"disk": "ssd"}
		}, "[false false false]"},
		{"of two classes the first is stranded", func(w *market) {
			w.g("b").Template.Allocatable.MilliCPU = 400
			spreadOver(w.waiting(3, 500, 256), zoneLabel)
			c := w.waiting(3, 500, 256)
			spreadOver(c, zoneLabel)
			c.NodeSelector = map[string]string{zoneLabel: "a"}
		}, "[false true false]"},
	} {
		w := newMarket()
		for _, z := range []cluster.GroupID{"a", "b", "c"} {
			w.group(z, string(z), 4000, 8192, 1)
		}
		c.change(w)
		if got := fmt.Sprint(stranding(w.buyer().State)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

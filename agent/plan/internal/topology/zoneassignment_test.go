package topology

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestDivided: how pods are divided among zones before any machine is looked at.
func TestDivided(t *testing.T) {
	rack := "rack"
	check(t, []row{
		{"nobody asks for anything", "a b", func(w *world) { w.pods(3, "web") }, "nothing to divide"},
		{"a spread", "a b c", func(w *world) { w.pods(7, "web", spread(zone, 1, "web")) }, "web a:3 b:2 c:2"},
		{"a spread over hosts", "a b", func(w *world) { w.pods(4, "web", spread(KeyHostname, 1, "web")) }, "web *:4"},
		{"a spread beside pods that run", "a b", func(w *world) {
			w.node("n", "a")
			w.run(3, "n", "web")
			w.pods(5, "web", spread(zone, 1, "web"))
		}, "web a:1 b:4"},
		{"a group that cannot grow", "a b", func(w *world) { w.pods(4, "web", spread(zone, 1, "web")); w.full("b") }, "web a:4"},
		{"a group that cannot grow, and has a machine coming", "a b", func(w *world) {
			w.coming("b")
			w.pods(4, "web", spread(zone, 1, "web"))
			w.full("b")
		}, "web a:2 b:2"},
		{"a group of unknown machines", "a b", func(w *world) { w.pods(4, "web", spread(zone, 1, "web")); w.g("b").Template.Unknown = "no" }, "web a:4"},
		{"pods too large for a zone", "a b", func(w *world) {
			w.g("b").Template.Allocatable.MilliCPU = 900
			w.pods(4, "web", cores(1), spread(zone, 5, "web"))
		}, "web a:4"},
		{"pods that a zone's taint keeps out", "a b", func(w *world) {
			w.g("b").Template.Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
			w.pods(4, "web", spread(zone, 5, "web"))
		}, "web a:4"},
		{"pods that keep away from each other in a zone", "a b", func(w *world) { w.pods(3, "web", apart(zone, "web")) }, "web a:1 b:1 *:1?"},
		{"pods that others keep away from", "a b", func(w *world) {
			w.pods(1, "db", apart(zone, "web"))
			w.pods(4, "web")
		}, "db a:1, web b:4"},
		{"pods that others keep away from on a host", "a b", func(w *world) {
			w.pods(1, "db", apart(KeyHostname, "web"))
			w.pods(4, "web")
		}, "db *:1?, web *:4"},
		{"pods with a plain neighbour", "a b", func(w *world) {
			w.pods(1, "db", apart(zone, "db"))
			w.pods(4, "web")
		}, "db a:1, web *:4"},
		{"affinity", "a b", func(w *world) { w.pods(5, "web", near(zone, "web")) }, "web a:5"},
		{"affinity to a pod that runs", "a b", func(w *world) {
			w.node("n", "b")
			w.run(1, "n", "db")
			w.pods(5, "web", near(zone, "db"))
		}, "web b:5"},
		{"spread over hosts, counted by a spread over zones", "a b", func(w *world) {
			w.pods(4, "web", spread(KeyHostname, 1, "web"))
			w.pods(2, "db", spread(zone, 1, "web"))
		}, "db b:2, web a:4"},
		{"spread over hosts beside zones that nobody counts it in", "a b", func(w *world) {
			w.pods(4, "web", spread(KeyHostname, 1, "web"))
			w.pods(2, "db", spread(zone, 1, "db"))
		}, "db a:1 b:1, web *:4"},
		{"a spread over hosts in one zone", "a", func(w *world) {
			w.pods(4, "web", spread(KeyHostname, 1, "web"))
			w.pods(2, "db", spread(zone, 1, "web"))
		}, "db a:2, web *:4"},
		{"two keys", "", func(w *world) {
			w.group("a1", zone, "a", rack, "1")
			w.group("a2", zone, "a", rack, "2")
			w.group("b1", zone, "b", rack, "1")
			w.pods(4, "web", spread(zone, 1, "web"), spread(rack, 1, "web"))
		}, "web a1:1 *:3?"},
		{"a group without the key", "a b", func(w *world) { w.group("c"); w.pods(4, "web", spread(zone, 1, "web")) }, "web a:2 b:2"},
		{"a group with an empty value", "a b", func(w *world) {
			w.group("c")
			w.group("d", zone, "")
			w.pods(2, "web", spread(zone, 1, "web"))
			w.pods(3, "db", spread(zone, 1, "db"))
		}, "db a:1 b:1 d:1, web a:1 b:1"},
		{"room only where a node is", "a b", func(w *world) {
			w.node("n", "b")
			w.full("b")
			w.pods(9, "web", cores(1), spread(zone, 9, "web"))
		}, "web a:5 b:4"},
		{"no room on the node", "a b", func(w *world) {
			w.node("n", "b")
			w.full("b")
			w.run(4, "n", "big", cores(1))
			w.pods(4, "web", cores(1), spread(zone, 1, "web"))
		}, "web a:1 *:3?"},
		{"a node that the pods do not select", "a b", func(w *world) {
			w.node("n", "b")
			w.full("b")
			w.g("a").Template.Labels["disk"] = "ssd"
			w.pods(4, "web", on("disk", "ssd"), spread(zone, 1, "web"))
		}, "web a:4"},
		{"a node that a taint closes", "a b", func(w *world) {
			w.node("n", "b").Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
			w.full("b")
			w.pods(4, "web", spread(zone, 1, "web"))
		}, "web a:1 *:3?"},
		{"a cordoned node", "a b", func(w *world) {
			w.node("n", "b").Unschedulable = true
			w.full("b")
			w.pods(4, "web", spread(zone, 1, "web"))
		}, "web a:1 *:3?"},
		{"a node that is not Ready", "a b", func(w *world) {
			w.node("n", "b").Ready = cluster.StatusFalse
			w.full("b")
			w.pods(4, "web", spread(zone, 9, "web"))
		}, "web a:4"},
		{"two nodes beside no growth", "a b", func(w *world) {
			for _, n := range []string{"n1", "n2"} {
				w.node(n, "b")
			}
			w.full("b")
			w.full("a")
			w.pods(12, "web", cores(1), near(zone, "web"))
		}, "web b:8 *:4?"},
		{"pods that wait for room only", "a b", func(w *world) {
			w.coming("b")
			w.waiting(w.pods(3, "web", spread(zone, 5, "web")))
		}, "web b:3"},
		{"pods that wait for room beside pods that buy", "a b", func(w *world) {
			w.coming("b")
			w.pods(3, "web", spread(zone, 5, "web"))
			w.waiting(w.pods(3, "db", spread(zone, 5, "db")))
		}, "db b:3, web b:3"},
		{"more pods than the groups may grow for", "a b", func(w *world) {
			w.g("a").Max, w.g("b").Max = 1, 1
			w.pods(9, "web", cores(2), spread(zone, 9, "web"))
		}, "web a:2 b:2 *:5?"},
		{"a zone of larger machines", "a b", func(w *world) {
			w.g("a").Template.Allocatable.MilliCPU, w.g("a").Template.Capacity.MilliCPU = 64000, 64000
			w.pods(4, "web", near(zone, "web"))
		}, "web b:4"},
		{"a volume of a zone", "a b", func(w *world) { w.pods(3, "web", volumeIn("b"), spread(zone, 5, "web")) }, "web b:3"},
		{"a volume of a zone beside the same pods without", "a b", func(w *world) {
			w.pods(3, "db", spread(zone, 5, "app"))
			w.pods(3, "web", volumeIn("b"), spread(zone, 5, "app"))
		}, "db a:3, web b:3"},
		{"pods that a controller has still to make", "a b", func(w *world) { w.missing(w.pods(2, "web", spread(zone, 1, "web")), 3) }, "web a:3 b:2"},
		{"room beside other pods", "a b", func(w *world) {
			w.pods(3, "db", cores(1), spread(zone, 9, "db"))
			w.pods(4, "web", spread(zone, 9, "web"))
		}, "db a:3, web a:2 b:2"},
		{"counted by others only", "a b c", func(w *world) {
			w.pods(2, "db", apart(zone, "web"), near(zone, "db"))
			w.pods(5, "web")
		}, "db a:2, web b:5"},
		{"two terms, of which others keep away by the first", "a b", func(w *world) {
			w.pods(1, "db", apart(zone, "web"), apart(KeyHostname, "cache"))
			w.pods(4, "web")
		}, "db a:1, web b:4"},
		{"a machine that does not say its zone", "a", func(w *world) { w.group("c"); w.pods(3, "web", apart(zone, "web")) }, "web a:1 *:2?"},
		{"machines that do not say all", "", func(w *world) {
			w.group("c", rack, "1")
			w.group("a", zone, "a")
			w.pods(2, "db", apart(rack, "cache"), spread(rack, 2, "db"))
			w.pods(2, "web", apart(zone, "cache"), spread(zone, 2, "web"))
		}, "db c:2, web a:2"},
		{"a volume that one group of a zone reaches", "a b", func(w *world) {
			w.group("a2", zone, "a", "disk", "ssd")
			ssd := func(c *cluster.PodClass) {
				c.Volumes = []cluster.Volume{{Claim: "default/v", Affinity: []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "disk", Operator: "In", Values: []string{"ssd"}}}}}}}
			}
			w.pods(3, "db", spread(zone, 5, "app"))
			w.pods(3, "web", ssd, spread(zone, 5, "app"))
		}, "db a:3, web a:3"},
		{"a group of the zone is too small", "a b", func(w *world) {
			w.group("a2", zone, "a")
			small := cluster.Resources{MilliCPU: 1000, Memory: 1 << 28, Pods: 110}
			w.g("a2").Template.Capacity, w.g("a2").Template.Allocatable = small, small
			w.pods(1, "web", cores(3), spread(zone, 5, "web"))
			w.pods(2, "app", spread(zone, 5, "app"))
		}, "app a:2, web a:1"},
		{"more pods that wait than upcoming machines have room for", "a b", func(w *world) {
			w.coming("b")
			w.waiting(w.pods(9, "web", cores(1), spread(zone, 9, "web")))
		}, "web b:4 *:5?"},
		{"the first of groups of one cost", "a b", func(w *world) {
			w.group("a2", zone, "a")
			large := cluster.Resources{MilliCPU: 8000, Memory: 16 << 30, Pods: 110}
			w.g("a2").Template.Capacity, w.g("a2").Template.Allocatable = large, large
			w.pods(8, "web", near(zone, "web"))
			w.pods(2, "zoo", near(zone, "zoo"))
		}, "web a:8, zoo b:2"},
		{"counted by others, one on a machine", "a b c", func(w *world) {
			w.pods(1, "db", apart(zone, "web"))
			w.pods(4, "web", cores(4))
		}, "db a:1, web b:2 c:2"},
		{"counted by others, and a zone is dearer", "a b c", func(w *world) {
			w.g("b").Template.Capacity.Memory = 64 << 30
			w.pods(1, "db", apart(zone, "web"), on(zone, "a"))
			w.pods(1, "web", cores(4))
		}, "db a:1, web c:1"},
		{"counted by others, and the second pod goes to the dearer zone", "a b c", func(w *world) {
			w.g("b").Template.Capacity.Memory = 64 << 30
			w.pods(1, "db", apart(zone, "web"), on(zone, "a"))
			w.pods(2, "web", cores(4))
		}, "db a:1, web b:1 c:1"},
		{"counted by others, and a zone is cheaper than that of the last pod", "a b c", func(w *world) {
			w.g("c").Template.Capacity.Memory = 64 << 30
			w.pods(1, "db", apart(zone, "web"), on(zone, "a"))
			w.pods(3, "web", cores(4))
		}, "db a:1, web b:2 c:1"},
		{"nothing is counted, and nodes have room", "a b", func(w *world) {
			w.node("n", "a")
			w.node("m", "b")
			w.run(2, "n", "db", cores(1))
			w.run(3, "m", "db", cores(1))
			w.pods(6, "web", cores(1), near(zone, "db"))
		}, "web a:2 b:4"},
		{"nothing is counted, and nodes have no room", "a b", func(w *world) {
			w.node("n", "a")
			w.node("m", "b")
			w.run(4, "n", "db", cores(1))
			w.run(4, "m", "db", cores(1))
			w.pods(6, "web", cores(1), near(zone, "db"))
		}, "web a:6"},
		{"a node that starts", "a b", func(w *world) {
			n := w.node("n", "b")
			n.Ready, n.Created = cluster.StatusFalse, w.s.Now
			w.pods(2, "web", spread(zone, 9, "web"))
		}, "web b:2"},
		{"room on a node", "a b", func(w *world) { w.node("n", "b"); w.pods(3, "web", spread(zone, 9, "web")) }, "web b:3"},
		{"room on a node that the pods do not select", "a b", func(w *world) {
			w.node("n", "b")
			w.g("a").Template.Labels["disk"], w.g("b").Template.Labels["disk"] = "ssd", "ssd"
			w.pods(3, "web", on("disk", "ssd"), spread(zone, 9, "web"))
		}, "web a:3"},
		{"room on a node that is in no group", "a b", func(w *world) {
			w.node("n", "b").ProviderID = "other"
			w.pods(3, "web", spread(zone, 9, "web"))
		}, "web b:3"},
		{"room on a node where others keep away", "a b", func(w *world) {
			w.node("n", "b")
			w.run(1, "n", "db", apart(KeyHostname, "web"))
			w.pods(3, "web", spread(zone, 9, "web"))
		}, "web a:3"},
		{"a machine of unknown shape is coming", "a b", func(w *world) {
			w.group("b2", zone, "b")
			w.coming("b")
			w.g("b").Template.Unknown = "no"
			w.pods(3, "web", spread(zone, 9, "web"))
		}, "web a:3"},
		{"a machine that the pods do not select is coming", "a b", func(w *world) {
			w.group("b2", zone, "b", "disk", "ssd")
			w.g("a").Template.Labels["disk"] = "ssd"
			w.coming("b")
			w.pods(3, "web", on("disk", "ssd"), spread(zone, 9, "web"))
		}, "web a:3"},
		{"a machine that does not say its rack is coming", "", func(w *world) {
			w.group("a", zone, "a", rack, "1")
			w.group("b", zone, "b")
			w.group("b2", zone, "b", rack, "1")
			w.coming("b")
			w.pods(3, "web", spread(zone, 9, "web"), apart(rack, "cache"))
		}, "web a:3"},
		{"a machine that a volume does not reach is coming", "a b", func(w *world) {
			w.group("b2", zone, "b", "disk", "ssd")
			w.g("a").Template.Labels["disk"] = "ssd"
			w.coming("b")
			w.pods(3, "web", func(c *cluster.PodClass) {
				c.Volumes = []cluster.Volume{{Claim: "default/v", Affinity: []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "disk", Operator: "In", Values: []string{"ssd"}}}}}}}
			}, spread(zone, 5, "web"))
		}, "web a:3"},
	}, divided)
}

// TestShortlist: of many groups of a zone the first are looked at, until they have room for all pods. The last group of
// zone a is the cheapest of all; the others of the zone are dearer than that of zone b.
func TestShortlist(t *testing.T) {
	for _, c := range []struct {
		groups, pods int
		want         string
	}{
		{2, 10, "web g-01:10"},
		{16, 10, "web g-01:10"},
		{17, 10, "web b:10"},
		{17, 161, "web g-01:161"},
		{17, 160, "web b:160"},
	} {
		w := newWorld()
		for i := range c.groups {
			g := w.group(fmt.Sprintf("g-%02d", i+1), zone, "a")
			g.Template.Capacity.Memory = 64 << 30
			if i == c.groups-1 {
				g.Template.Capacity.Memory = 1 << 28
			}
		}
		w.group("b", zone, "b").Max = 200
		w.pods(c.pods, "web", cores(4), near(zone, "web"))
		if got := divided(w.compile()); got != c.want {
			t.Errorf("%d groups, %d pods: %s, want %s", c.groups, c.pods, got, c.want)
		}
	}
}

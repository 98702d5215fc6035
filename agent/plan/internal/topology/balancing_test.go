package topology

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestBalance: pods that may go anywhere follow those that are bound to zones where anti-affinity makes machines necessary anyway.
func TestBalance(t *testing.T) {
	bound := func(w *world, n int) { w.pods(n, "db", spread(zone, 1, "db")) }
	single := func(w *world, n int, terms ...term) int {
		return w.pods(n, "web", append(terms, apart(KeyHostname, "web"))...)
	}
	check(t, []row{
		{"enough pods that keep away from each other", "a b", func(w *world) { bound(w, 4); single(w, 5) }, "db a:2 b:2, web a:3 b:2"},
		{"as many as twice the zones", "a b", func(w *world) { bound(w, 4); single(w, 4) }, "db a:2 b:2, web a:2 b:2"},
		{"fewer than twice the zones", "a b", func(w *world) { bound(w, 4); single(w, 3) }, "db a:2 b:2, web *:3"},
		{"pods are bound to one zone", "a b", func(w *world) { bound(w, 1); single(w, 5) }, "db a:1, web *:5"},
		{"nothing keeps away from its like", "a b", func(w *world) { bound(w, 4); w.pods(5, "web") }, "db a:2 b:2, web *:5"},
		{"pods that others keep away from alone", "a b", func(w *world) {
			bound(w, 4)
			w.pods(1, "lonely", apart(KeyHostname, "web"), apart(KeyHostname, "lonely"))
			w.pods(5, "web")
		}, "db a:2 b:2, lonely *:1, web *:5"},
		{"others follow too", "a b", func(w *world) { bound(w, 4); single(w, 5); w.pods(3, "app") }, "app a:2 b:1, db a:2 b:2, web a:2 b:3"},
		{"one pod does not", "a b", func(w *world) { bound(w, 4); single(w, 5); w.pods(1, "app") }, "app a:1, db a:2 b:2, web a:2 b:3"},
		{"single pods take turns", "a b", func(w *world) {
			bound(w, 4)
			single(w, 4)
			w.pods(1, "app-1")
			w.pods(1, "app-2", cores(1))
			w.pods(1, "app-3", cores(2))
		}, "app-1 a:1, app-2 b:1, app-3 a:1, db a:2 b:2, web a:2 b:2"},
		{"pods that wait for room stay", "a b", func(w *world) { bound(w, 4); single(w, 5); w.waiting(w.pods(3, "app")) }, "app *:3, db a:2 b:2, web a:3 b:2"},
		{"pods bound to a zone wait for room", "a b", func(w *world) {
			w.coming("a")
			w.coming("b")
			w.waiting(w.pods(4, "db", spread(zone, 1, "db")))
			single(w, 5)
		}, "db a:2 b:2, web *:5"},
		{"pods that keep away wait for room", "a b", func(w *world) { bound(w, 4); w.waiting(single(w, 5)) }, "db a:2 b:2, web *:5"},
		{"pods that keep away wait for room beside others", "a b", func(w *world) { bound(w, 4); w.waiting(single(w, 5)); w.pods(3, "app") }, "app *:3, db a:2 b:2, web *:5"},
		{"pods that keep away are bound to zones", "a b", func(w *world) {
			w.pods(6, "db", spread(zone, 1, "db"), apart(KeyHostname, "db"))
			w.pods(3, "app")
		}, "app *:3, db a:3 b:3"},
		{"a machine of unknown shape is coming", "a b c", func(w *world) {
			w.node("n", "c")
			w.coming("c")
			w.g("c").Template.Unknown = "no"
			bound(w, 6)
			single(w, 8)
		}, "db a:2 b:2 c:2, web a:4 b:4"},
		{"pods that are placed singly", "a b", func(w *world) {
			bound(w, 4)
			single(w, 5)
			w.pods(3, "app", near(KeyHostname, "app"))
		}, "app *:3?, db a:2 b:2, web a:3 b:2"},
		{"bound to zones and placed singly", "a b", func(w *world) {
			w.pods(2, "db", spread(zone, 1, "db"), near(KeyHostname, "db"))
			single(w, 5)
		}, "db a:1? b:1?, web *:5"},
		{"what one zone does not take", "a b c", func(w *world) {
			bound(w, 6)
			single(w, 8)
			w.g("c").Template.Labels["disk"], w.g("b").Template.Labels["disk"] = "ssd", "ssd"
			w.pods(4, "app", on("disk", "ssd"))
		}, "app b:2 c:2, db a:2 b:2 c:2, web a:2 b:3 c:3"},
		{"one zone is left", "a b", func(w *world) {
			bound(w, 4)
			single(w, 5)
			w.g("b").Template.Labels["disk"] = "ssd"
			w.pods(4, "app", on("disk", "ssd"))
		}, "app *:4, db a:2 b:2, web a:3 b:2"},
		{"a zone too small for a pod", "a b c", func(w *world) {
			w.g("c").Template.Allocatable.MilliCPU = 900
			bound(w, 6)
			single(w, 8)
			w.pods(4, "app", cores(1))
		}, "app a:2 b:2, db a:2 b:2 c:2, web a:2 b:3 c:3"},
		{"a full group with a machine coming", "a b", func(w *world) { w.coming("b"); w.full("b"); bound(w, 4); single(w, 5) }, "db a:2 b:2, web a:3 b:2"},
		{"a zone whose volumes are elsewhere", "a b c", func(w *world) {
			bound(w, 6)
			single(w, 8)
			w.pods(3, "app", volumeIn("a"))
		}, "app *:3, db a:2 b:2 c:2, web a:3 b:3 c:2"},
		{"a full group without one", "a b c", func(w *world) {
			w.node("n", "c")
			w.full("c")
			bound(w, 6)
			single(w, 8)
		}, "db a:2 b:2 c:2, web a:4 b:4"},
		{"a group of unknown machines beside a node", "a b c", func(w *world) {
			w.node("n", "c")
			w.g("c").Template.Unknown = "no"
			bound(w, 6)
			single(w, 8)
		}, "db a:2 b:2 c:2, web a:4 b:4"},
		{"headroom stays", "a b", func(w *world) {
			bound(w, 4)
			single(w, 5)
			w.p.Headroom = []cluster.Headroom{{Name: "room", Count: 4, Piece: cluster.PodClass{Labels: map[string]string{"app": "room"}, Requests: cluster.Resources{MilliCPU: 500, Memory: 1 << 28, Pods: 1}}}}
		}, "db a:2 b:2, room *:4, web a:3 b:2"},
		{"nothing is bought for pods bound to a zone", "a b c", func(w *world) {
			w.coming("c")
			w.waiting(w.pods(1, "cache", near(zone, "cache")))
			bound(w, 6)
			single(w, 8)
		}, "cache c:1, db a:2 b:2 c:2, web a:3 b:3 c:2"},
	}, divided)
}

// TestFollowsReservations: a pod that counts on a machine goes where that machine comes; the others even it out.
func TestFollowsReservations(t *testing.T) {
	check(t, []row{
		{"none", "a b", func(w *world) {
			w.pods(4, "db", spread(zone, 1, "db"))
			w.pods(5, "web", apart(KeyHostname, "web"))
		}, "a[db-0 db-2]+0 a[web-0 web-2 web-4]+0 b[db-1 db-3]+0 b[web-1 web-3]+0"},
		{"of pods that may go anywhere", "a b", func(w *world) {
			w.pods(4, "db", spread(zone, 1, "db"))
			w.pods(5, "web", apart(KeyHostname, "web"))
			w.coming("b")
			w.reserve("b", "web-0", "web-1")
		}, "a[db-1 db-2]+0 a[web-2 web-3 web-4]+0 b[db-0 db-3]+0 b[web-0 web-1]+0"},
		{"of the first group", "a b", func(w *world) {
			w.pods(4, "db", spread(zone, 1, "db"))
			w.pods(5, "web", apart(KeyHostname, "web"))
			w.coming("a")
			w.reserve("a", "web-1", "web-3")
		}, "a[db-0 db-2]+0 a[web-1 web-3 web-4]+0 b[db-1 db-3]+0 b[web-0 web-2]+0"},
		{"of the first group, of pods that are spread", "a b", func(w *world) {
			w.pods(4, "web", spread(zone, 2, "web"))
			w.coming("a")
			w.reserve("a", "web-1", "web-3")
		}, "a[web-1 web-3]+0 b[web-0 web-2]+0"},
		{"of a machine of unknown shape beside a known group", "a b", func(w *world) {
			w.group("b2", zone, "b")
			w.coming("b")
			w.g("b").Template.Unknown = "no"
			w.pods(4, "web", spread(zone, 5, "web"))
			w.reserve("b", "web-0", "web-1", "web-3")
		}, "a[web-0 web-1 web-2 web-3]+0"},
		{"room of another group that another pod counts on", "a b", func(w *world) {
			w.group("b2", zone, "b", "disk", "ssd")
			w.g("a").Template.Labels["disk"] = "ssd"
			w.coming("b")
			w.coming("b2")
			w.pods(1, "big", cores(4), spread(zone, 1, "big"))
			w.reserve("b2", "big-0")
			w.pods(2, "web", on("disk", "ssd"), spread(zone, 5, "web"))
		}, "a[web-0 web-1]+0 b[big-0]+0"},
		{"not the room of a node that is Ready", "a b", func(w *world) {
			w.node("n", "b").Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
			w.coming("b")
			w.pods(1, "big", cores(4), spread(zone, 1, "big"), func(c *cluster.PodClass) { c.Tolerations = []cluster.Toleration{{Operator: "Exists"}} })
			w.reserve("b", "big-0")
			w.pods(2, "web", spread(zone, 5, "web"))
		}, "a[web-0 web-1]+0 b[big-0]+0"},
		{"room of a node that starts", "a b", func(w *world) {
			n := w.node("n", "b")
			n.Ready, n.Created = cluster.StatusFalse, w.s.Now
			w.pods(1, "big", cores(4), spread(zone, 1, "big"))
			w.reserve("b", "big-0")
			w.pods(2, "web", spread(zone, 5, "web"))
		}, "a[web-0 web-1]+0 b[big-0]+0"},
		{"of a machine that does not come", "a b", func(w *world) {
			w.pods(4, "db", spread(zone, 1, "db"))
			w.pods(5, "web", apart(KeyHostname, "web"))
			w.reserve("b", "web-0", "web-1")
		}, "a[db-0 db-2]+0 a[web-0 web-2 web-4]+0 b[db-1 db-3]+0 b[web-1 web-3]+0"},
		{"of a machine in a zone that nothing else is bound to", "a b c", func(w *world) {
			w.g("a").Template.Labels["disk"], w.g("b").Template.Labels["disk"] = "ssd", "ssd"
			w.pods(4, "db", spread(zone, 1, "db"), on("disk", "ssd"))
			w.pods(5, "web", apart(KeyHostname, "web"))
			w.coming("c")
			w.reserve("c", "web-0", "web-1")
		}, "a[db-0 db-2]+0 a[web-0 web-2 web-4]+0 b[db-1 db-3]+0 b[web-1 web-3]+0"},
		{"pods that a controller has still to make", "a b", func(w *world) {
			w.pods(4, "db", spread(zone, 1, "db"))
			w.missing(w.pods(2, "web", apart(KeyHostname, "web")), 3)
			w.coming("b")
			w.reserve("b", "web-0")
		}, "a[db-1 db-2]+0 a[web-1]+1 b[db-0 db-3]+0 b[web-0]+2"},
		{"of pods that are spread", "a b", func(w *world) {
			w.pods(4, "web", spread(zone, 2, "web"))
			w.coming("b")
			w.reserve("b", "web-0", "web-3")
		}, "a[web-1 web-2]+0 b[web-0 web-3]+0"},
		{"of a zone that a spread closes", "a b", func(w *world) {
			w.node("n", "b")
			w.node("m", "a")
			w.run(1, "n", "web")
			w.pods(4, "web", spread(zone, 1, "web"))
			w.coming("b")
			w.reserve("b", "web-0", "web-3")
		}, "a[web-0 web-2]+0 b[web-1 web-3]+0"},
		{"of more pods than a full group has room for", "a b", func(w *world) {
			w.coming("b")
			w.full("b")
			w.pods(4, "web", cores(2), spread(zone, 5, "web"))
			w.reserve("b", "web-0", "web-1", "web-3")
		}, "a[web-2 web-3]+0 b[web-0 web-1]+0"},
		{"of pods that wait for room", "a b", func(w *world) {
			w.coming("a")
			w.coming("b")
			w.waiting(w.pods(4, "web", spread(zone, 5, "web")))
			w.reserve("b", "web-0", "web-1", "web-3")
		}, "a[web-0 web-2]+0 b[web-1 web-3]+0"},
		{"of a machine of unknown shape", "a b", func(w *world) {
			w.coming("b")
			w.g("b").Template.Unknown = "no"
			w.pods(4, "web", spread(zone, 5, "web"))
			w.reserve("b", "web-0", "web-1", "web-3")
		}, "a[web-0 web-1 web-2 web-3]+0"},
		{"room that another pod counts on", "a b", func(w *world) {
			w.coming("b")
			w.pods(1, "big", cores(4), spread(zone, 1, "big"))
			w.reserve("b", "big-0")
			w.pods(2, "web", spread(zone, 5, "web"))
		}, "a[web-0 web-1]+0 b[big-0]+0"},
		{"room on the second machine", "a b", func(w *world) {
			w.coming("b")
			w.coming("b")
			w.pods(2, "big", cores(4), spread(zone, 2, "big"))
			w.reserve("b", "big-0", "big-1")
			w.pods(2, "web", spread(zone, 5, "web"))
		}, "a[web-0 web-1]+0 b[big-0 big-1]+0"},
	}, whose)
}

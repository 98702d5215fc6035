package scaledown

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestCompareCandidates: each of these comes first by what it is named after, although it comes last by all that counts less.
func TestCompareCandidates(t *testing.T) {
	now := newWorld().s.Now
	last := Candidate{turn: 5, completes: 1, nonEmpty: 1, below: 1, waits: 1, looked: 1, since: now, util: 1, Node: 9}
	order := []string{"requested", "turn", "completes", "nonEmpty", "below", "waits", "looked", "since", "util", "Node"}
	list := make([]Candidate, len(order)+1)
	for i := range list {
		list[i] = last
	}
	list[0].requested = true
	list[1].turn = -1
	list[2].completes = 0
	list[3].nonEmpty = 0
	list[4].below = 0
	list[5].waits = 0
	list[6].looked = 0
	list[7].since = now.Add(-time.Second)
	list[8].util = 0.9
	list[9].Node = 8
	for i, by := range order {
		if compareCandidates(list[i], list[i+1]) >= 0 || compareCandidates(list[i+1], list[i]) <= 0 {
			t.Errorf("a node does not come first by %s", by)
		}
	}
}

// TestCandidates: in which order nodes are looked at.
func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
		wake   time.Duration
	}{
		{"by use", func(w *world) { w.pods("a", 0, 1) }, "b c a", 0},
		{"requested", func(w *world) { w.request("c") }, "c a b", 0},
		{"replaced", func(w *world) { w.replace("c") }, "c a b", 0},
		{"with pods that run to their end", func(w *world) { w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion }, "b c a", 0},
		{"empty", func(w *world) { w.node("b").Pods = nil }, "b a c", 0},
		{"its time runs", func(w *world) { w.idle(0, "b") }, "b a c", 0},
		{"its time has run for longer", func(w *world) { w.idle(time.Minute, "b"); w.idle(2*time.Minute, "c") }, "c b a", 0},
		{"not looked at in the last round", func(w *world) { w.m.Unlooked = []cluster.NodeName{"b"} }, "b a c", 0},
		{"of a larger group", func(w *world) { w.p.BalanceSimilarNodeGroups = true; w.group("pool2", "d", "e", "f", "g", "h") }, "d e a f b g c h", 0},
		{"of a larger group that is not balanced", func(w *world) { w.group("pool2", "d", "e", "f", "g", "h") }, "a b c d e f g h", 0},
		{"replaced for a reason that counts more", func(w *world) {
			w.p.RepairAfter, w.p.RepairConditions = time.Minute, cluster.RepairConditions{{Type: "Disk"}}
			w.node("a").Conditions = map[string]time.Time{"Disk": w.s.Now.Add(-time.Hour)}
			w.replace("b")
		}, "b a c", 0},
		{"starting", func(w *world) {
			n := w.node("b")
			n.Ready, n.Created = cluster.StatusFalse, w.s.Now.Add(-14*time.Minute)
		}, "a c", time.Minute},
		{"Ready, and starting", func(w *world) {
			n := w.node("b")
			n.Created, n.Taints = w.s.Now.Add(-14*time.Minute), []cluster.Taint{{Key: "node.cilium.io/agent-not-ready", Effect: "NoSchedule"}}
			w.p.StartupTaints = []string{"node.cilium.io/agent-not-ready"}
		}, "a c", 0},
		{"being deleted, and young", func(w *world) {
			n := w.node("b")
			n.Ready, n.Created, n.Deleting = cluster.StatusFalse, w.s.Now.Add(-14*time.Minute), true
		}, "a c", 0},
	} {
		w := newWorld()
		w.group("pool", "a", "b", "c")
		for _, n := range []string{"a", "b", "c"} {
			w.pods(n, 0, 1)
		}
		c.change(w)
		for _, n := range w.s.Nodes[3:] {
			w.pods(string(n.Name), 0, 1)
		}
		w.begin()
		var got []string
		for _, x := range w.candidates() {
			got = append(got, string(w.Nodes[x.Node].Name))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		w.wantWake(t, c.name, c.wake)
	}
}

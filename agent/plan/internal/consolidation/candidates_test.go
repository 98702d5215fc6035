package consolidation

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// fourNodes are two nodes of a dear group and two of a cheap one.
func fourNodes() *world {
	w := newWorld()
	w.group("big", 4, "b1", "b2")
	w.group("small", 1, "s1", "s2")
	return w
}

// TestReplaceable: which nodes may be moved, and which of them may be replaced now, in the order of pods by price.
func TestReplaceable(t *testing.T) {
	same := func(*world) {}
	young := func(w *world) {
		w.s.Nodes[0].Pods = []cluster.Pod{{Key: "default/young", Created: cluster.At(w.s.Now.Add(-59 * time.Minute))}}
	}
	for _, c := range []struct {
		name                 string
		before, after        func(*world) // the round has begun
		movable, replaceable string
	}{
		{"all", same, same, "b1 b2 s1 s2", "b1 b2 s1 s2"},
		{"more pods", func(w *world) { w.moved["b1"] = 9 }, same, "b2 s1 s2 b1", "b2 s1 s2 b1"},
		{"of the control plane", same, func(w *world) { w.node("b1").ControlPlane = true }, "b2 s1 s2", "b2 s1 s2"},
		{"of no group", same, func(w *world) { w.node("b1").Group = -1 }, "b2 s1 s2", "b2 s1 s2"},
		{"not started", same, func(w *world) { w.node("b1").State = round.StateUpcoming }, "b2 s1 s2", "b2 s1 s2"},
		{"a pending pod goes there", same, func(w *world) { w.node("b1").InUse = true }, "b2 s1 s2", "b2 s1 s2"},
		{"goes anyway", same, func(w *world) { w.node("b1").Removing = true }, "b2 s1 s2", "b2 s1 s2"},
		{"keeps headroom", same, func(w *world) { w.node("b1").Headroom = []round.HeadroomPieces{{}} }, "b2 s1 s2", "b2 s1 s2"},
		{"is expired", func(w *world) {
			w.p.MaxNodeAge, w.s.Nodes[0].Created = 30*time.Hour, w.s.Now.Add(-31*time.Hour)
		}, same, "b2 s1 s2", "b2 s1 s2"},
		{"pods that may not move", func(w *world) { w.kept["b1"] = true }, same, "b2 s1 s2", "b2 s1 s2"},
		{"no price", func(w *world) { w.s.Groups[0].Price = 0 }, same, "s1 s2", "s1 s2"},
		{"no price is asked for", func(w *world) { w.s.Groups[0].Price, w.p.Consolidate = 0, decision.ConsolidateAlways }, same, "s1 s2 b1 b2", "s1 s2 b1 b2"},
		{"given up", same, func(w *world) { w.Disruption.GiveUp("b1") }, "b1 b2 s1 s2", "b2 s1 s2"},
		{"the cluster's least", func(w *world) { w.p.MinCoresTotal = 13 }, same, "b1 b2 s1 s2", ""},
		{"no budget", func(w *world) { w.s.Groups[0].Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 0}} }, same, "b1 b2 s1 s2", "s1 s2"},
		{"young pod", young, same, "b1 b2 s1 s2", "b2 s1 s2"},
	} {
		w := fourNodes()
		c.before(w)
		c.after(w.begin())
		if got := w.names(w.movable()); got != c.movable {
			t.Errorf("%s: movable %s, want %s", c.name, got, c.movable)
		}
		if got := w.names(w.replaceable()); got != c.replaceable {
			t.Errorf("%s: replaceable %s, want %s", c.name, got, c.replaceable)
		}
	}
}

// TestBest: the replacement that saves most is found, of equal ones that which moves least.
func TestBest(t *testing.T) {
	for _, c := range []struct {
		name   string
		noRoom string // sets, by commas
		looks  int
		want   string
	}{
		{"the pods of both have room", "", 99, "the pods of b1, b2 have room elsewhere"},
		{"the pods of one have room", "b1 b2", 99, "1 machine of group small can replace b1, b2"},
		{"a machine replaces one", "b1,b2,b1 b2,b1 b2 by 1 of small", 99, "2 machines of group small can replace b1, b2"},
		{"two equal ones", "b1 b2,b1 b2 by 1 of small,b1 b2 by 2 of small,b1 b2 by 3 of small,b1 b2 by 4 of small,b1 b2 by 1 of big", 99, "the pods of b1 have room elsewhere"},
		{"no look", "", 0, ""},
		{"one look", "", 1, "the pods of b1 have room elsewhere"},
		{"one look in vain", "b1", 1, ""},
		{"one look more", "b1", 10, "the pods of b2 have room elsewhere"},
	} {
		w := newWorld()
		w.group("big", 4, "b1", "b2")
		w.group("small", 1)
		for _, set := range strings.Split(c.noRoom, ",") {
			w.noRoom[set] = true
		}
		w.looks = c.looks
		w.begin()
		w.list = w.replaceable()
		got := ""
		if r, _ := w.best(); len(r.from) > 0 {
			got = w.thought(&r).Words()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q; asked %q", c.name, got, c.want, w.fits)
		}
	}
}

// TestAvoid: new pods are kept away from nodes whose pods have room on the others together, from at most ten, those first that they
// are kept away from already.
func TestAvoid(t *testing.T) {
	hour := func(w *world) time.Time { return w.s.Now.Add(-time.Hour) }
	was := func(w *world, nodes ...string) {
		w.m.Avoided = &decision.Avoided{Looked: hour(w), Since: map[cluster.NodeName]time.Time{}}
		for _, name := range nodes {
			w.m.Avoided.Since[cluster.NodeName(name)] = hour(w)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*world)
		want   string // in the order in which Fit is asked; *: since an hour
	}{
		{"all", func(*world) {}, "b1 b2 s1 s2"},
		{"no room for two", func(w *world) { w.noRoom["b1 b2"] = true }, "b1 s1 s2"},
		{"a node that goes would stay", func(w *world) { w.idle["b1"] = []string{"s2"} }, "b2 s1 s2"},
		{"those that are avoided first", func(w *world) { was(w, "s2"); w.noRoom["b1 s2"] = true }, "b2 s1 s2*"},
		{"two that are avoided", func(w *world) { was(w, "b2", "s1"); w.noRoom["b1 b2 s1"] = true }, "b2* s1* s2"},
		{"one look", func(w *world) { w.looks = 1 }, "b1"},
		{"looked just now", func(w *world) { was(w, "s1"); w.m.Avoided.Looked = w.s.Now.Add(-59 * time.Second) }, "s1*"},
		{"looked a minute ago", func(w *world) { was(w); w.m.Avoided.Looked = w.s.Now.Add(-time.Minute) }, "b1 b2 s1 s2"},
		{"old facts", func(w *world) { was(w, "s1"); w.s.Stale = "the API server is not heard" }, "s1*"},
		{"at most ten", func(w *world) {
			w.group("tiny", 0.5, "t01", "t02", "t03", "t04", "t05", "t06", "t07", "t08")
		}, "b1 b2 s1 s2 t01 t02 t03 t04 t05 t06"},
	} {
		w := fourNodes()
		c.change(w)
		w.begin().avoid()
		var got []string
		for i := range w.Nodes {
			since, is := w.Next.Avoided.Since[w.Nodes[i].Name]
			switch {
			case is && since.Equal(w.Now):
				got = append(got, string(w.Nodes[i].Name))
			case is:
				got = append(got, string(w.Nodes[i].Name)+"*")
			}
		}
		if words := strings.Join(got, " "); words != c.want {
			t.Errorf("%s: avoids %s, want %s; asked %q", c.name, words, c.want, w.fits)
		}
	}
}

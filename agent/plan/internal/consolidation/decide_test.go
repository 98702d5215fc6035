package consolidation

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestDecide: a saving is looked for once a minute while nothing else goes on, and its machines are ordered once it has been real for
// long enough.
func TestDecide(t *testing.T) {
	const both, one = "the pods of b1, b2 have room elsewhere", "the pods of b1 have room elsewhere"
	// known is a saving that is as old as this, and was looked at as long ago.
	known := func(w *world, what string, since, looked time.Duration) {
		s := saving(what)
		s.Since, s.Looked = w.s.Now.Add(-since), w.s.Now.Add(-looked)
		w.m.Consolidation = &s
	}
	aMinute := func(w *world) { known(w, "b1", 4*time.Minute, time.Minute) }
	same := func(*world) {}
	for _, c := range []struct {
		name          string
		before, after func(*world) // the round has begun
		want, plan    string
		looks         bool // Fit is asked
		wake          time.Duration
	}{
		{"found", same, same, both, "held cluster cluster [D21] " + both + ", if that is so until 2026-01-05T08:05:00Z", true, time.Minute},
		{"off", func(w *world) { w.p.Consolidate = decision.ConsolidateOff }, same, "", "", false, 0},
		{"no node may go", func(w *world) { w.kept["b1"], w.kept["b2"] = true, true }, same, "", "", false, 0},
		{"found nothing", func(w *world) {
			w.s.Groups[1].Max = 0
			w.noRoom["b1"], w.noRoom["b2"], w.noRoom["b1 b2"], w.noRoom["b1 b2 by 1 of big"] = true, true, true, true
		}, same, "nothing", "", true, 0},
		{"nothing was found", func(w *world) { known(w, "", time.Minute, 59*time.Second) }, same, "nothing", "", false, 0},
		{"nothing was found a minute ago", func(w *world) { known(w, "", time.Minute, time.Minute) }, same, both, "held cluster cluster [D21] " + both + ", if that is so until 2026-01-05T08:05:00Z", true, time.Minute},
		{"known", func(w *world) { known(w, "b1", 4*time.Minute, 20*time.Second) }, same, one, "held cluster cluster [D21] " + one + ", if that is so until 2026-01-05T08:01:00Z", false, 40 * time.Second},
		{"real still", aMinute, same, one, "held cluster cluster [D21] " + one + ", if that is so until 2026-01-05T08:01:00Z", true, time.Minute},
		{"not real any more", func(w *world) { aMinute(w); w.s.Groups[1].Max = 0; w.noRoom["b1"], w.noRoom["b1 b2"] = true, true }, same, "the pods of b2 have room elsewhere",
			"held cluster cluster [D21] the pods of b2 have room elsewhere, if that is so until 2026-01-05T08:05:00Z", true, time.Minute},
		{"due", func(w *world) { known(w, "b1", 5*time.Minute, time.Minute) }, same, "the pods of b1 have room elsewhere", "", true, time.Second},
		{"machines are due", func(w *world) {
			known(w, "b1 b2 by 1 of small", 5*time.Minute, time.Minute)
		}, same, "1 machine of group small can replace b1, b2", "grow small 0->1 for 0 pods [D21] 1 machine of group small can replace b1, b2", true, time.Second},
		{"under way", aMinute, func(w *world) {
			w.Next.Consolidation = &decision.Consolidation{Nodes: []cluster.NodeName{"b2"}, Ordered: w.s.Now}
		}, "the pods of b2 have room elsewhere", "", false, 0},
		{"old facts", func(w *world) { aMinute(w); w.s.Stale = "the API server is not heard" }, func(w *world) { w.Plan.Held = nil }, one, "", false, 0},
		{"deletions are frozen", aMinute, func(w *world) { w.Unhealthy = "deletions are frozen" }, one, "", false, 0},
		{"another action", aMinute, func(w *world) { w.Act(decision.Uncordon{Node: "b2"}) }, one, "uncordon b2 [] ", false, 0},
	} {
		w := newWorld()
		w.group("big", 4, "b1", "b2")
		w.group("small", 1)
		w.m.Avoided = &decision.Avoided{Looked: w.s.Now}
		c.before(w)
		c.after(w.begin())
		w.Plan.Wake = time.Time{}
		w.Decide()
		if got := w.found(); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
		if got := w.Plan.String(); got != c.plan && got != c.plan+"\n" {
			t.Errorf("%s: %q, want %q", c.name, got, c.plan)
		}
		if looks := len(w.fits) > 0; looks != c.looks {
			t.Errorf("%s: asks %q, want %v", c.name, w.fits, c.looks)
		}
		if got := w.Plan.Wake; c.wake == 0 && !got.IsZero() || c.wake > 0 && !got.Equal(w.Now.Add(c.wake)) {
			t.Errorf("%s: wakes at %s, want after %s", c.name, round.Stamp(got), c.wake)
		}
	}
}

// TestOrder: a saving is under way from now on, and its machines are asked for.
func TestOrder(t *testing.T) {
	w := newWorld()
	w.group("big", 4, "b1", "b2")
	w.group("small", 1, "s1")
	w.begin()
	for _, what := range []string{"b1 b2", "b1 b2 by 2 of small"} {
		w.Next.Consolidation = nil
		s := saving(what)
		w.Disruption.Consolidate(&s)
		if c := w.Next.Consolidation; !c.UnderWay() || len(c.Nodes) != 2 || c.Came != (s.Machines == 0) {
			t.Errorf("%s: ordered %+v", what, c)
		}
		g := &w.Groups[1]
		if machines := s.Machines > 0; g.Grow != s.Machines || g.Bought != machines || w.Grew != machines || len(w.Plan.Actions) != s.Machines/2 {
			t.Errorf("%s: group small grows by %d, %v", what, g.Grow, w.Plan.Actions)
		}
	}
}

// TestQuiet: savings are looked for while nothing comes, goes or waits for its time to go. An empty node that goes is no matter.
func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		want   bool
	}{
		{"quiet", func(*world) {}, true},
		{"an action", func(w *world) { w.Act(decision.Grow{}) }, false},
		{"a pod that is not judged", func(w *world) { w.Unjudged = true }, false},
		{"scale-down works", func(w *world) { w.busy = true }, false},
		{"a machine comes", func(w *world) { w.Groups[1].Upcoming = 1 }, false},
		{"a machine is bought", func(w *world) { w.Groups[1].Grow = 1 }, false},
		{"a drain", func(w *world) { w.node("b1").State = round.StateMarked }, false},
		{"a node with pods goes", func(w *world) { w.node("b1").Removing = true }, false},
		{"an empty node goes", func(w *world) { w.node("b1").Removing = true; w.moved["b1"] = 0 }, true},
	} {
		w := fourNodes().begin()
		c.change(w)
		if got := w.quiet(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

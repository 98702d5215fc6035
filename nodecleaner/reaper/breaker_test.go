package reaper

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestFreeze: a gap between two rounds that is longer than the loop ever sleeps freezes,
// and so does a clock that goes back; the words say from when to when.
func TestFreeze(t *testing.T) {
	w := newWorld()
	w.policy.Silence = 2 * time.Minute
	w.lose(0)
	w.pass(10 * time.Second)
	w.in.Now = w.in.Now.Add(w.policy.Silence)
	if w.step(); !w.memory.FrozenUntil.IsZero() {
		t.Error("a gap that the loop may have freezes")
	}
	since := w.memory.Watch["n00"].Since
	w.in.Now = w.in.Now.Add(w.policy.Silence + time.Second)
	if w.step(); !w.memory.FrozenUntil.Equal(w.in.Now.Add(w.policy.FreezeFor)) || !w.memory.Watch["n00"].Since.After(since) {
		t.Errorf("frozen until %s, timers since %s", w.memory.FrozenUntil, w.memory.Watch["n00"].Since)
	}
	if !strings.Contains(w.memory.FrozenWhy, "nobody watched between 2026-11-21T12:02:10Z and 2026-11-21T12:04:11Z") {
		t.Errorf("why: %s", w.memory.FrozenWhy)
	}
	w.memory.MassSince, w.memory.Unledgered, w.memory.LastUnledgered = w.in.Now, []time.Time{w.in.Now}, w.in.Now
	w.memory.CloudUntil, w.memory.Errors = w.in.Now, []time.Time{w.in.Now}
	w.in.Now = noon
	w.in.Groups[0].ReadAt = noon
	w.step()
	if m := w.memory; !m.FrozenUntil.Equal(noon.Add(w.policy.FreezeFor)) || !m.Watch["n00"].Since.Equal(noon) {
		t.Errorf("the clock went back: frozen until %s, timers since %s", m.FrozenUntil, m.Watch["n00"].Since)
	} else if !m.MassSince.IsZero() || len(m.Unledgered)+len(m.Errors) != 0 || !m.LastUnledgered.IsZero() || !m.CloudUntil.IsZero() {
		t.Errorf("times of the future stay: %+v", m)
	}
	w.in.Outage = "no answer"
	if w.step(); w.memory.FrozenWhy != "no answer" {
		t.Errorf("why: %s", w.memory.FrozenWhy)
	}
}

// TestFailedReads: failures count once per look, are forgotten after a while, and never
// more of them are kept than count.
func TestFailedReads(t *testing.T) {
	w := newWorld()
	fail := func(step time.Duration, times int) {
		for range times {
			w.in.Now = w.in.Now.Add(step)
			w.in.ReadProblem = "throttled"
			w.step()
		}
		w.in.ReadProblem = ""
	}
	fail(time.Second, 9)
	if n := len(w.memory.Errors); n != 1 {
		t.Errorf("%d failures within ten seconds, want 1", n)
	}
	fail(10*time.Second, 3)
	if n := len(w.memory.Errors); n != 4 || !w.memory.CloudUntil.IsZero() {
		t.Errorf("%d failures, frozen until %s", n, w.memory.CloudUntil)
	}
	fail(10*time.Second, 1)
	if want := w.in.Now.Add(w.policy.FreezeFor); !w.memory.CloudUntil.Equal(want) {
		t.Errorf("frozen until %s, want %s", w.memory.CloudUntil, want)
	}
	fail(10*time.Second, 20)
	if n := len(w.memory.Errors); n != w.policy.BreakErrors {
		t.Errorf("%d failures are kept", n)
	}
	last := w.in.Now
	w.in.Now = last.Add(w.policy.BreakWithin)
	if w.step(); len(w.memory.Errors) != 1 {
		t.Errorf("%d failures are remembered, want the last", len(w.memory.Errors))
	}
	w.in.Now = w.in.Now.Add(time.Second)
	if w.step(); len(w.memory.Errors) != 0 {
		t.Errorf("%d failures are remembered", len(w.memory.Errors))
	}
	w = newWorld()
	w.in.Groups[0].Stale = "partial"
	if w.step(); len(w.memory.Errors) != 1 {
		t.Error("a stale group is no failed read")
	}
	w = newWorld()
	w.policy.BreakErrors = 0
	fail(10*time.Second, 20)
	if !w.memory.CloudUntil.IsZero() {
		t.Error("frozen although the breaker is off")
	}
}

// TestCensus: the edges of the mass breakers.
func TestCensus(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*world)
		mass bool
		zone string // that is down
	}{
		{"as many as may", func(w *world) { w.gone(0, 1) }, false, ""},
		{"one more", func(w *world) { w.gone(0, 1, 2) }, true, ""},
		{"control plane does not count", func(w *world) { w.node(5).ControlPlane, w.node(6).ControlPlane = true, true; w.gone(0, 1) }, true, ""},
		{"foreign Nodes do not count", func(w *world) {
			for n := range 5 {
				w.in.Nodes = append(w.in.Nodes, cluster.Node{Name: cluster.NodeName(rune('a' + n)), Ready: cluster.StatusTrue})
			}
			w.gone(0, 1, 2)
		}, true, ""},
		{"one always may", func(w *world) { w.policy.MaxShare = 0; w.gone(0) }, false, ""},
		{"three of six in a zone", func(w *world) { w.zone("a", 0, 1, 2, 3, 4, 5); w.down(0, 1, 2) }, false, ""},
		{"four of seven in a zone", func(w *world) { w.zone("a", 0, 1, 2, 3, 4, 5, 6); w.down(0, 1, 2, 3) }, false, "a"},
		{"two of two in a zone", func(w *world) { w.zone("c", 0, 1); w.down(0, 1) }, false, ""},
		{"three of three in a zone", func(w *world) { w.zone("c", 0, 1, 2); w.down(0, 1, 2) }, false, "c"},
		{"one of them was removed by a scale-down", func(w *world) { w.zone("c", 0, 1, 2); w.in.Sent = []cluster.InstanceID{id(0)}; w.down(0, 1, 2) }, false, ""},
		{"eleven of twenty", func(w *world) { w.grow(20); w.down(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) }, false, "a"},
	} {
		w := newWorld()
		c.play(w)
		w.in.Now = w.in.Now.Add(10 * time.Second)
		w.in.Groups[0].ReadAt = w.in.Now
		x := newMoment(w.in, w.memory, w.policy)
		plan, next := Decide(w.in, w.memory, w.policy)
		x.census(next.Watch)
		down := ""
		for zone := range x.zones {
			down += zone
		}
		if (x.mass != "") != c.mass || down != c.zone {
			t.Errorf("%s: mass %q, zones %v; want %t and %q", c.name, x.mass, x.zones, c.mass, c.zone)
		}
		if since := next.MassSince; since.IsZero() != (!c.mass && c.zone == "") || !since.IsZero() && !since.Equal(w.in.Now) {
			t.Errorf("%s: since %s: %+v", c.name, since, plan)
		}
		later := w.in
		later.Now = later.Now.Add(time.Second)
		if _, after := Decide(later, next, w.policy); !after.MassSince.Equal(next.MassSince) {
			t.Errorf("%s: the hold begins again in each round", c.name)
		}
	}
}

// TestRecentDeletionsCount: what was deleted within the hold counts for the mass, exactly
// as long.
func TestRecentDeletionsCount(t *testing.T) {
	w := newWorld()
	w.memory.Unledgered = []time.Time{noon, noon.Add(time.Minute)}
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{10 * time.Minute, 2}, {10*time.Minute + time.Second, 1}, {11*time.Minute + time.Second, 0}} {
		w.policy.Silence = time.Hour
		w.in.Now = noon.Add(c.at)
		if w.step(); len(w.memory.Unledgered) != c.want {
			t.Errorf("after %s: %v", c.at, w.memory.Unledgered)
		}
	}
}

func (w *world) gone(nodes ...int) {
	for _, n := range nodes {
		w.lose(n)
		w.phase(n, cluster.PhaseGone)
	}
}

func (w *world) down(nodes ...int) {
	for _, n := range nodes {
		w.lose(n)
	}
}

// zone puts the instances of nodes in one zone and all others in zones of their own.
func (w *world) zone(name string, nodes ...int) {
	for n := range w.in.Groups[0].Instances {
		w.in.Groups[0].Instances[n].Zone = string(rune('k' + n))
	}
	for _, n := range nodes {
		w.in.Groups[0].Instances[n].Zone = name
	}
	w.memory = Memory{}
}

// grow makes the group n machines of one zone.
func (w *world) grow(n int) {
	for i := range w.in.Groups[0].Instances {
		w.in.Groups[0].Instances[i].Zone = "a"
	}
	for i := len(w.in.Nodes); i < n; i++ {
		node := w.in.Nodes[0]
		node.Name, node.UID, node.ProviderID = cluster.NodeName("n"+string(rune('0'+i/10))+string(rune('0'+i%10))), cluster.UID(id(i)), string(id(i))
		w.in.Nodes = append(w.in.Nodes, node)
		w.join(cluster.Instance{ID: id(i), Phase: cluster.PhaseRunning, Member: true, Zone: "a"})
	}
	w.memory = Memory{}
}

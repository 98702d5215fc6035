package round

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestTimers: the earliest moment that is still to come is when the agent looks again, and when its answer may be another one.
func TestTimers(t *testing.T) {
	l := newLedger()
	w := New(new(Cache), &l.s, &l.m, &l.p)
	at := func(d time.Duration) time.Time { return w.Now.Add(d) }
	for _, d := range []time.Duration{-time.Hour, 0, 3 * time.Hour, 2 * time.Hour, 4 * time.Hour} {
		w.WakeAt(at(d))
	}
	if w.Plan.Wake != at(2*time.Hour) || w.Until != at(2*time.Hour) {
		t.Errorf("it looks again at %s, and the answer stands until %s", w.Plan.Wake, w.Until)
	}
	if !w.Reached(at(0)) || w.Reached(at(time.Hour)) || w.Until != at(time.Hour) || w.Plan.Wake != at(2*time.Hour) {
		t.Errorf("the answer stands until %s", w.Until)
	}
	if early, late := at(0), at(1); Later(early, late) != late || Later(late, early) != late {
		t.Error("the later of two moments")
	}
}

// TestFresh: a group's facts are good enough to delete by for FreshFor.
func TestFresh(t *testing.T) {
	for name, c := range map[string]struct {
		age   time.Duration
		stale string
		want  bool
	}{"new": {0, "", true}, "old": {time.Minute, "", true}, "too old": {time.Minute + 1, "", false}, "the read failed": {0, "no answer", false}} {
		l := newLedger()
		l.g().ReadAt, l.g().Stale = l.ago(c.age), c.stale
		w := l.count()
		if got := w.Fresh(&w.Groups[0]); got != c.want || c.want && w.Until.After(w.Now.Add(time.Minute-c.age+1)) {
			t.Errorf("%s: %v, until %s", name, got, w.Until)
		}
	}
}

// TestNominated: a pod that is nominated to a node has its room, unless it does not matter.
func TestNominated(t *testing.T) {
	for name, c := range map[string]struct {
		node   cluster.NodeName
		cutoff int32
		room   int64
		change func(*cluster.Pod)
	}{
		"a node": {"n-1", 0, 1900, nil}, "no node": {"", 0, 2000, nil}, "one that is not there": {"z", 0, 2000, nil}, "a pod that does not matter": {"n-1", 1, 2000, nil},
		"a pod that has ended": {"n-1", 0, 2000, func(p *cluster.Pod) { p.Finished = true }}, "one that is bound": {"n-1", 0, 2000, func(p *cluster.Pod) { p.Node = "z" }},
	} {
		l := newLedger()
		l.p.ExpendablePodsCutoff = c.cutoff
		l.s.Nodes[0].Allocatable = cluster.Resources{MilliCPU: 2000, Pods: 9}
		l.s.Classes = []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 100, Pods: 1}}}
		l.s.Pods = []cluster.Pod{{Key: "a", Nominated: c.node, Unschedulable: cluster.At(l.s.Now)}}
		if c.change != nil {
			c.change(&l.s.Pods[0])
		}
		w := l.count()
		if n := &w.Nodes[0]; n.Room[0] != c.room || n.InUse != (c.room < 2000) {
			t.Errorf("%s: %d is left, in use %v", name, n.Room[0], n.InUse)
		}
	}
}

// TestHeldReasons are in order by kind, name, rule and words; a budget that is spent is told once.
func TestHeldReasons(t *testing.T) {
	l := newLedger()
	w := New(new(Cache), &l.s, &l.m, &l.p)
	for _, h := range [][4]string{{"pod", "a", "U1", "x"}, {"node", "b", "D1", "x"}, {"node", "a", "D2", "x"}, {"node", "a", "D1", "y"}, {"node", "a", "D1", "x 50%"}} {
		w.HeldWhy(h[0], h[1], h[2], h[3])
	}
	w.Held("node", "c", "D1", "%d%%", 5)
	w.Held("node", "d", "D1", "words without values")
	for range 2 {
		w.BudgetSpent(RelocationPart, "the rest waits")
	}
	w.Finish()
	got := ""
	for _, h := range w.Plan.Held {
		got += fmt.Sprintf("%s %s %s %s; ", h.Kind, h.Name, h.Rule, h.Why)
	}
	if want := "cluster cluster " + decision.RuleBudget + " the budget of " + RelocationPart.String() + " is spent: the rest waits; node a D1 x 50%; node a D1 y; node a D2 x; node b D1 x; node c D1 5%; node d D1 words without values; pod a U1 x; "; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

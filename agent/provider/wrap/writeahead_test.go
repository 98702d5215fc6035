package wrap_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
)

// aheadOf makes a fake cloud of one group with two machines, behind a WriteAhead.
func aheadOf(t *testing.T, keep func(context.Context) error) (*fake.Cloud, *wrap.WriteAhead) {
	t.Helper()
	c := fake.New(time.Now())
	c.AddGroup(cluster.NodeGroup{ID: "g", Max: 10, Target: 2})
	c.Step(0)
	c.Step(time.Minute)
	return c, wrap.NewWriteAhead(c, keep)
}

func kept(context.Context) error { return nil }

func only(t *testing.T, p provider.Provider) cluster.NodeGroup {
	t.Helper()
	groups, err := p.Groups(t.Context())
	if err != nil || len(groups) != 1 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	return groups[0]
}

var errLost = &provider.Error{Op: "call", Kind: provider.Transient, Unsure: true, Err: errors.New("connection reset")}

func TestAnUnansweredResizeHoldsTheGroupUntilItShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := aheadOf(t, kept)
		c.Next(errLost)
		if err := w.Resize(t.Context(), "g", 2, 4); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if g := only(t, w); g.Target != 4 || !strings.Contains(g.Busy, "a target of 4 in place of 2") {
			t.Errorf("target %d, busy %q: want what was asked for, and why the group waits", g.Target, g.Busy)
		}
		if err := w.Resize(t.Context(), "g", 2, 6); provider.KindOf(err) != provider.Busy {
			t.Errorf("a second write beside an unanswered one: %v", err)
		}
		c.SetTarget("g", 4) // the late write
		if g := only(t, w); g.Target != 4 || g.Busy != "" || len(w.Open()) != 0 {
			t.Errorf("it shows, and the group still waits: %+v", g)
		}
		if err := w.Resize(t.Context(), "g", 4, 6); err != nil {
			t.Error(err)
		}
	})
}

func TestAnUnansweredResizeThatNeverCameIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := aheadOf(t, kept)
		c.Next(errLost)
		_ = w.Resize(t.Context(), "g", 2, 4)
		time.Sleep(59 * time.Second)
		if only(t, w).Busy == "" {
			t.Error("given up before its time")
		}
		time.Sleep(time.Second)
		if g := only(t, w); g.Busy != "" || g.Target != 2 || len(w.Open()) != 0 {
			t.Errorf("after its time: %+v", g)
		}
	})
}

// TestAnUnansweredDeletionIsTakenForDone: nothing may be placed on the machine, and no
// machine is bought in its place.
func TestAnUnansweredDeletionIsTakenForDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := aheadOf(t, kept)
		id := c.Alive("g")[0]
		c.Next(errLost)
		_ = w.Delete(t.Context(), "g", id)
		time.Sleep(time.Second)
		g := only(t, w)
		for _, in := range g.Instances {
			if want := map[bool]cluster.Phase{true: cluster.PhaseDeleting, false: cluster.PhaseRunning}[in.ID == id]; in.Phase != want {
				t.Errorf("%s is %q, want %q", in.ID, in.Phase, want)
			}
		}
		if g.Target != 1 || g.Busy == "" {
			t.Errorf("target %d, busy %q", g.Target, g.Busy)
		}
		c.Kill(id)
		c.SetTarget("g", 1)
		if g := only(t, w); g.Target != 1 || g.Busy != "" {
			t.Errorf("it shows, and the group still waits: %+v", g)
		}
	})
}

func TestWhatIsNotWrittenDownIsNotAskedFor(t *testing.T) {
	c, w := aheadOf(t, func(context.Context) error { return errors.New("the Lease is lost") })
	if err := w.Resize(t.Context(), "g", 2, 4); provider.KindOf(err) != provider.Transient || c.Target("g") != 2 {
		t.Errorf("%v, target %d", err, c.Target("g"))
	}
	if err := w.Delete(t.Context(), "g", c.Alive("g")[0]); err == nil || len(c.Alive("g")) != 2 {
		t.Errorf("%v, %d alive", err, len(c.Alive("g")))
	}
	if len(w.Open()) != 0 {
		t.Errorf("what was not asked for is waited for: %v", w.Open())
	}
}

func TestARefusalIsAnAnswer(t *testing.T) {
	_, w := aheadOf(t, kept)
	if err := w.Resize(t.Context(), "g", 3, 5); provider.KindOf(err) != provider.Conflict {
		t.Fatal(err)
	}
	if g := only(t, w); g.Busy != "" || g.Target != 2 {
		t.Errorf("after a refusal: %+v", g)
	}
}

// TestWhatIsInheritedWaits: also a write of the same group by this process, and the list
// goes on to whoever comes next.
func TestWhatIsInheritedWaits(t *testing.T) {
	_, w := aheadOf(t, kept)
	left := wrap.Intent{Group: "g", From: 2, To: 7, At: time.Now().Add(-time.Hour)}
	w.Inherit([]wrap.Intent{left})
	if err := w.Resize(t.Context(), "g", 2, 3); provider.KindOf(err) != provider.Busy || !strings.Contains(err.Error(), "the leader before this one") {
		t.Error(err)
	}
	if open := w.Open(); len(open) != 1 || open[0].To != 7 {
		t.Errorf("open: %v", open)
	}
}

// TestOnePartOfADeletionIsUnanswered: the others' outcome is known.
func TestOnePartOfADeletionIsUnanswered(t *testing.T) {
	c, w := aheadOf(t, kept)
	ids := c.Alive("g")
	c.RefuseOne(*errLost)
	_ = w.Delete(t.Context(), "g", ids...)
	if open := w.Open(); len(open) != 1 || len(open[0].Instances) != 1 || open[0].Instances[0] != ids[0] {
		t.Errorf("open: %v, want %s alone", open, ids[0])
	}
}

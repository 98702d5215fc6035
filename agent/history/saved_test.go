package history

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// again is a History that was written, read and restored.
func again(t *testing.T, h *History, now time.Time) *History {
	t.Helper()
	data, err := json.Marshal(h.Save())
	if err != nil {
		t.Fatal(err)
	}
	var s Saved
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	out := &History{}
	if err := out.Restore(s, now); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSavedIsRestored: a day with gaps, groups that come and go, prices and decisions is the same
// after a restart, at once and hours later, and goes on.
func TestSavedIsRestored(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	h, now := &History{}, noon
	for range 400 {
		now = now.Add(time.Duration(1+r.IntN(900)) * time.Second)
		s := world(now, r.IntN(5), r.IntN(3))
		if r.IntN(3) == 0 {
			s.Groups = append(s.Groups, cluster.NodeGroup{ID: "sometimes", Max: r.IntN(9)})
		}
		h.Look(s)
		if r.IntN(4) == 0 {
			h.Acted(decision.Plan{}, []cluster.Outcome{{Action: "grow", Group: "g", From: 1, To: 2, At: now}})
		}
	}
	for _, later := range []time.Duration{0, time.Minute, 3 * time.Hour, 30 * time.Hour} {
		restored, at := again(t, h, now.Add(later)), now.Add(later)
		if a, b := h.View(at), restored.View(at); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d, %s later: restored\n%+v\nwant\n%+v", seed, later, b, a)
		}
	}
	restored := again(t, h, now)
	next := world(now.Add(time.Minute), 7, 1)
	h.Look(next)
	restored.Look(next)
	if a, b := h.View(next.Now), restored.View(next.Now); !reflect.DeepEqual(a, b) {
		t.Errorf("seed %d: it does not go on as it would have", seed)
	}
}

// TestNothingIsSaved: an agent that stops before its first sample saves an empty history, and so does one whose clock
// begins in 1970.
func TestNothingIsSaved(t *testing.T) {
	for _, now := range []time.Time{noon, time.Unix(1e5, 0), time.Unix(-1e6, 0)} {
		empty := again(t, &History{}, now)
		if v := empty.View(now); len(v.Pending) != Steps || slices.Max(v.Nodes) >= 0 || len(v.Groups)+len(v.Marks) > 0 {
			t.Errorf("at %s: %d nodes at most, %d groups, %d decisions", now, slices.Max(v.Nodes), len(v.Groups), len(v.Marks))
		}
		h := &History{}
		h.Look(world(now.Add(time.Hour), 2, 1))
		again(t, h, now.Add(2*time.Hour)).View(now.Add(2 * time.Hour))
	}
}

// TestRestoreRefuses: a list that is too long or too short, a number that is none, and a run without
// an end are errors, and leave the History empty; what is of the future is left out.
func TestRestoreRefuses(t *testing.T) {
	h := &History{}
	h.Look(world(noon, 2, 1))
	h.Acted(decision.Plan{}, []cluster.Outcome{{Action: "cordon", Node: "n", At: noon}})
	good := h.Save()
	for _, bad := range []string{"", "1", "1x287", "1x289", "1x999999999999", "1x0 2x288", "1x-5 2x288", "x288", "-5x288", "99999999999x288", "1x288x2", "zebra"} {
		s := good
		s.Day.Pending = bad
		to := &History{}
		if err := to.Restore(s, noon); err == nil {
			t.Errorf("pending %q is taken", bad)
		}
		s = good
		s.Hour.Groups = map[string][4]string{"g": {"1x60", "1x60", "1x60", bad}}
		if err := to.Restore(s, noon); err == nil {
			t.Errorf("machines %q are taken", bad)
		}
		if v := to.View(noon); len(v.Marks)+len(v.Groups) != 0 {
			t.Errorf("%q leaves %+v", bad, v)
		}
	}
	to := &History{}
	if err := to.Restore(good, noon.Add(-time.Hour)); err != nil {
		t.Error(err)
	}
	if v := to.View(noon); len(v.Marks)+len(v.Groups) != 0 || slices.Max(v.Nodes) >= 0 {
		t.Errorf("of the future: %+v", v)
	}
	many := good
	many.Marks = slices.Repeat([]Mark{{At: noon, Do: "grow", Why: strings.Repeat("w", 9999)}}, 3*maxMarks)
	if err := to.Restore(many, noon); err != nil || len(to.View(noon).Marks) != maxMarks || len(to.View(noon).Marks[0].Why) > wordBytes {
		t.Errorf("%d marks, %v", len(to.View(noon).Marks), err)
	}
}

// FuzzRuns: a list is what Runs wrote of it, and no text is read as more numbers than asked for.
func FuzzRuns(f *testing.F) {
	f.Add("0x12 3 -x5", 18)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = min(max(n, 0), 1000)
		list, err := runs(text, n)
		if err != nil {
			return
		}
		again, err := runs(Runs(list), n)
		if err != nil || !slices.Equal(list, again) {
			t.Errorf("%q: %v, then %v, %v", text, list, again, err)
		}
	})
}

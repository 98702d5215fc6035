package reaper

import (
	"strings"
	"testing"
	"time"
)

// TestExplainShowsTheTrace: every rule that was asked, the objection last, and the facts.
func TestExplainShowsTheTrace(t *testing.T) {
	w := newWorld()
	w.lose(0)
	w.phase(0, "gone")
	w.pass(30 * time.Second)
	v := Explain(w.in, w.memory, w.policy, "n00")
	last := v.Checks[len(v.Checks)-1]
	if v.Rule != "G2" || last.Rule != "G2" || last.OK || len(v.Checks) < 10 || !strings.Contains(strings.Join(v.Facts, "\n"), "seen terminated first") {
		t.Errorf("%+v", v)
	}
	if v := Explain(w.in, w.memory, w.policy, "n01"); v.Rule != "L0" || v.Deletes {
		t.Errorf("%+v", v)
	}
	if v := Explain(w.in, w.memory, w.policy, "none"); v.Rule != "" {
		t.Errorf("%+v", v)
	}
	w.in.Now = w.in.Now.Add(time.Minute)
	w.in.Groups[0].ReadAt = w.in.Now
	before := w.memory
	w.decide()
	if v := Explain(w.last, before, w.policy, "n00"); !v.Deletes || v.Rule != "G3" {
		t.Errorf("%+v", v)
	}
}

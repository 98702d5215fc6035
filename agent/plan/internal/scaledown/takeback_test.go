package scaledown

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// markedBy writes down another rule by which a node was marked a minute ago.
func (w *world) markedBy(node, rule string) {
	w.node(node).Annotations[cluster.AnnotationCordoned] = "2026-01-05T07:59:00Z " + rule
}

// TestTakeBack: whether the mark is taken from node a, and what follows from that.
func TestTakeBack(t *testing.T) {
	by := func(w *world, rule string) { w.markedBy("a", rule) }
	replaced := func(w *world) { by(w, decision.RuleReplaceNode); w.replace("a") }
	overdue := func(w *world) { w.node("a").Taints = nil; w.mark("a", decision.RuleUnneeded, time.Hour) }
	needed := func(w *world) {
		w.waits(0, 1)
		w.s.Pods[0].Nominated, w.s.Pods[0].Unschedulable = "a", 0
	}
	full := func(w *world) { w.pods("b", 0, 1); w.pods("c", 0, 1) }
	emptiesFirst := func(w *world) { w.p.ReplaceAtMax = "empty-first"; w.s.Groups[0].Max = 3 }
	const none = ""
	for _, c := range []struct {
		name               string
		change             func(w *world)
		want               string // why it is
		postponed, givenUp bool
	}{
		{"goes on", func(*world) {}, none, false, false},
		{"the rollout is paused", func(w *world) {
			by(w, decision.RuleDrifted)
			w.drift("a")
			w.node("b").Pods = nil
			w.p.Rollouts = cluster.RolloutOrders{"pool": {Paused: true}}
		}, "the rollout of its group is paused; `autoscaler-agent rollout resume pool` lets it go on", false, false},
		{"not interrupted any more", func(w *world) { by(w, decision.RuleInterrupted) }, "the cloud does not say any more that it ends the machine", false, false},
		{"scale-down is off", func(w *world) { w.p.ScaleDown = false }, "scale-down is switched off", false, false},
		{"kept", func(w *world) { w.keep("a") }, "annotated autoscaler-agent/keep", false, false},
		{"requested", func(w *world) { by(w, decision.RuleRequested); w.request("a") }, none, false, false},
		{"not requested any more", func(w *world) { by(w, decision.RuleRequested) }, "the annotation autoscaler-agent/scale-down-requested is gone", false, false},
		{"at its minimum", func(w *world) { w.s.Groups[0].Min = 3 }, "the group is at its minimum of 3", false, false},
		{"above its minimum", func(w *world) { w.s.Groups[0].Min = 2 }, none, false, false},
		{"replaced", replaced, none, false, false},
		{"not replaced any more", func(w *world) { by(w, decision.RuleReplaceNode) }, "nothing asks for its replacement any more", true, false},
		{"needed", needed, "pending pods need it", true, false},
		{"needed, replaced", func(w *world) { needed(w); replaced(w) }, "pending pods need it", true, false},
		{"needed, emptied first", func(w *world) { needed(w); replaced(w); emptiesFirst(w) }, none, false, false},
		{"needed, not replaced in a full group", func(w *world) { needed(w); emptiesFirst(w) }, "pending pods need it", true, false},
		{"a pod runs to its end", func(w *world) { w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion }, "pod default/a-0 runs to its end (safe-to-evict=on-completion)", true, false},
		{"a pod runs to its end, requested", func(w *world) {
			w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion
			w.request("a")
		}, none, false, false},
		{"blocked", func(w *world) { w.node("a").Pods[0].Owner, w.node("a").Pods[0].DoNotDisrupt = nil, true },
			"pod default/a-0 annotated karpenter.sh/do-not-disrupt; pod default/a-0 has no controller to make it again", true, false},
		{"overdue", overdue, "1 pod did not leave by 2026-01-05T07:02:35Z", true, false},
		{"overdue with a pod that ends", func(w *world) { overdue(w); w.node("a").Pods[0].Deleting = cluster.At(w.s.Now) }, "1 pod did not leave by 2026-01-05T07:02:35Z", true, false},
		{"overdue and empty", func(w *world) { overdue(w); w.node("a").Pods = nil }, none, false, false},
		{"overdue by force, not replaced", func(w *world) { overdue(w); w.p.ReplaceDrainOverdue = "force" }, "1 pod did not leave by 2026-01-05T07:02:35Z", true, false},
		{"overdue, replaced", func(w *world) { overdue(w); replaced(w) }, "1 pod did not leave by 2026-01-05T07:15:35Z", true, true},
		{"overdue by force, replaced", func(w *world) { overdue(w); replaced(w); w.p.ReplaceDrainOverdue = "force" }, none, false, false},
		{"no room", full, "pod default/a-0 has room nowhere else", true, false},
		{"no room, replaced", func(w *world) { full(w); replaced(w) }, "pod default/a-0 has room nowhere else", true, false},
		{"no room, emptied first", func(w *world) { full(w); replaced(w); emptiesFirst(w) }, none, false, false},
		{"no room, consolidated", func(w *world) { full(w); by(w, decision.RuleConsolidate) }, "pod default/a-0 has room nowhere else", true, true},
	} {
		w := drained()
		c.change(w)
		w.begin().Resume()
		got := w.fate("a")
		if want := "uncordon a [D12] " + c.want + "; D12 stays: " + c.want; c.want != none && got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
		if taken := strings.HasPrefix(got, "uncordon"); taken != (c.want != none) || taken == w.at("a").Removing {
			t.Errorf("%s: %q, and it goes: %v", c.name, got, w.at("a").Removing)
		}
		if _, draining := w.Next.Draining["a"]; draining != (c.want == none) {
			t.Errorf("%s: the drain goes on in memory: %v", c.name, draining)
		}
		want := time.Time{}
		if c.postponed {
			want = w.Now.Add(3 * time.Minute)
		}
		if !w.Next.ScaleDownAfter.Equal(want) {
			t.Errorf("%s: the next scale-down at %s, want %s", c.name, w.Next.ScaleDownAfter, want)
		}
		if got := w.Disruption.GivenUp("a"); got != c.givenUp {
			t.Errorf("%s: given up: %v", c.name, got)
		}
	}
}

// TestRemovals: nodes that are removed are counted by whether pods have to leave them.
func TestRemovals(t *testing.T) {
	var r removals
	p := decision.Policy{MaxEmptyAtOnce: 1, MaxDrainAtOnce: 2}
	empty, leaving := cargo(0, 0), cargo(0, 1)
	if r.any() {
		t.Error("no node is being removed")
	}
	r.add(empty)
	if limit, full := r.full(empty, &p); limit != 1 || !full || !r.any() {
		t.Errorf("one empty node of %d: %v", limit, full)
	}
	for range 2 {
		if limit, full := r.full(leaving, &p); limit != 2 || full {
			t.Errorf("%+v of %d: %v", r, limit, full)
		}
		r.add(leaving)
	}
	if _, full := r.full(cargo(1, 0), &p); !full {
		t.Error("a third drain")
	}
}

func cargo(movable, terminating int) *round.DrainPlan {
	return &round.DrainPlan{Movable: movable, Terminating: terminating}
}

package scaledown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// twoSteps drains pods below priority 10 first, with 20 seconds of grace, and the others with a minute.
var twoSteps = decision.DrainOrder{{Priority: 0, Grace: 20 * time.Second}, {Priority: 10, Grace: time.Minute}}

// TestGraceOf: a pod gets what it asks for, up to what its step allows.
func TestGraceOf(t *testing.T) {
	for _, c := range []struct {
		priority int32
		grace    cluster.Seconds
		order    decision.DrainOrder
		want     time.Duration
	}{
		{0, 30, nil, 30 * time.Second},
		{0, 3600, nil, 10 * time.Minute},
		{-5, 30, twoSteps, 20 * time.Second},
		{0, 10, twoSteps, 10 * time.Second},
		{9, 90, twoSteps, 20 * time.Second},
		{10, 90, twoSteps, time.Minute},
		{11, 90, twoSteps, time.Minute},
	} {
		w := newWorld()
		w.p.DrainPriority = c.order
		class := w.class(cluster.PodClass{Priority: c.priority})
		if got := w.begin().graceOf(&cluster.Pod{Class: class, GracePeriod: c.grace}); got != c.want {
			t.Errorf("priority %d, %d s, %v: %s, want %s", c.priority, c.grace, c.order, got, c.want)
		}
	}
}

// TestDeadline: a drain may take the time after the mark, the grace of its pods, and what an eviction may take. Node a was marked a minute ago.
func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		since  time.Duration // seen since
		want   time.Duration
	}{
		{"not needed", func(*world) {}, time.Minute, 5*time.Second + 30*time.Second + 2*time.Minute},
		{"seen later", func(*world) {}, 20 * time.Second, 40*time.Second + 5*time.Second + 30*time.Second + 2*time.Minute},
		{"seen earlier", func(*world) {}, time.Hour, 5*time.Second + 30*time.Second + 2*time.Minute},
		{"in two steps", func(w *world) { w.p.DrainPriority = twoSteps }, time.Minute, 5*time.Second + 20*time.Second + 2*time.Minute + time.Minute + 2*time.Minute},
		{"replaced", func(w *world) { w.markedBy("a", decision.RuleSick) }, time.Minute, 5*time.Second + 30*time.Second + 15*time.Minute},
		{"replaced, of a group with its own time", func(w *world) {
			w.markedBy("a", decision.RuleSick)
			w.s.Groups[0].Options.ReplaceDrainTime = new(time.Hour)
		}, time.Minute, 5*time.Second + 30*time.Second + time.Hour},
		{"replaced, with less time for that", func(w *world) { w.markedBy("a", decision.RuleSick); w.p.ReplaceDrainTime = time.Minute }, time.Minute, 5*time.Second + 30*time.Second + 2*time.Minute},
	} {
		w := drained()
		c.change(w)
		w.begin()
		plan := w.DrainPlanOf(w.at("a"))
		if got := w.deadline(w.at("a"), &plan, w.Now.Add(-c.since)).Sub(w.Now.Add(-time.Minute)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestWave: a drain evicts the pods of one step at once; those that still end keep the next step back.
func TestWave(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world, low, high *cluster.Pod)
		want   string
	}{
		{"no steps", func(w *world, _, _ *cluster.Pod) { w.p.DrainPriority = nil }, "default/a-0 default/a-1"},
		{"one step", func(w *world, _, _ *cluster.Pod) { w.p.DrainPriority = twoSteps[:1] }, "default/a-0 default/a-1"},
		{"two steps", func(*world, *cluster.Pod, *cluster.Pod) {}, "default/a-0"},
		{"the first step ends", func(w *world, low, _ *cluster.Pod) { low.Deleting = cluster.At(w.s.Now) }, ""},
		{"the first step is a DaemonSet's", func(_ *world, low, _ *cluster.Pod) { low.Owner = daemonSet }, "default/a-1"},
		{"the first step runs to its end", func(_ *world, low, _ *cluster.Pod) { low.SafeToEvict = cluster.SafeOnCompletion }, "default/a-1"},
		{"the second step ends", func(w *world, _, high *cluster.Pod) { high.Deleting = cluster.At(w.s.Now) }, "default/a-0"},
	} {
		w := drained()
		w.p.DrainPriority = twoSteps
		pods := w.pods("a", w.class(cluster.PodClass{Requests: size(1), Priority: 10}), 1)
		c.change(w, &pods[0], &pods[1])
		w.begin()
		var got []string
		for _, pod := range w.wave(w.at("a")) {
			got = append(got, string(pod.Key))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEvictDaemons: which pods of DaemonSets are asked to end before their node does. It was marked a minute ago.
func TestEvictDaemons(t *testing.T) {
	wish := func(p *cluster.Pod, v string) { p.Wishes = &cluster.PodWishes{EvictDaemon: v} }
	for _, c := range []struct {
		name            string
		change          func(w *world, p *cluster.Pod)
		byDefault, want bool
	}{
		{"by default", func(*world, *cluster.Pod) {}, true, true},
		{"not by default", func(*world, *cluster.Pod) {}, false, false},
		{"wanted, not by default", func(_ *world, p *cluster.Pod) { wish(p, "true") }, false, true},
		{"not wanted", func(_ *world, p *cluster.Pod) { wish(p, "false") }, true, false},
		{"not of a DaemonSet", func(_ *world, p *cluster.Pod) { p.Owner = owner }, true, false},
		{"static", func(_ *world, p *cluster.Pod) { p.Mirror = true }, true, false},
		{"finished", func(_ *world, p *cluster.Pod) { p.Finished = true }, true, false},
		{"terminating", func(w *world, p *cluster.Pod) { p.Deleting = cluster.At(w.s.Now) }, true, false},
		{"made with the mark", func(w *world, p *cluster.Pod) { p.Created = cluster.At(w.s.Now.Add(-time.Minute)) }, true, true},
		{"made after the mark", func(w *world, p *cluster.Pod) { p.Created = cluster.At(w.s.Now.Add(-59 * time.Second)) }, true, false},
		{"a budget that is open", func(w *world, _ *cluster.Pod) { w.guard("a", 1, 0) }, true, true},
		{"a budget that is closed", func(w *world, _ *cluster.Pod) { w.guard("a", 0, 0) }, true, false},
		{"a budget that is closed, not started", func(w *world, p *cluster.Pod) { w.guard("a", 0, 0); p.Unstarted = true }, true, true},
		{"a budget that is closed but for pods that are not Ready, not Ready", func(w *world, p *cluster.Pod) { w.guard("a", 0, 0); w.s.Budgets[0].Unready, p.Unready = true, true }, true, true},
		{"two budgets", func(w *world, p *cluster.Pod) {
			p.Budgets = []string{"x", "y"}
			w.s.Budgets = []cluster.Budget{{Key: "x", Allowed: 1}, {Key: "y", Allowed: 1}}
		}, true, false},
	} {
		w := drained()
		pod := &w.node("a").Pods[0]
		pod.Owner = daemonSet
		c.change(w, pod)
		w.begin().evictDaemons(w.at("a"), c.byDefault)
		if got := len(w.Plan.Actions) == 1; got != c.want {
			t.Errorf("%s: evicts %v, want %v", c.name, w.Plan.Actions, c.want)
		}
		if c.want && w.Budget["default/web"] != 0 {
			t.Errorf("%s: the budget is not used", c.name)
		}
	}
}

// TestDelayed: an annotation keeps a drained node for two minutes.
func TestDelayed(t *testing.T) {
	words := func(until, key string) string {
		return fmt.Sprintf("drained; waits until 2026-01-05T08:%sZ for whoever put the annotation delay-deletion.cluster-autoscaler.kubernetes.io/%s", until, key)
	}
	for _, c := range []struct {
		name string
		keys []string
		ago  time.Duration // since when the node has been drained; -1: that is new
		want string
	}{
		{"no annotation", nil, -1, ""},
		{"drained now", []string{"b"}, -1, words("02:00", "b")},
		{"the first by name", []string{"c", "a", "b"}, -1, words("02:00", "a")},
		{"drained some time ago", []string{"b"}, 119 * time.Second, words("00:01", "b")},
		{"long enough", []string{"b"}, 2 * time.Minute, ""},
	} {
		w := drained()
		if c.ago >= 0 {
			w.m.Emptied = map[cluster.NodeName]time.Time{"a": w.s.Now.Add(-c.ago)}
		}
		for _, k := range c.keys {
			w.node("a").Annotations[cluster.AnnotationDelay+k] = ""
		}
		if got := w.begin().delayed(w.at("a")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		want := time.Time{}
		if c.keys != nil {
			want = w.Now.Add(-max(c.ago, 0))
		}
		if got := w.Next.Emptied["a"]; !got.Equal(want) {
			t.Errorf("%s: drained since %s, want %s", c.name, round.Stamp(got), round.Stamp(want))
		}
	}
	w := newWorld()
	w.group("pool", "a")
	w.node("a").Annotations = map[string]string{cluster.AnnotationDelay + "x": ""}
	if got := w.begin().delayed(w.at("a")); got != words("02:00", "x") {
		t.Errorf("the only annotation: %q", got)
	}
}

// TestOptOutNow: which annotation keeps a node. It joined a day ago, or by its clock in a minute.
func TestOptOutNow(t *testing.T) {
	const key = cluster.AnnotationDoNotDisrupt
	for _, c := range []struct {
		value  string
		joined time.Duration
		want   string
	}{
		{"true", -24 * time.Hour, "annotated karpenter.sh/do-not-disrupt"},
		{"false", -24 * time.Hour, ""},
		{"24h", -24 * time.Hour, ""},
		{"24h1s", -24 * time.Hour, "annotated karpenter.sh/do-not-disrupt until 2026-01-05T08:00:01Z"},
		{"0s", time.Minute, ""},
		{"-1s", time.Minute, ""},
		{"false", time.Minute, ""},
		{"1s", time.Minute, "annotated karpenter.sh/do-not-disrupt until 2026-01-05T08:01:01Z"},
	} {
		w := idleNode()
		w.node("a").Annotations[key], w.node("a").Created = c.value, w.s.Now.Add(c.joined)
		if got := w.begin().OptOutNow(w.node("a")); got != c.want {
			t.Errorf("%s, joined %s ago: %q, want %q", c.value, -c.joined, got, c.want)
		}
	}
}

package scaledown

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
)

// TestSpared: sick nodes stay where too many are, and budgets hold all others than those that somebody asked for.
func TestSpared(t *testing.T) {
	sick := func(w *world) { // a and b, which is kept
		w.p.RepairAfter, w.p.RepairMaxSick = 24*time.Hour, 20
		w.unready("a", time.Hour)
		w.unready("b", time.Hour)
		w.keep("b")
	}
	const two = "2 of 3 nodes of group pool are sick, more than 20%: the cause is rather something that they share"
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"not needed", sick, "D32 not needed, and stays: " + two},
		{"requested", func(w *world) { sick(w); w.request("a") }, "cordon a [D20] utilisation 25%, 1 pod to move"},
		{"replaced", func(w *world) { sick(w); w.replace("a") }, "cordon a [D33] somebody asked for its replacement; utilisation 25%, 1 pod to move"},
		{"requested, by its own budget", func(w *world) { w.request("a"); w.budget("0 of requested") },
			"D29 not needed, and stays: 0 of 3 nodes of group pool are disrupted (on their way out, not Ready, or about to be replaced), and its budget is 0 of requested"},
		{"requested, by the budget of idle nodes", func(w *world) { w.request("a"); w.budget("0 of idle") }, "cordon a [D20] utilisation 25%, 1 pod to move"},
	} {
		w := idleNode()
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
	}
}

// TestReasonOf: by which name budgets know why a node goes.
func TestReasonOf(t *testing.T) {
	drifted := disruption.Reason{Rule: decision.RuleDrifted, Name: cluster.ReasonDrifted}
	for want, c := range map[string]*Candidate{
		cluster.ReasonIdle:      {},
		cluster.ReasonRequested: {requested: true},
		cluster.ReasonDrifted:   {requested: true, why: drifted},
	} {
		if got := c.reason(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestOrderReplacements: a machine is ordered in place of node a, whose pod has no room elsewhere.
func TestOrderReplacements(t *testing.T) {
	const asked, noRoom = "somebody asked for its replacement; ", "pod default/a-0 has room nowhere else"
	ordered := func(w *world) { w.s.Groups[0].Target++ }
	large := func(w *world) { // the pod is larger than a machine of its group is now
		w.s.Groups[0].Template.Allocatable = size(0.5)
	}
	emptiesFirst := func(w *world) { w.p.ReplaceAtMax = "empty-first"; w.s.Groups[0].Max = 3 }
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"ordered", func(*world) {}, "D28 " + asked + noRoom + ": a machine is ordered in its place"},
		{"the cluster grew", func(w *world) { w.node("b").Created = w.s.Now }, "D28 " + asked + noRoom + ": a machine is ordered in its place"},
		{"the round grows", func(w *world) { w.begin().Grew = true }, "H5 " + asked + "it stays: this round grows"},
		{"the group is paused", func(w *world) { w.s.Groups[0].Pause = &cluster.Pause{} }, "U21 " + asked + "it stays: paused"},
		{"the cluster grew, and the group is paused", func(w *world) { w.node("b").Created = w.s.Now; w.s.Groups[0].Pause = &cluster.Pause{} }, "U21 " + asked + "it stays: paused"},
		{"ordered before", ordered, "D28 " + asked + "it waits for a machine of its group that is coming (" + noRoom + ")"},
		{"a new machine would not help", large, "D28 " + asked + noRoom + ", and a new machine of its group would not have room for its pods either"},
		{"a new machine would not help, and was ordered before", func(w *world) { large(w); ordered(w) },
			"D28 " + asked + "it waits for a machine of its group that is coming (" + noRoom + ")"},
		{"a new machine may not help a pod that others keep off", func(w *world) {
			large(w)
			w.node("a").Pods[0].Class = w.class(cluster.PodClass{Requests: size(1), Labels: map[string]string{"app": "web"},
				PodAntiAffinity: []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Selector: is("web"), Namespaces: []string{"default"}}}})
		}, "D28 " + asked + noRoom + ": a machine is ordered in its place"},
		{"emptied first", emptiesFirst, "cordon a [D33] " + asked + "utilisation 25%, 1 pod to move"},
		{"emptied first, and enough are", func(w *world) { emptiesFirst(w); w.p.MaxDrainAtOnce = 0 }, "D13 it waits: 0 nodes go at once"},
	} {
		w := idleNode()
		w.replace("a")
		w.pods("b", 0, 1)
		w.pods("c", 0, 1)
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
	}
}

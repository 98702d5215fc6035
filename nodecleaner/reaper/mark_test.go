package reaper

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestDecideMarksStoppedInstances: a stopped machine's Node is marked and kept, and the
// mark goes with the stop; nobody is marked who is Ready, and in mode observe nobody.
func TestDecideMarksStoppedInstances(t *testing.T) {
	w := newWorld()
	w.lose(0)
	w.phase(0, cluster.PhaseStopped)
	w.phase(1, cluster.PhaseStopped) // Ready still
	w.pass(20e9)
	if len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0] != (Mark{Node: "n00", UID: "u00", On: true}) || w.held(0) != "G1" {
		t.Fatalf("marks %+v, held by %s", w.plan.Shutdown, w.held(0))
	}
	for name, set := range map[string]func(on bool){
		"mode observe":       func(on bool) { w.policy.Observe = on },
		"a cloud controller": func(on bool) { w.in.Coexist = map[bool]string{true: "it works"}[on] },
		"an outage":          func(on bool) { w.in.Outage = map[bool]string{true: "no answer"}[on] },
		"a stale group":      func(on bool) { w.in.Groups[0].Stale = map[bool]string{true: "throttled"}[on] },
		"an operator": func(on bool) {
			w.node(0).Annotations = map[string]string{cluster.AnnotationKeep: map[bool]string{true: "true"}[on]}
		},
	} {
		set(true)
		if w.step(); len(w.plan.Shutdown) != 0 {
			t.Errorf("%s: marks %+v", name, w.plan.Shutdown)
		}
		set(false)
	}
	w.node(2).Taints = []cluster.Taint{{Key: TaintShutdown, Effect: "NoSchedule"}, {Key: "example.net/owner", Value: ShutdownValue, Effect: "NoSchedule"}}
	if w.step(); len(w.plan.Shutdown) != 1 {
		t.Errorf("somebody else's mark is taken: %+v", w.plan.Shutdown)
	}
	w.node(0).Taints = append(w.node(0).Taints, cluster.Taint{Key: TaintShutdown, Value: ShutdownValue, Effect: "NoSchedule"})
	w.step()
	if len(w.plan.Shutdown) != 0 {
		t.Errorf("marked twice: %+v", w.plan.Shutdown)
	}
	w.phase(0, cluster.PhaseRunning)
	w.pass(10e9)
	if len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0].On {
		t.Errorf("the mark stays: %+v", w.plan.Shutdown)
	}
	w.node(0).Ready = cluster.StatusTrue
	w.node(0).Taints = append(w.node(0).Taints, cluster.Taint{Key: "example.net/other", Effect: "NoSchedule"})
	if w.step(); len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0].On {
		t.Errorf("the mark stays on a Ready Node: %+v", w.plan.Shutdown)
	}
	w.phase(0, cluster.PhaseStopped) // as a read says that lags
	if w.step(); len(w.plan.Shutdown) != 1 || w.plan.Shutdown[0].On {
		t.Errorf("the mark stays on a Ready Node: %+v", w.plan.Shutdown)
	}
}

// TestMarksOnlyTheStopped: a Node that is not Ready and whose instance is not stopped is not
// marked.
func TestMarksOnlyTheStopped(t *testing.T) {
	for _, phase := range []cluster.Phase{cluster.PhaseRunning, cluster.PhasePending, cluster.PhaseDeleting, cluster.PhaseGone, cluster.PhaseUnknown, cluster.PhaseFailed} {
		w := newWorld()
		w.lose(0)
		w.phase(0, phase)
		if w.pass(20e9); len(w.plan.Shutdown) > 0 {
			t.Errorf("phase %q: %+v", phase, w.plan.Shutdown)
		}
	}
}

// TestClaims (E5): the group is written on Nodes whose instance exists, once, and on none
// whose instance, group or provider ID is in doubt.
func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   bool
	}{
		"it runs":                 {func(*world) {}, true},
		"it is stopped":           {func(w *world) { w.phase(0, cluster.PhaseStopped) }, true},
		"it is terminated":        {func(w *world) { w.phase(0, cluster.PhaseGone) }, false},
		"it has no state":         {func(w *world) { w.phase(0, cluster.PhaseUnknown) }, false},
		"it is not listed":        {func(w *world) { w.vanish(0) }, false},
		"its group is stale":      {func(w *world) { w.in.Groups[0].Stale = "throttled" }, false},
		"an outage":               {func(w *world) { w.in.Outage = "no answer" }, false},
		"mode observe":            {func(w *world) { w.policy.Observe = true }, false},
		"the Node is deleted":     {func(w *world) { w.node(0).Deleting = true }, false},
		"its provider ID is not":  {func(w *world) { w.memory.Doubts = map[cluster.UID]string{"u00": "two machines"} }, false},
		"it is written already":   {func(w *world) { w.claimed(0, "workers") }, false},
		"another group's name is": {func(w *world) { w.claimed(0, "past") }, true},
	} {
		w := newWorld()
		c.change(w)
		var plan Plan
		w.moment().claim(&candidate{node: *w.node(0), id: id(0)}, &plan)
		if got := len(plan.Claims) == 1 && plan.Claims[0] == (Claim{Node: "n00", UID: "u00", Group: "workers"}); got != c.want || len(plan.Claims) > 1 {
			t.Errorf("%s: %+v, want %t", name, plan.Claims, c.want)
		}
	}
}

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

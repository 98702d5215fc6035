package scaledown

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestUtilisation: how much of node a is used, and how much may be. It has four cores and 8 GiB, and a pod of one core and 1 GiB.
func TestUtilisation(t *testing.T) {
	yes, no, limit, gpuLimit := true, false, 0.3, 0.2
	daemon := func(w *world) { w.daemon("a") }
	gpus := func(w *world, have, used int64) {
		w.node("a").Allocatable.Extended = map[string]int64{"nvidia.com/gpu": have, "example.com/dongle": 2}
		r := size(1)
		r.Extended = map[string]int64{"nvidia.com/gpu": used, "example.com/dongle": 2}
		w.node("a").Pods[0].Class = w.class(cluster.PodClass{Requests: r})
	}
	for _, c := range []struct {
		name        string
		change      func(w *world)
		want, limit float64
	}{
		{"by cpu", func(*world) {}, 0.25, 0.5},
		{"by memory", func(w *world) {
			w.node("a").Pods[0].Class = w.class(cluster.PodClass{Requests: cluster.Resources{MilliCPU: 1000, Memory: 6 << 30, Pods: 1}})
		}, 0.75, 0.5},
		{"with a DaemonSet's pod", daemon, 0.5, 0.5},
		{"with a DaemonSet's pod left out", func(w *world) { daemon(w); w.p.IgnoreDaemonSetsUtilization = true }, 1.0 / 3, 0.5},
		{"with a DaemonSet's pod left out in its group", func(w *world) { daemon(w); w.s.Groups[0].Options.IgnoreDaemonSetsUtilization = &yes }, 1.0 / 3, 0.5},
		{"with a DaemonSet's pod left out elsewhere", func(w *world) {
			daemon(w)
			w.p.IgnoreDaemonSetsUtilization = true
			w.s.Groups[0].Options.IgnoreDaemonSetsUtilization = &no
		}, 0.5, 0.5},
		{"with DaemonSets that take all", func(w *world) {
			w.node("a").Pods = nil
			for range 4 {
				w.daemon("a")
			}
			w.p.IgnoreDaemonSetsUtilization = true
		}, 0, 0.5},
		{"nothing allocatable", func(w *world) { w.node("a").Allocatable = cluster.Resources{} }, 0, 0.5},
		{"limit of its group", func(w *world) {
			w.s.Groups[0].Options.ScaleDownUtilization, w.s.Groups[0].Options.ScaleDownGPUUtilization = &limit, &gpuLimit
		}, 0.25, 0.3},
		{"GPUs", func(w *world) { gpus(w, 8, 1); w.p.GPUUtilizationThreshold = 0.4 }, 0.125, 0.4},
		{"GPUs, limit of its group", func(w *world) {
			gpus(w, 8, 1)
			w.s.Groups[0].Options.ScaleDownUtilization, w.s.Groups[0].Options.ScaleDownGPUUtilization = &limit, &gpuLimit
		}, 0.125, 0.2},
		{"no GPU is left", func(w *world) { gpus(w, 0, 0); w.p.GPUUtilizationThreshold = 0.4 }, 0.25, 0.5},
	} {
		w := idleNode()
		c.change(w)
		w.begin()
		got, limit := w.Utilisation(w.at("a")), w.Threshold(w.at("a"))
		if fmt.Sprintf("%.4f", got) != fmt.Sprintf("%.4f", c.want) || limit != c.limit {
			t.Errorf("%s: %v of %v, want %v of %v", c.name, got, limit, c.want, c.limit)
		}
	}
}

// TestBusyWords: the words of a use are made once, up to a thousand of them, and none for uses that nobody has.
func TestBusyWords(t *testing.T) {
	c := &Cache{}
	for _, x := range []struct {
		use, limit float64
		want       string
		known      int
	}{
		{0.754, 0.5, "utilisation 75% is above 50%", 1},
		{0.751, 0.5, "utilisation 75% is above 50%", 1},
		{0.75, 0.25, "utilisation 75% is above 25%", 2},
		{9.99, 0.5, "utilisation 999% is above 50%", 3},
		{10, 0.5, "utilisation 1000% is above 50%", 3},
	} {
		if got := c.busyWords(x.use, x.limit); got != x.want || len(c.busy) != x.known {
			t.Errorf("%v of %v: %q, %d known", x.use, x.limit, got, len(c.busy))
		}
	}
	for i := range 2000 {
		if c.busyWords(0.1, float64(i)); len(c.busy) > maxBusyWords {
			t.Fatalf("%d are known", len(c.busy))
		}
	}
	if len(c.busy) != maxBusyWords {
		t.Errorf("%d are known", len(c.busy))
	}
}

// TestBudgetsOfSteps: where no look is left the Plan says so, and the next round is soon.
func TestBudgetsOfSteps(t *testing.T) {
	for _, looks := range []int{-1, 0} {
		w := idleNode().begin()
		w.Next.Unlooked = []cluster.NodeName{"b", "a"}
		w.looks = looks
		w.tellRelocation()
		said := w.Plan.String()
		if looks < 0 && (said != "held cluster cluster [H6] the budget of scale-down's relocation is spent: 2 nodes were not looked at and stay; the next round begins with them\n" ||
			w.Next.Unlooked[0] != "a" || !w.Plan.Wake.Equal(w.Now.Add(relocationAgain))) || looks >= 0 && (said != "" || !w.Plan.Wake.IsZero()) {
			t.Errorf("%d looks are left: %q, wakes at %s", looks, said, w.Plan.Wake)
		}
		w.Plan.Held = nil
		w.tellConsolidation()
		said = w.Plan.String()
		if looks < 0 && said != "held cluster cluster [H6] the budget of consolidation is spent: the largest saving that was found by then counts\n" || looks >= 0 && said != "" {
			t.Errorf("%d looks are left: %q", looks, said)
		}
	}
}

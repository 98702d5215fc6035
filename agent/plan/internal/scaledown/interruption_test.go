package scaledown

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// interrupted is a cluster in which the cloud ends the machine of node a, which has a pod.
func interrupted() *world {
	w := idleNode()
	in := w.instance("a")
	in.Phase, in.Interruption = cluster.PhaseDeleting, &cluster.Interruption{Why: "spot"}
	return w
}

// TestDrainInterrupted: the node is cordoned and its pods are evicted at once.
func TestDrainInterrupted(t *testing.T) {
	const cordon, evict = "cordon a [D23] the cloud ends its machine (spot); ", "evict default/a-0 from a; "
	says := func(counts string) string { return "D23 the cloud ends its machine (spot): " + counts }
	one := says("1 to evict, 0 wait for a budget, 0 terminating")
	daemon := func(w *world) *cluster.Pod {
		w.p.EvictDaemonsOccupied = true
		return w.daemon("a")
	}
	annotate := func(w *world) {
		w.node("a").Unschedulable = true
		w.node("a").Annotations[cluster.AnnotationCordoned] = "2026-01-05T07:59:00Z D23"
	}
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"a pod", func(*world) {}, cordon + evict + one},
		{"until a time", func(w *world) { w.instance("a").Interruption.By = w.s.Now.Add(2 * time.Minute) },
			"cordon a [D23] the cloud ends its machine by 2026-01-05T08:02:00Z (spot); " + evict + "D23 the cloud ends its machine by 2026-01-05T08:02:00Z (spot): 1 to evict, 0 wait for a budget, 0 terminating"},
		{"the group is paused", func(w *world) { w.s.Groups[0].Pause = &cluster.Pause{} }, `U21 the cloud ends its machine (spot), and nobody moves its pods: paused; D16 its instance i-a is "deleting" or no member of its group`},
		{"its machine still runs", func(w *world) { w.instance("a").Phase = cluster.PhaseRunning; w.keep("a") }, "D5 annotated autoscaler-agent/keep"},
		{"of a paused group, and not interrupted", func(w *world) {
			w.instance("a").Interruption = nil
			w.s.Groups[0].Pause = &cluster.Pause{}
		}, `D16 its instance i-a is "deleting" or no member of its group`},
		{"with a node of no group", func(w *world) { w.s.Nodes = append(w.s.Nodes, &cluster.Node{Name: "x", Ready: cluster.StatusTrue}) }, cordon + evict + one},
		{"marked", func(w *world) { w.mark("a", decision.RuleInterrupted, time.Minute) }, evict + one},
		{"cordoned by us", annotate, cordon + evict + one},
		{"cordoned by somebody", func(w *world) { w.node("a").Unschedulable = true }, evict + one},
		{"a DaemonSet's pod", func(w *world) { daemon(w) }, cordon + evict + "evict default/a-1 from a; " + one},
		{"a DaemonSet's pod, marked", func(w *world) {
			w.mark("a", decision.RuleInterrupted, time.Minute)
			daemon(w)
		}, evict + "evict default/a-1 from a; " + one},
		{"a DaemonSet's pod, cordoned by somebody", func(w *world) { daemon(w); w.node("a").Unschedulable = true }, evict + one},
		{"a DaemonSet's pod, not by default", func(w *world) { daemon(w); w.p.EvictDaemonsOccupied = false }, cordon + evict + one},
		{"terminating", func(w *world) { w.node("a").Pods[0].Deleting = cluster.At(w.s.Now) }, cordon + says("0 to evict, 0 wait for a budget, 1 terminating")},
		{"a DaemonSet's pod is terminating", func(w *world) { daemon(w).Deleting = cluster.At(w.s.Now) }, cordon + evict + one},
		{"a closed budget", func(w *world) { w.guard("a", 0, 0) },
			cordon + says("0 to evict, 1 wait for a budget, 0 terminating; pod default/a-0 PodDisruptionBudget default/web allows no disruption")},
		{"a budget for one of two", func(w *world) { w.pods("a", 0, 1); w.guard("a", 1, 0, 1) },
			cordon + evict + says("1 to evict, 1 wait for a budget, 0 terminating; pod default/a-1 PodDisruptionBudget default/web allows no disruption")},
		{"two budgets", func(w *world) { w.node("a").Pods[0].Budgets = []string{"x", "y"} },
			cordon + says("0 to evict, 1 wait for a budget, 0 terminating; pod default/a-0 has more than one PodDisruptionBudget")},
		{"two budgets, not started", func(w *world) {
			w.node("a").Pods[0].Budgets, w.node("a").Pods[0].Unstarted = []string{"x", "y"}, true
		}, cordon + evict + one},
		{"a pod that runs to its end", func(w *world) { w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion }, cordon + evict + one},
	} {
		w := interrupted()
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
	}
}

// TestTimeLeft: a pod gets no more grace than its machine has.
func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		by   time.Duration // 0: not known
		want time.Duration
	}{{0, 10 * time.Minute}, {45*time.Second + time.Millisecond, 45 * time.Second}, {time.Millisecond, time.Second}, {-time.Minute, time.Second}} {
		w := interrupted()
		w.node("a").Pods[0].GracePeriod = 3600
		if c.by != 0 {
			w.instance("a").Interruption.By = w.s.Now.Add(c.by)
		}
		w.begin().DrainInterrupted()
		if got := w.Plan.Actions[1].(decision.Evict).Grace; got != c.want {
			t.Errorf("ends after %s: %s, want %s", c.by, got, c.want)
		}
	}
}

// TestMarkTime: when a node was marked, as its taint says it.
func TestMarkTime(t *testing.T) {
	now := newWorld().s.Now
	for value, want := range map[string]time.Time{"1767599999": now.Add(-time.Second), "1767600001": now, "1767599940": now.Add(-time.Minute), "1767599939": now, "0": now, "": now, "yesterday": now} {
		n := &cluster.Node{Created: now.Add(-time.Minute), Taints: []cluster.Taint{{Key: cluster.TaintToBeDeleted, Value: value}}}
		if got := markTime(n, now); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

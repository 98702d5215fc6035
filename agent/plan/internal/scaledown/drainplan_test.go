package scaledown

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestBlockers: why a pod must not be evicted.
func TestBlockers(t *testing.T) {
	const closed = "PodDisruptionBudget default/web allows no disruption"
	system := func(p *cluster.Pod) { p.Key = "kube-system/dns" }
	for _, c := range []struct {
		name   string
		change func(w *world, p *cluster.Pod)
		want   string
	}{
		{"any pod", func(*world, *cluster.Pod) {}, ""},
		{"not safe to evict", func(_ *world, p *cluster.Pod) { p.SafeToEvict = "false" }, "safe-to-evict=false: annotated safe-to-evict=false"},
		{"not understood", func(_ *world, p *cluster.Pod) { p.SafeToEvict = "maybe" },
			`safe-to-evict is not understood: annotated cluster-autoscaler.kubernetes.io/safe-to-evict="maybe", which is none of true, false and on-completion: the pod stays`},
		{"not to be disrupted", func(_ *world, p *cluster.Pod) { p.DoNotDisrupt = true }, "do-not-disrupt: annotated karpenter.sh/do-not-disrupt"},
		{"not to be disrupted for a time", func(_ *world, p *cluster.Pod) { p.Wishes = &cluster.PodWishes{KeepFor: time.Hour + time.Second} },
			"do-not-disrupt for a time: annotated karpenter.sh/do-not-disrupt until 2026-01-05T08:00:01Z"},
		{"not to be disrupted for a time that is over", func(_ *world, p *cluster.Pod) { p.Wishes = &cluster.PodWishes{KeepFor: time.Hour} }, ""},
		{"no controller", func(_ *world, p *cluster.Pod) { p.Owner = nil }, "no controller: has no controller to make it again"},
		{"no controller, and safe to evict", func(_ *world, p *cluster.Pod) { p.Owner, p.SafeToEvict = nil, "true" }, ""},
		{"local storage", func(_ *world, p *cluster.Pod) { p.LocalStorage = "cache" }, "local storage: keeps data on the node in volume cache"},
		{"local storage, and safe to evict", func(_ *world, p *cluster.Pod) { p.LocalStorage, p.SafeToEvict = "cache", "true" }, ""},
		{"local storage that does not count", func(w *world, p *cluster.Pod) { p.LocalStorage = "cache"; w.p.SkipNodesWithLocalStorage = false }, ""},
		{"kube-system", func(_ *world, p *cluster.Pod) { system(p) }, "kube-system: is in kube-system and has no PodDisruptionBudget"},
		{"kube-system, and safe to evict", func(_ *world, p *cluster.Pod) { system(p); p.SafeToEvict = "true" }, ""},
		{"kube-system, with a budget", func(w *world, p *cluster.Pod) { system(p); w.guard("a", 1, 0) }, ""},
		{"kube-system, which does not count", func(w *world, p *cluster.Pod) { system(p); w.p.SkipNodesWithSystemPods = false }, ""},
		{"two budgets", func(_ *world, p *cluster.Pod) { p.Budgets = []string{"default/b", "default/a"} }, "budget: has more than one PodDisruptionBudget: default/a, default/b"},
		{"two budgets, not started", func(_ *world, p *cluster.Pod) { p.Budgets, p.Unstarted = []string{"default/b", "default/a"}, true }, ""},
		{"a budget that is open", func(w *world, _ *cluster.Pod) { w.guard("a", 1, 0) }, ""},
		{"a budget that is closed", func(w *world, _ *cluster.Pod) { w.guard("a", 0, 0) }, "budget: " + closed},
		{"a budget that is not known", func(_ *world, p *cluster.Pod) { p.Budgets = []string{"default/web"} }, "budget: " + closed},
		{"a budget that is closed, not started", func(w *world, p *cluster.Pod) { w.guard("a", 0, 0); p.Unstarted = true }, ""},
		{"a budget that is closed, not Ready", func(w *world, p *cluster.Pod) { w.guard("a", 0, 0); p.Unready = true }, "budget: " + closed},
		{"a budget that is closed but for pods that are not Ready", func(w *world, _ *cluster.Pod) { w.guard("a", 0, 0); w.s.Budgets[0].Unready = true }, "budget: " + closed},
		{"a budget that is closed but for pods that are not Ready, not Ready", func(w *world, p *cluster.Pod) { w.guard("a", 0, 0); w.s.Budgets[0].Unready, p.Unready = true, true }, ""},
		{"another budget lets pods go that are not Ready, not Ready", func(w *world, p *cluster.Pod) {
			w.guard("a", 0, 0)
			w.s.Budgets = append(w.s.Budgets, cluster.Budget{Key: "default/other", Unready: true})
			p.Unready = true
		}, "budget: " + closed},
		{"not judged", func(w *world, p *cluster.Pod) {
			p.Class = w.class(cluster.PodClass{Requests: size(1), NotUnderstood: []string{"resource claims", "x"}})
		}, "not judged: uses what this version does not judge: resource claims, x"},
		{"too large", func(w *world, p *cluster.Pod) {
			p.Class = w.class(cluster.PodClass{Requests: size(1), TooLarge: true, NotUnderstood: []string{"20 KiB"}})
		}, "not judged: has constraints that are not judged, for their size: 20 KiB"},
		{"several", func(w *world, p *cluster.Pod) { p.Owner, p.DoNotDisrupt = nil, true; w.guard("a", 0, 0) },
			"do-not-disrupt: annotated karpenter.sh/do-not-disrupt; no controller: has no controller to make it again; budget: " + closed},
	} {
		w := idleNode()
		c.change(w, &w.node("a").Pods[0])
		w.begin()
		pod := &w.at("a").Pods[0]
		var all, blocked []string
		for _, b := range w.BlockersOf(pod) {
			all, blocked = append(all, b.Name+": "+b.Why), append(blocked, "pod "+string(pod.Key)+" "+b.Why)
		}
		if got := strings.Join(all, "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		slices.Sort(blocked)
		if got := w.DrainPlanOf(w.at("a")).Blocked; !slices.Equal(got, blocked) {
			t.Errorf("%s: the drain is blocked by %q, want %q", c.name, got, blocked)
		}
	}
}

// mixed is a cluster whose node a has a pod of each kind; each would be blocked but for its kind.
func mixed() *world {
	w := idleNode()
	low := w.class(cluster.PodClass{Requests: size(0.1), Priority: -11})
	w.node("a").Pods = nil
	p := w.pods("a", 0, 8)
	p[1].Owner = daemonSet
	p[2].SafeToEvict = cluster.SafeOnCompletion
	p[3].Deleting, p[3].GracePeriod = cluster.At(w.s.Now.Add(-time.Second)), 40
	p[4].Deleting, p[4].SafeToEvict = cluster.At(w.s.Now.Add(-2*time.Second)), cluster.SafeOnCompletion
	p[5].Class = low
	p[6].Class = low
	p[7].Mirror = true
	for _, i := range []int{1, 2, 3, 4, 5, 7} {
		p[i].DoNotDisrupt = true
	}
	w.guard("a", 0, 0, 6)
	w.s.Budgets[0].Allowed = 1
	return w
}

// TestDrainPlan: what a drain has to do, by kind of pods.
func TestDrainPlan(t *testing.T) {
	w := mixed().begin()
	for range 2 { // the second time it is known
		c := w.DrainPlanOf(w.at("a"))
		if c.Movable != 3 || c.Terminating != 2 || len(c.Completing) != 1 || len(c.Budgeted) != 2 || len(c.Blocked) != 0 || c.Grace != 40*time.Second {
			t.Errorf("%+v", c)
		}
		if got := fmt.Sprint(c.Classes); got != "[{0 1}]" {
			t.Errorf("pods that need room: %s", got)
		}
	}
	if got, want := w.Plan.Wake, w.Now.Add(29*time.Second); !got.Equal(want) {
		t.Errorf("wakes at %s, want %s", round.Stamp(got), round.Stamp(want))
	}
	w.spend(&w.at("a").Pods[0])
	if c := w.DrainPlanOf(w.at("a")); len(c.Blocked) != 1 || c.Blocked[0] != "pod default/a-0 PodDisruptionBudget default/web allows no disruption" {
		t.Errorf("blocked by %q", c.Blocked)
	}
	var running, blocked []string
	for _, pod := range w.Running(w.at("a")) {
		running = append(running, string(pod.Key))
	}
	if got := strings.Join(running, " "); got != "default/a-0 default/a-2 default/a-5 default/a-6" {
		t.Errorf("%s run", got)
	}
	if got := len(w.Movable(w.at("a"))); got != 3 {
		t.Errorf("%d pods are movable", got)
	}
	for i := range w.at("a").Pods {
		for _, b := range w.BlockersOf(&w.at("a").Pods[i]) {
			blocked = append(blocked, fmt.Sprintf("%d %s", i, b.Name))
		}
	}
	if got := strings.Join(blocked, ", "); got != "0 budget, 2 on-completion" {
		t.Errorf("blocked: %s", got)
	}
}

// TestCompletionWords: the first pod by name, and how many more.
func TestCompletionWords(t *testing.T) {
	pods := []*cluster.Pod{{Key: "default/a"}, {Key: "default/b"}}
	for n, want := range map[int]string{1: "pod default/a runs to its end (safe-to-evict=on-completion)", 2: "pod default/a runs to its end (safe-to-evict=on-completion), and 1 more"} {
		if got := completionWords(pods[:n]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSpend: an eviction takes one from each budget of the pod, where the Eviction API asks them.
func TestSpend(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  cluster.Pod
		want map[string]int
	}{
		{"one budget", cluster.Pod{Budgets: []string{"x"}}, map[string]int{"x": 1, "y": 0}},
		{"a budget that is used up", cluster.Pod{Budgets: []string{"y"}}, map[string]int{"x": 2, "y": 0}},
		{"not started", cluster.Pod{Budgets: []string{"x"}, Unstarted: true}, map[string]int{"x": 2, "y": 0}},
		{"not Ready", cluster.Pod{Budgets: []string{"x"}, Unready: true}, map[string]int{"x": 2, "y": 0}},
		{"not Ready, two budgets", cluster.Pod{Budgets: []string{"x", "y"}, Unready: true}, map[string]int{"x": 1, "y": 0}},
	} {
		w := idleNode()
		w.s.Budgets = []cluster.Budget{{Key: "x", Allowed: 2, Unready: true}, {Key: "y"}}
		w.begin().spend(&c.pod)
		if got := fmt.Sprint(w.Budget); got != fmt.Sprint(c.want) {
			t.Errorf("%s: %s, want %v", c.name, got, c.want)
		}
	}
}

// TestDeletionsFrozen: what keeps the agent from deleting anything of a group.
func TestDeletionsFrozen(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"nothing", func(*world) {}, " "},
		{"facts that are as old as they may be", func(w *world) { w.s.Groups[0].ReadAt = w.s.Now.Add(-time.Minute) }, " "},
		{"old facts of the cluster", func(w *world) { w.s.Stale = "no answer" }, "H1 the cluster's facts may be old: no answer"},
		{"an unhealthy cluster", func(w *world) { w.p.OKTotalUnready = 1; w.unready("b", time.Hour); w.unready("c", time.Hour) }, "H2 deletions are frozen: 2 of 3 nodes are not Ready"},
		{"old facts of the group", func(w *world) { w.s.Groups[0].ReadAt = w.s.Now.Add(-time.Minute - 1) }, "U13 the group's facts are old"},
		{"an operator", func(w *world) { w.s.Groups[0].Pause = &cluster.Pause{} }, "U21 paused"},
		{"the cloud", func(w *world) { w.s.Groups[0].Keeps = "a rollout" }, "D22 a rollout"},
		{"growth", func(w *world) { w.begin().Groups[0].Bought = true }, "U16 the group grows in this round"},
	} {
		w := idleNode()
		c.change(w)
		if w.Planner == nil {
			w.begin()
		}
		if rule, why := w.DeletionsFrozen(&w.Groups[0]); rule+" "+why != c.want {
			t.Errorf("%s: %q, want %q", c.name, rule+" "+why, c.want)
		}
	}
}

// drained is a cluster whose node a has carried the agent's mark for a minute.
func drained() *world {
	w := idleNode()
	w.mark("a", decision.RuleUnneeded, time.Minute)
	return w
}

// TestDrain: the next step with a node that carries a mark.
func TestDrain(t *testing.T) {
	const evicts = "evict default/a-0 from a; D14 draining: 1 to evict, 0 wait for a budget, 0 terminating"
	const ends = "terminate pool i-a node=a [D17] drained: no pod that could be moved is left"
	empty := func(w *world) { w.node("a").Pods = nil }
	byRule := func(w *world, rule string) {
		n := w.node("a")
		n.Annotations[cluster.AnnotationCordoned] = "2026-01-05T07:59:00Z " + rule
	}
	replaced := func(w *world) { byRule(w, decision.RuleReplaceNode); w.replace("a") }
	marked := func(w *world, since time.Duration) { // so long ago
		w.node("a").Taints = nil
		w.mark("a", decision.RuleUnneeded, since)
	}
	overdue := func(w *world) { // by a second: 5s until it starts, 30s of grace, 15m for the drain
		marked(w, 15*time.Minute+36*time.Second)
		replaced(w)
	}
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
		going  string // the nodes that count as ones that go
	}{
		{"with a pod", func(*world) {}, evicts, "a"},
		{"old facts", func(w *world) { w.s.Stale = "no answer" }, "H1 marked, and waits: the cluster's facts may be old: no answer", "a"},
		{"a pause", func(w *world) { w.s.Groups[0].Pause = &cluster.Pause{} }, "U21 marked, and waits: paused", "a"},
		{"a pause, and it is kept", func(w *world) { w.s.Groups[0].Pause = &cluster.Pause{}; w.keep("a") }, "U21 marked, and waits: paused", "a"},
		{"the cloud keeps machines", func(w *world) { w.s.Groups[0].Keeps = "a rollout" }, "D22 marked, and waits: a rollout", "a"},
		{"the cloud keeps machines, and it is kept", func(w *world) { w.s.Groups[0].Keeps = "a rollout"; w.keep("a") },
			"uncordon a [D12] annotated autoscaler-agent/keep; D12 stays: annotated autoscaler-agent/keep", ""},
		{"marked just now", func(w *world) { marked(w, 4*time.Second) }, "D14 marked; waits until 2026-01-05T08:00:01Z for pods that were on their way", "a"},
		{"marked long enough ago", func(w *world) { marked(w, 5*time.Second) }, evicts, "a"},
		{"empty", empty, ends, "a"},
		{"terminating pods", func(w *world) { w.node("a").Pods[0].Deleting = cluster.At(w.s.Now) }, "D14 draining: 0 to evict, 0 wait for a budget, 1 terminating", "a"},
		{"a closed budget", func(w *world) { w.guard("a", 0, 0) }, "D14 draining: 0 to evict, 1 wait for a budget, 0 terminating", "a"},
		{"a budget for one of two", func(w *world) { w.pods("a", 0, 1); w.guard("a", 1, 0, 1) }, "evict default/a-0 from a; D14 draining: 1 to evict, 1 wait for a budget, 0 terminating", "a"},
		{"pods of a higher priority", func(w *world) {
			w.p.DrainPriority = decision.DrainOrder{{Priority: 0, Grace: time.Minute}, {Priority: 10, Grace: time.Minute}}
			w.pods("a", w.class(cluster.PodClass{Requests: size(1), Priority: 10}), 1)
		}, "evict default/a-0 from a; D14 draining: 1 to evict, 0 wait for a budget, 0 terminating, 1 of a higher priority come after them", "a"},
		{"pods that run to their end", func(w *world) { w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion; w.request("a") },
			"D24 marked, and waits: pod default/a-0 runs to its end (safe-to-evict=on-completion)", "a"},
		{"pods that run to their end, and another", func(w *world) {
			w.pods("a", 0, 1)[0].SafeToEvict = cluster.SafeOnCompletion
			w.request("a")
		}, "evict default/a-1 from a; D14 draining: 1 to evict, 0 wait for a budget, 0 terminating; pod default/a-0 runs to its end (safe-to-evict=on-completion)", "a"},
		{"by force", func(w *world) { overdue(w); w.p.ReplaceDrainOverdue = "force" },
			"terminate pool i-a node=a [D35] 1 pod did not leave by 2026-01-05T07:59:59Z, and end with the machine (AUTOSCALER_SCALING_REPLACE_DRAIN_OVERDUE=force)", "a"},
		{"by force, in time", func(w *world) { marked(w, time.Minute); replaced(w); w.p.ReplaceDrainOverdue = "force" }, evicts, "a"},
		{"overdue, not by force", overdue, "uncordon a [D12] 1 pod did not leave by 2026-01-05T07:59:59Z; D12 stays: 1 pod did not leave by 2026-01-05T07:59:59Z", ""},
		{"delayed", func(w *world) {
			empty(w)
			w.node("a").Annotations[cluster.AnnotationDelay+"csi"] = ""
		}, "D14 drained; waits until 2026-01-05T08:02:00Z for whoever put the annotation delay-deletion.cluster-autoscaler.kubernetes.io/csi", "a"},
		{"a busy cloud", func(w *world) { empty(w); w.s.Groups[0].Busy = "an update" }, "U27 drained, and its machine waits: an update", "a"},
		{"drifted, and the first machine is not proven", func(w *world) { empty(w); byRule(w, decision.RuleDrifted); w.drift("a") },
			"D30 drained, and its machine waits: the pods on node c, the first machine of the source, have to be Ready until 2026-01-05T08:01:00Z", "a"},
		{"not needed, and the first machine is not proven", func(w *world) { empty(w); w.drift("a") },
			"D30 drained, and its machine waits: the pods on node c, the first machine of the source, have to be Ready until 2026-01-05T08:01:00Z", "a"},
		{"asked for, and the first machine is not proven", func(w *world) {
			empty(w)
			w.drift("a")
			byRule(w, decision.RuleRequested)
			w.node("a").Annotations[cluster.AnnotationRequested] = "true"
		}, ends, "a"},
		{"its machine ends", func(w *world) { w.instance("a").Phase = cluster.PhaseDeleting }, "D14 marked, and its instance is on its way out or not known", "a"},
		{"of no group", func(w *world) { w.node("a").ProviderID = "elsewhere" }, "D14 marked, and its instance is on its way out or not known", "a"},
		{"interrupted", func(w *world) {
			w.instance("a").Phase, w.instance("a").Interruption = cluster.PhaseDeleting, &cluster.Interruption{Why: "spot"}
		}, "evict default/a-0 from a; D23 the cloud ends its machine (spot): 1 to evict, 0 wait for a budget, 0 terminating", "a"},
		{"half a mark", func(w *world) { w.node("a").Taints = nil }, "uncordon a [D15] it carries our cordon without its mark; cordon a [D1] utilisation 25%, 1 pod to move", ""},
		{"half a mark, and old facts", func(w *world) { w.node("a").Taints = nil; w.s.Stale = "no answer" }, "", ""},
	} {
		w := drained()
		c.change(w)
		w.begin()
		w.DrainInterrupted()
		w.Resume()
		if going := w.removing(); going != c.going {
			t.Errorf("%s: %q go, want %q", c.name, going, c.going)
		}
		w.Decide()
		w.wantFate(t, c.name, "a", c.want)
	}
}

// drift lets the group start machines of another source than that of a node and of b; c is of it, and its pod has been there for a minute.
func (w *world) drift(node string) {
	w.p.Drift = true
	w.s.Groups[0].Template.Source = cluster.Spec{"image": "new"}
	for _, n := range []string{node, "b"} {
		w.instance(n).Source = cluster.Spec{"image": "old"}
	}
	w.instance("c").Source = cluster.Spec{"image": "new"}
	w.node("c").Pods = nil
	w.pods("c", 0, 1)[0].Created = cluster.At(w.s.Now.Add(-time.Minute))
}

// TestDrainingSince: since when a node has carried the mark is remembered.
func TestDrainingSince(t *testing.T) {
	w := drained().decide()
	if got := w.Next.Draining["a"]; !got.Equal(w.Now.Add(-time.Minute)) {
		t.Errorf("since %s", got)
	}
	w = drained()
	w.m.Draining = nil
	w.decide()
	if got := w.Next.Draining["a"]; !got.Equal(w.Now) {
		t.Errorf("seen for the first time: since %s", got)
	}
}

// TestMarkedBySomebody: a node that somebody else marked counts as one that its group loses, if it has one.
func TestMarkedBySomebody(t *testing.T) {
	w := newWorld()
	w.group("none")
	w.group("pool", "a", "b", "c")
	w.s.Nodes = append(w.s.Nodes, &cluster.Node{Name: "x", Ready: cluster.StatusTrue})
	for _, n := range []string{"b", "x"} {
		w.node(n).Taints = []cluster.Taint{{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}}
	}
	w.begin().Resume()
	if w.Groups[0].Removing != 0 || w.Groups[1].Removing != 1 {
		t.Errorf("%d of the first group and %d of the second go", w.Groups[0].Removing, w.Groups[1].Removing)
	}
	first := idleNode()
	first.node("b").Taints = []cluster.Taint{{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}}
	if first.begin().Resume(); first.Groups[0].Removing != 1 {
		t.Errorf("%d of the only group go", first.Groups[0].Removing)
	}
}

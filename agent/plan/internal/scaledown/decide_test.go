package scaledown

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// idleNode is a cluster in which node a is used to a quarter, and b and c to three quarters; a has been unneeded for ten minutes, which is long enough.
func idleNode() *world {
	w := newWorld()
	w.group("pool", "a", "b", "c")
	w.pods("a", 0, 1)
	w.pods("b", 0, 3)
	w.pods("c", 0, 3)
	w.idle(10*time.Minute, "a")
	return w
}

// request asks for a node to go.
func (w *world) request(node string) {
	w.node(node).Annotations[cluster.AnnotationRequested] = "true"
}

// keep opts a node out of scale-down.
func (w *world) keep(node string) { w.node(node).Annotations[cluster.AnnotationKeep] = "true" }

// replace asks for a node to be replaced.
func (w *world) replace(node string) {
	w.node(node).Annotations[cluster.AnnotationReplace] = "true"
}

const goes = "cordon a [D1] utilisation 25%, 1 pod to move"

// TestDecide: what becomes of node a.
func TestDecide(t *testing.T) {
	const late = 10*time.Minute - time.Second
	seconds := func(n int) *time.Duration { d := time.Duration(n) * time.Second; return &d }
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
		timers string
		wake   time.Duration
	}{
		{"not needed", func(*world) {}, goes, "a 10m0s", 5 * time.Second},
		{"scale-down is off", func(w *world) { w.p.ScaleDown = false }, "", "", 0},
		{"old facts", func(w *world) { w.s.Stale = "no answer"; w.idle(time.Hour, "gone") }, "", "a 10m0s, gone 1h0m0s", 0},
		{"not for long enough", func(w *world) { w.idle(late, "a") }, "D3 not needed: may go at 2026-01-05T08:00:01Z", "a 9m59s", time.Second},
		{"time of its group", func(w *world) { w.s.Groups[0].Options.ScaleDownUnneededTime = seconds(601) }, "D3 not needed: may go at 2026-01-05T08:00:01Z", "a 10m0s", time.Second},
		{"not needed for the first time", func(w *world) { w.m.Unneeded = nil }, "D3 not needed: may go at 2026-01-05T08:10:00Z", "a 0s", 10 * time.Minute},
		{"the round grows", func(w *world) { w.begin().Grew = true }, "H5 not needed, and stays: this round grows", "a 10m0s", 0},
		{"a pod is not judged", func(w *world) { w.begin().Unjudged = true }, "H5 not needed, and stays: a pod that cannot be judged here waits for the scheduler", "a 10m0s", 0},
		{"failed", func(w *world) { w.m.ScaleDownAfter = w.s.Now.Add(time.Minute) }, "H4 not needed, and stays: scale-down failed shortly ago; next try at 2026-01-05T08:01:00Z", "a 10m0s", time.Minute},
		{"a node has come", func(w *world) { w.node("b").Created = w.s.Now.Add(-late) }, "H3 not needed, and stays: the cluster grew shortly ago; next try at 2026-01-05T08:00:01Z", "a 10m0s", time.Second},
		{"a node of nobody has come", func(w *world) {
			w.s.Nodes = append(w.s.Nodes, &cluster.Node{Name: "x", Ready: cluster.StatusTrue, Created: w.s.Now})
		}, goes, "a 10m0s", 5 * time.Second},
		{"a node came long ago", func(w *world) { w.node("b").Created = w.s.Now.Add(-10 * time.Minute) }, goes, "a 10m0s", 5 * time.Second},
		{"a group grew", func(w *world) {
			w.m.Resized = map[cluster.GroupID]decision.Resized{"pool": {To: 3, At: w.s.Now.Add(-late)}}
		}, "H3 not needed, and stays: the cluster grew shortly ago; next try at 2026-01-05T08:00:01Z", "a 10m0s", time.Second},
		{"the cluster grew, and it is requested", func(w *world) { w.node("b").Created = w.s.Now; w.request("a") }, "cordon a [D20] utilisation 25%, 1 pod to move", "a 10m0s", 5 * time.Second},
		{"the cluster grew, and it is replaced", func(w *world) { w.node("b").Created = w.s.Now; w.replace("a") },
			"cordon a [D33] somebody asked for its replacement; utilisation 25%, 1 pod to move", "a 10m0s", 5 * time.Second},
		{"the round grows, and it is requested", func(w *world) { w.request("a"); w.begin().Grew = true }, "H5 not needed, and stays: this round grows", "a 10m0s", 0},
		{"requested, its time aside", func(w *world) { w.m.Unneeded = nil; w.request("a") }, "cordon a [D20] utilisation 25%, 1 pod to move", "a 0s", 5 * time.Second},
		{"the budget of idle nodes", func(w *world) { w.budget("0 of idle") }, "D29 not needed, and stays: 0 of 3 nodes of group pool are disrupted (on their way out, not Ready, or about to be replaced), and its budget is 0 of idle", "a 10m0s", 0},
		{"the group is paused", func(w *world) { w.s.Groups[0].Pause = &cluster.Pause{Why: "a freeze"} }, "U21 not needed, and stays: paused: a freeze", "a 10m0s", 0},
		{"empty nodes at once", func(w *world) { w.node("a").Pods = nil; w.p.MaxEmptyAtOnce = 0 }, "D13 not needed, and waits: 0 nodes go at once", "a 10m0s", 0},
		{"drains at once", func(w *world) { w.p.MaxDrainAtOnce = 0 }, "D13 not needed, and waits: 0 nodes go at once", "a 10m0s", 0},
		{"not Ready", func(w *world) { w.unready("a", 20*time.Minute) }, "cordon a [D2] utilisation 25%, 1 pod to move", "a 10m0s", 5 * time.Second},
		{"not Ready for some time", func(w *world) { w.unready("a", 19*time.Minute) }, "D3 not needed: may go at 2026-01-05T08:01:00Z", "a 10m0s", time.Minute},
		{"unready time of its group", func(w *world) {
			w.unready("a", 19*time.Minute)
			w.s.Groups[0].Options.ScaleDownUnreadyTime = seconds(1140)
		}, "cordon a [D2] utilisation 25%, 1 pod to move", "a 10m0s", 5 * time.Second},
	} {
		w := idleNode()
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
		w.wantTimers(t, c.name, c.timers)
		w.wantWake(t, c.name, c.wake)
		if went := strings.HasPrefix(c.want, "cordon"); w.Groups[0].Shrinks != went {
			t.Errorf("%s: the group shrinks: %v", c.name, !went)
		}
	}
}

// budget is the group's only budget of disruptions.
func (w *world) budget(text string) {
	list := cluster.DisruptionBudgets{}
	if list.Decode(text) != nil {
		panic("not a budget: " + text)
	}
	w.s.Groups[0].Options.Budgets = &list
}

// unready makes a node not Ready for so long.
func (w *world) unready(node string, since time.Duration) {
	n := w.node(node)
	n.Ready, n.ReadySince = cluster.StatusFalse, w.s.Now.Add(-since)
	round.Set(&w.m.Unready, n.Name, n.ReadySince)
}

// TestNotRemovable: what keeps a node whose pods are not even looked at.
func TestNotRemovable(t *testing.T) {
	cameFor := func(w *world) { // node b is to be replaced, and kept
		w.replace("b")
		w.node("a").Pods = nil
		w.keep("b")
		w.node("a").Created = w.s.Now.Add(-11 * time.Minute)
	}
	busy := func(w *world) { // and the empty node b is kept
		w.pods("a", w.class(cluster.PodClass{Requests: size(1.04)}), 1)
		w.node("b").Pods = nil
		w.keep("b")
	}
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
	}{
		{"stopped", func(w *world) { w.instance("a").Phase = cluster.PhaseStopped }, `D16 its instance i-a is "stopped" or no member of its group`},
		{"no member", func(w *world) { w.instance("a").Member = false }, `D16 its instance i-a is "running" or no member of its group`},
		{"told to go", func(w *world) { w.m.Deleted = map[cluster.InstanceID]time.Time{"i-a": w.s.Now} }, "D16 its instance was told to go"},
		{"kept", func(w *world) { w.node("a").Annotations[cluster.AnnotationKeep] = "true" }, "D5 annotated autoscaler-agent/keep"},
		{"kept for some time", func(w *world) {
			w.node("a").Annotations[cluster.AnnotationDoNotDisrupt] = "24h1m"
		}, "D5 annotated karpenter.sh/do-not-disrupt until 2026-01-05T08:01:00Z"},
		{"kept for a time that is over", func(w *world) { w.node("a").Annotations[cluster.AnnotationDoNotDisrupt] = "24h" }, goes},
		{"not Ready", func(w *world) { w.unready("a", time.Hour); w.p.ScaleDownUnready = false }, "D2 it is not Ready, and such nodes are kept (AUTOSCALER_SCALING_SCALE_DOWN_UNREADY)"},
		{"not Ready, requested", func(w *world) { w.unready("a", time.Hour); w.p.ScaleDownUnready = false; w.request("a") }, "cordon a [D20] utilisation 25%, 1 pod to move"},
		{"not Ready, replaced", func(w *world) { w.unready("a", time.Hour); w.p.ScaleDownUnready = false; w.replace("a") }, "cordon a [D33] somebody asked for its replacement; utilisation 25%, 1 pod to move"},
		{"Ready", func(w *world) { w.p.ScaleDownUnready = false }, goes},
		{"cordoned by somebody", func(w *world) { w.node("a").Unschedulable = true }, "D10 cordoned by somebody else"},
		{"a pod is to come", func(w *world) {
			w.waits(0, 1)
			w.s.Pods[0].Nominated, w.s.Pods[0].Unschedulable = "a", 0
		}, "D9 pods that are to come count on it"},
		{"came in place of another", cameFor, "D9 it has just come, and node b of its group is to be replaced"},
		{"came in place of another, requested", func(w *world) {
			cameFor(w)
			w.request("a")
		}, "cordon a [D20] utilisation 0%, 0 pods to move"},
		{"came in place of another, replaced", func(w *world) {
			cameFor(w)
			w.replace("a")
			w.budget("5")
		}, "cordon a [D33] somebody asked for its replacement; utilisation 0%, 0 pods to move"},
		{"as busy as a node may be", func(w *world) { w.pods("a", 0, 1) }, "cordon a [D1] utilisation 50%, 2 pods to move"},
		{"busy", busy, "D4 utilisation 51% is above 50%"},
		{"busy, not Ready", func(w *world) { busy(w); w.unready("a", time.Hour) }, "cordon a [D2] utilisation 51%, 2 pods to move"},
		{"busy, requested", func(w *world) { busy(w); w.request("a") }, "cordon a [D20] utilisation 51%, 2 pods to move"},
		{"busy, replaced", func(w *world) { busy(w); w.replace("a") }, "cordon a [D33] somebody asked for its replacement; utilisation 51%, 2 pods to move"},
		{"with a DaemonSet's pod", func(w *world) { w.daemon("a") }, "cordon a [D1] utilisation 50%, 1 pod to move"},
		{"a control plane", func(w *world) { w.node("a").ControlPlane = true }, ""},
		{"of no group", func(w *world) { w.node("a").ProviderID = "elsewhere" }, ""},
		{"being deleted", func(w *world) { w.node("a").Deleting = true }, ""},
		{"marked by somebody", func(w *world) {
			w.node("a").Taints = []cluster.Taint{{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"}}
		}, "D10 marked for deletion by somebody else; remove the taint ToBeDeletedByClusterAutoscaler to get it back"},
	} {
		w := idleNode()
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
	}
}

// TestUnneeded: a node whose pods have room elsewhere is no longer a place, and its time runs; another's does where it is only put off.
func TestUnneeded(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
		timers string
	}{
		{"no room", func(w *world) { w.pods("b", 0, 1); w.pods("c", 0, 1) }, "D7 pod default/a-0 has room nowhere else", ""},
		{"at its minimum", func(w *world) { w.s.Groups[0].Min = 3 }, "D8 the group is at its minimum of 3", ""},
		{"above its minimum", func(w *world) { w.s.Groups[0].Min = 2 }, goes, "a 10m0s"},
		{"at its minimum, with another that goes", func(w *world) {
			w.s.Groups[0].Min = 2
			w.mark("c", decision.RuleUnneeded, time.Minute).Pods = nil
		}, "D8 the group is at its minimum of 2", ""},
		{"least cores", func(w *world) { w.p.MinCoresTotal = 9 }, "D18 without it the cluster would have less than its least of 9 cores", ""},
		{"blocked", func(w *world) { w.node("a").Pods[0].Owner = nil }, "D6 pod default/a-0 has no controller to make it again", ""},
		{"blocked by a budget", func(w *world) { w.guard("a", 0, 0) }, "D6 pod default/a-0 PodDisruptionBudget default/web allows no disruption", "a 10m0s"},
		{"blocked by a budget from the start", func(w *world) { w.guard("a", 0, 0); w.m.Unneeded = nil }, "D6 pod default/a-0 PodDisruptionBudget default/web allows no disruption", ""},
		{"blocked by a budget and without room", func(w *world) { w.guard("a", 0, 0); w.pods("b", 0, 1); w.pods("c", 0, 1) }, "D6 pod default/a-0 PodDisruptionBudget default/web allows no disruption", ""},
		{"blocked by a budget and otherwise", func(w *world) { w.guard("a", 0, 0); w.node("a").Pods[0].Owner = nil },
			"D6 pod default/a-0 PodDisruptionBudget default/web allows no disruption; pod default/a-0 has no controller to make it again", ""},
		{"replaced, blocked by a budget", func(w *world) { w.guard("a", 0, 0); w.replace("a") }, "D6 pod default/a-0 PodDisruptionBudget default/web allows no disruption", "a 10m0s"},
		{"replaced by force, blocked by a budget", func(w *world) { w.guard("a", 0, 0); w.replace("a"); w.p.ReplaceDrainOverdue = "force" }, "cordon a [D33] somebody asked for its replacement; utilisation 25%, 1 pod to move", "a 10m0s"},
		{"not replaced, with force, blocked by a budget", func(w *world) { w.guard("a", 0, 0); w.p.ReplaceDrainOverdue = "force" }, "D6 pod default/a-0 PodDisruptionBudget default/web allows no disruption", "a 10m0s"},
		{"replaced by force, blocked", func(w *world) { w.node("a").Pods[0].Owner = nil; w.replace("a"); w.p.ReplaceDrainOverdue = "force" }, "D6 pod default/a-0 has no controller to make it again", ""},
		{"a pod runs to its end", func(w *world) { w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion }, "D24 not needed, and waits: pod default/a-0 runs to its end (safe-to-evict=on-completion)", "a 10m0s"},
		{"a pod runs to its end, requested", func(w *world) { w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion; w.request("a") }, "cordon a [D20] utilisation 25%, 0 pods to move", "a 10m0s"},
		{"a pod runs to its end, and another has no room", func(w *world) {
			w.pods("a", 0, 1)
			w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion
			w.pods("b", 0, 1)
			w.pods("c", 0, 1)
		}, "D7 pod default/a-1 has room nowhere else", ""},
		{"replaced, no room", func(w *world) { w.pods("b", 0, 1); w.pods("c", 0, 1); w.replace("a") },
			"D28 somebody asked for its replacement; pod default/a-0 has room nowhere else: a machine is ordered in its place", ""},
		{"replaced at its minimum", func(w *world) { w.s.Groups[0].Min = 3; w.replace("a") },
			"D28 somebody asked for its replacement; the group is at its minimum of 3: a machine is ordered in its place", ""},
		{"replaced at the least cores", func(w *world) { w.p.MinCoresTotal = 9; w.replace("a") },
			"D28 somebody asked for its replacement; without it the cluster would have less than its least of 9 cores: a machine is ordered in its place", ""},
		{"replaced at its minimum, a pod runs to its end", func(w *world) {
			w.s.Groups[0].Min = 3
			w.replace("a")
			w.node("a").Pods[0].SafeToEvict = cluster.SafeOnCompletion
		}, "D8 the group is at its minimum of 3", ""},
		{"the last look", func(w *world) { w.pods("b", 0, 1); w.pods("c", 0, 1); w.begin().looks = 5 }, "D7 pod default/a-0 has room nowhere else", ""},
		{"not looked at", func(w *world) { w.pods("b", 0, 1); w.begin().looks = 0 }, "D7 not looked at: this round has looked for room for enough pods, and the next one begins with this node", "a 10m0s"},
		{"not looked at for the first time", func(w *world) { w.m.Unneeded = nil; w.pods("b", 0, 1); w.begin().looks = 0 }, "D7 not looked at: this round has looked for room for enough pods, and the next one begins with this node", ""},
	} {
		w := idleNode()
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
		w.wantTimers(t, c.name, c.timers)
	}
}

// guard puts the budget default/web with so many disruptions over pods of a node.
func (w *world) guard(node string, allowed int, pods ...int) {
	for _, i := range pods {
		w.node(node).Pods[i].Budgets = append(w.node(node).Pods[i].Budgets, "default/web")
	}
	if len(w.s.Budgets) == 0 {
		w.s.Budgets = []cluster.Budget{{Key: "default/web", Allowed: allowed}}
	}
}

// TestInUse: the time of a node runs on that only moved pods count on. Node c is drained or not needed; its pod goes to a.
func TestInUse(t *testing.T) {
	const coming, moved = "D9 pods that are to come count on it", "D9 pods of another node that goes count on it"
	drained := func(w *world) { w.mark("c", decision.RuleUnneeded, time.Minute) }
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
		timers string
	}{
		{"of a drained node", drained, moved, "a 10m0s"},
		{"of a drained node, and its time does not run", func(w *world) { drained(w); w.m.Unneeded = nil }, moved, ""},
		{"of a drained node, and it is kept", func(w *world) { drained(w); w.keep("a") }, "D5 annotated autoscaler-agent/keep", ""},
		{"a pod is to come", func(w *world) {
			w.node("c").Pods = nil
			w.keep("c")
			w.waits(0, 1)
			w.s.Pods[0].Nominated, w.s.Pods[0].Unschedulable = "a", 0
		}, coming, ""},
		{"of a node that is not needed", func(w *world) { w.idle(11*time.Minute, "c") }, moved, "a 10m0s, c 11m0s"},
		{"of a node that is not needed, and its time does not run", func(w *world) { w.m.Unneeded = nil; w.idle(11*time.Minute, "c") }, moved, "c 11m0s"},
	} {
		w := newWorld()
		w.group("pool", "a", "b", "c")
		w.pods("a", 0, 1)
		w.pods("b", 0, 4)
		w.pods("c", 0, 1)
		w.idle(10*time.Minute, "a")
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "a", c.want)
		w.wantTimers(t, c.name, c.timers)
	}
}

// TestOneAfterTheOther: whether node y may go, after node x was looked at in the same round. Nodes c and d have room for one pod each.
func TestOneAfterTheOther(t *testing.T) {
	const blocked = "D6 pod default/y-0 PodDisruptionBudget default/web allows no disruption"
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string
		timers string
	}{
		{"room for both", func(*world) {}, "cordon y [D1] utilisation 25%, 1 pod to move", "x 10m0s, y 10m0s"},
		{"one drain at once", func(w *world) { w.p.MaxDrainAtOnce = 1 }, "D13 not needed, and waits: 1 nodes go at once", "x 10m0s, y 10m0s"},
		{"one place for both", func(w *world) { w.pods("d", 0, 1) }, "D7 pod default/y-0 has room nowhere else", "x 10m0s"},
		{"a budget for both", func(w *world) { w.guard("x", 2, 0); w.guard("y", 2, 0) }, "cordon y [D1] utilisation 25%, 1 pod to move", "x 10m0s, y 10m0s"},
		{"a budget for one", func(w *world) { w.guard("x", 1, 0); w.guard("y", 1, 0); w.m.Unneeded = nil }, blocked, "x 0s, y 0s"},
		{"a budget for none", func(w *world) { w.guard("x", 0, 0); w.guard("y", 0, 0); w.m.Unneeded = nil }, blocked, ""},
		{"a budget for none, and one that is open", func(w *world) {
			w.pods("y", 0, 1)
			w.guard("y", 0, 0)
			w.node("y").Pods[1].Budgets = []string{"default/open"}
			w.s.Budgets = append(w.s.Budgets, cluster.Budget{Key: "default/open", Allowed: 1})
			w.node("d").Pods = w.node("d").Pods[:2]
			w.keep("d")
			w.m.Unneeded = nil
		}, blocked, "x 0s"},
		{"a budget for none, and no look is left", func(w *world) {
			w.guard("y", 0, 0)
			w.idle(11*time.Minute, "y")
			w.pods("c", 0, 1)
			w.pods("d", 0, 1)
			w.node("x").Pods = nil
			w.begin().looks = 0
		}, blocked, "x 10m0s, y 11m0s"},
		{"the last look", func(w *world) { w.m.Unneeded = nil; w.idle(11*time.Minute, "y"); w.begin().looks = 5 }, "cordon y [D1] utilisation 25%, 1 pod to move", "y 11m0s"},
		{"the last look, where other pods are apart", func(w *world) {
			w.alone(hostname)
			w.m.Unneeded = nil
			w.idle(11*time.Minute, "y")
			w.begin().looks = 5
		}, "cordon y [D1] utilisation 25%, 1 pod to move", "y 11m0s"},
		{"a pod runs to its end, and no look is left", func(w *world) {
			w.pods("y", 0, 1)
			w.node("y").Pods[0].SafeToEvict = cluster.SafeOnCompletion
			w.pods("c", 0, 1)
			w.pods("d", 0, 1)
			w.node("x").Pods = nil
			w.begin().looks = 0
		}, "D24 not needed, and waits: pod default/y-0 runs to its end (safe-to-evict=on-completion)", "x 10m0s, y 10m0s"},
		{"the budget of replacements", func(w *world) { w.replace("x"); w.replace("y"); w.budget("1 of requested") },
			"D29 somebody asked for its replacement; it waits: 1 of 4 nodes of group pool are disrupted (on their way out, not Ready, or about to be replaced), and its budget is 1 of requested", "x 10m0s"},
		{"its drain was given up", func(w *world) { w.replace("y"); w.m.GivenUp = map[cluster.NodeName]time.Time{"y": w.s.Now} },
			"cordon y [D1] utilisation 25%, 1 pod to move; D12 somebody asked for its replacement; its drain was given up at 2026-01-05T08:00:00Z, and is tried again at 2026-01-05T09:00:00Z", "x 10m0s, y 10m0s"},
		{"given up once, and not replaced any more", func(w *world) { w.m.GivenUp = map[cluster.NodeName]time.Time{"y": w.s.Now} }, "cordon y [D1] utilisation 25%, 1 pod to move", "x 10m0s, y 10m0s"},
		{"pods of two sizes", func(w *world) { // that of x may go to d, and then that of y has no place: it happens too seldom to wait
			w.node("d").Pods = w.node("d").Pods[:2]
			w.node("y").Pods[0].Class = w.class(cluster.PodClass{Requests: size(2)})
		}, "cordon y [D1] utilisation 50%, 1 pod to move", "x 10m0s, y 10m0s"},
		{"a cordon of ours without its mark", func(w *world) {
			w.node("y").Unschedulable = true
			w.node("y").Annotations[cluster.AnnotationCordoned] = "2026-01-05T07:00:00Z D1"
		}, "uncordon y [D15] it carries our cordon without its mark; cordon y [D1] utilisation 25%, 1 pod to move", "x 10m0s, y 10m0s"},
		{"its machine is interrupted", func(w *world) {
			w.instance("y").Phase, w.instance("y").Interruption = cluster.PhaseDeleting, &cluster.Interruption{Why: "spot"}
		}, "cordon y [D23] the cloud ends its machine (spot); evict default/y-0 from y; D23 the cloud ends its machine (spot): 1 to evict, 0 wait for a budget, 0 terminating", "x 10m0s"},
	} {
		w := newWorld()
		w.group("pool", "c", "d", "x", "y")
		w.pods("c", 0, 3)
		w.pods("d", 0, 3)
		w.pods("x", 0, 1)
		w.pods("y", 0, 1)
		w.idle(10*time.Minute, "x", "y")
		c.change(w)
		w.decide()
		w.wantFate(t, c.name, "y", c.want)
		w.wantTimers(t, c.name, c.timers)
	}
}

package disruption_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
)

// trial says what becomes of a rollout: why it is halted, what the node w-002 waits for, or its state.
func trial(d *disruption.Round) string {
	if why := d.Halted(d.ByID["workers"]); why != "" {
		return "halted: " + why
	}
	i := d.ByName["w-002"]
	if _, words := d.Hold(i, d.Reason(i)); words != "" {
		return words
	}
	d.Tell()
	return d.Plan.Rollouts[d.ByID["workers"]].State
}

// well puts a pod on a node that has been Ready for an hour.
func (w *world) well(n *cluster.Node) *cluster.Pod { return put(n, w.s.Now.Add(-time.Hour)) }

// crash puts a pod on a node that crashes; its siblings are on another node.
func (w *world) crash(n *cluster.Node) *cluster.Pod {
	w.well(w.s.Nodes[0])
	pod := w.well(n)
	pod.Unready, pod.Trouble = true, &cluster.PodTrouble{Waiting: "CrashLoopBackOff", Restarts: 4, RestartedAt: cluster.At(w.s.Now)}
	return pod
}

// restarts puts a pod on a node that runs, and was started again some times, the last time some time ago.
func (w *world) restarts(n *cluster.Node, times int32, ago time.Duration) *cluster.Pod {
	pod := w.well(n)
	pod.Trouble = &cluster.PodTrouble{Restarts: times, RestartedAt: cluster.At(w.s.Now.Add(-ago))}
	return pod
}

// fails puts a pod on a node that cannot be started, for a reason, some time after it was made.
func (w *world) fails(n *cluster.Node, reason string, after time.Duration) *cluster.Pod {
	w.well(w.s.Nodes[0])
	pod := put(n, w.s.Now.Add(-after))
	pod.Unready, pod.Trouble = true, &cluster.PodTrouble{Waiting: reason}
	return pod
}

// TestTrial looks at an hour-old machine "x" of the new source in a group with three old ones. A source is proven after two minutes.
func TestTrial(t *testing.T) {
	digest := cluster.Spec{"image": "new"}.Digest()
	const crashes = "halted: pod default/x-0 on node x, a machine of the source, waits in CrashLoopBackOff after 4 restarts, and its siblings on other machines are well"
	proven := func(w *world) {
		w.m.Sources = []decision.SourceFacts{{Group: "workers", Source: digest, Proven: w.s.Now.Add(-time.Hour)}}
	}
	worked := func(w *world, key string) {
		w.m.Sources = []decision.SourceFacts{{Group: "workers", Source: digest, Worked: []string{key}}}
	}
	for name, c := range map[string]struct {
		change func(w *world, x *cluster.Node)
		want   string
	}{
		"no pod":                 {func(*world, *cluster.Node) {}, decision.RolloutTrial},
		"a pod":                  {func(w *world, x *cluster.Node) { w.well(x) }, decision.RolloutRolling},
		"another source":         {func(w *world, x *cluster.Node) { w.g().Instances[3].Source["image"] = "other"; w.crash(x) }, decision.RolloutTrial},
		"its source is not told": {func(w *world, x *cluster.Node) { w.g().Instances[3].Source = nil; w.crash(x) }, decision.RolloutTrial},
		"it starts":              {func(w *world, x *cluster.Node) { x.Created, x.Ready = w.s.Now, cluster.StatusFalse }, "node x, the first machine of the source, is still starting"},
		"it is not Ready, and was cordoned while it started": {func(w *world, x *cluster.Node) {
			x.Created, x.Ready, x.Unschedulable = w.s.Now, cluster.StatusFalse, true
		}, "node x, the first machine of the source, is not Ready"},
		"it never was Ready": {func(w *world, x *cluster.Node) { x.Ready, x.ReadySince = cluster.StatusFalse, x.Created }, "halted: node x, a machine of the source, is sick: not Ready since 2026-01-05T07:00:00Z"},
		"it is Ready no more": {func(w *world, x *cluster.Node) {
			x.Ready, x.ReadySince = cluster.StatusUnknown, w.s.Now.Add(-20*time.Minute)
		}, "halted: node x, a machine of the source, is sick: not Ready since 2026-01-05T07:40:00Z"},
		"it is Ready no more, a blip": {func(w *world, x *cluster.Node) {
			x.Ready, x.ReadySince = cluster.StatusUnknown, w.s.Now.Add(-14*time.Minute)
		}, "node x, the first machine of the source, is not Ready"},
		"an old one is no better": {func(w *world, x *cluster.Node) {
			x.Ready = cluster.StatusFalse
			w.s.Nodes[0].Ready = cluster.StatusFalse
		}, "node x, the first machine of the source, is not Ready"},
		"a taint does not pass": {func(w *world, x *cluster.Node) {
			x.Taints = []cluster.Taint{{Key: "cni/agent-not-ready", Effect: "NoSchedule"}}
		}, "halted: node x, a machine of the source, still has the taint cni/agent-not-ready 15m0s after it joined, which no machine of another source has"},
		"an old one has the taint too": {func(w *world, x *cluster.Node) {
			x.Taints = []cluster.Taint{{Key: "t", Effect: "NoSchedule"}}
			w.s.Nodes[2].Taints = x.Taints
		}, decision.RolloutTrial},
		"a person has cordoned it": {func(w *world, x *cluster.Node) {
			x.Unschedulable, x.Taints = true, []cluster.Taint{{Key: "t", Effect: "NoSchedule"}}
		}, decision.RolloutTrial},
		"a condition": {func(w *world, x *cluster.Node) {
			w.p.RepairConditions = cluster.RepairConditions{{Type: "KernelDeadlock"}}
			x.Conditions = map[string]time.Time{"KernelDeadlock": w.s.Now.Add(-15 * time.Minute)}
		}, "halted: node x, a machine of the source, is sick: condition KernelDeadlock since 2026-01-05T07:45:00Z"},
		"it is deleted":               {func(w *world, x *cluster.Node) { x.Deleting = true; w.crash(x) }, decision.RolloutTrial},
		"its machine is stopped":      {func(w *world, x *cluster.Node) { w.g().Instances[3].Phase = cluster.PhaseStopped; w.crash(x) }, decision.RolloutTrial},
		"it is drained":               {func(w *world, x *cluster.Node) { mark(x); w.crash(x) }, "node x is being drained, and no machine of source " + digest + " has proven itself yet"},
		"it is drained, and pods run": {func(w *world, x *cluster.Node) { mark(x); w.well(x) }, "node x is being drained, and no machine of source " + digest + " has proven itself yet"},
		"an old node is drained":      {func(w *world, _ *cluster.Node) { mark(w.s.Nodes[0]) }, "node w-000 is being drained, and no machine of source " + digest + " has proven itself yet"},
		"a pod crashes":               {func(w *world, x *cluster.Node) { w.crash(x) }, crashes},
		"a pod crashed once": {func(w *world, x *cluster.Node) {
			w.crash(x).Trouble.Restarts = 1
			x.ReadySince = w.s.Now.Add(-4 * time.Minute)
		},
			"pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"an image cannot be pulled":         {func(w *world, x *cluster.Node) { w.fails(x, "ImagePullBackOff", 5*time.Minute) }, "halted: pod default/x-0 on node x, a machine of the source, waits in ImagePullBackOff since 2026-01-05T07:55:00Z, and its siblings on other machines are well"},
		"an image cannot be pulled for now": {func(w *world, x *cluster.Node) { w.fails(x, "ImagePullBackOff", 4*time.Minute) }, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"a failure of another name":         {func(w *world, x *cluster.Node) { w.fails(x, "RunContainerError", 5*time.Minute) }, "halted: pod default/x-0 on node x, a machine of the source, waits in RunContainerError since 2026-01-05T07:55:00Z, and its siblings on other machines are well"},
		"a pod ends and runs on": {func(w *world, x *cluster.Node) { w.well(w.s.Nodes[0]); w.restarts(x, 2, 10*time.Minute) },
			"halted: pod default/x-0 on node x, a machine of the source, was started again, as most pods of its controller that have run for as long on machines of the source, and its siblings on other machines are well"},
		"a pod ended once":           {func(w *world, x *cluster.Node) { w.well(w.s.Nodes[0]); w.restarts(x, 1, time.Minute) }, "pod default/x-0 on node x, a machine of the source, has not run on: it was started again after 2026-01-05T07:59:00Z"},
		"a pod ended once, long ago": {func(w *world, x *cluster.Node) { w.well(w.s.Nodes[0]); w.restarts(x, 1, 30*time.Minute) }, decision.RolloutRolling},
		"two pods ended once": {func(w *world, x *cluster.Node) {
			w.well(w.s.Nodes[0])
			w.restarts(x, 1, 30*time.Minute)
			w.restarts(x, 1, 30*time.Minute)
		}, "halted: pod default/x-0 on node x, a machine of the source, was started again, as most pods of its controller that have run for as long on machines of the source, and its siblings on other machines are well"},
		"two of five, and three run on": {func(w *world, x *cluster.Node) {
			w.well(w.s.Nodes[0])
			w.restarts(x, 1, 30*time.Minute)
			w.restarts(x, 1, 30*time.Minute)
			w.well(x)
			w.well(x)
			w.well(x)
		}, decision.RolloutRolling},
		"its siblings end as well": {func(w *world, x *cluster.Node) {
			w.restarts(w.s.Nodes[0], 1, 10*time.Minute)
			w.restarts(x, 2, 10*time.Minute)
		}, decision.RolloutRolling},
		"a proven source, and it crashes later":         {func(w *world, x *cluster.Node) { proven(w); w.crash(x) }, crashes},
		"a proven source, and one machine is not Ready": {func(w *world, x *cluster.Node) { proven(w); x.Ready = cluster.StatusFalse }, decision.RolloutRolling},
		"a proven source, and two are not": {func(w *world, x *cluster.Node) {
			proven(w)
			y := w.join(w.g(), "y", time.Hour, "new")
			x.Ready, x.ReadySince, y.Ready, y.ReadySince = cluster.StatusFalse, x.Created, cluster.StatusFalse, y.Created
		}, "halted: node y, a machine of the source, is sick: not Ready since 2026-01-05T07:00:00Z; 2 in a row did not come"},
		"a proven source, and a pod of its has trouble": {func(w *world, x *cluster.Node) { proven(w); w.fails(x, "ErrImagePull", time.Minute) }, "pod default/x-0 on node x, a machine of the source, waits in ErrImagePull"},
		"a pod crashed, and has ended":                  {func(w *world, x *cluster.Node) { w.crash(x).Finished = true }, decision.RolloutTrial},
		"a pod crashes, and is deleted":                 {func(w *world, x *cluster.Node) { w.crash(x).Deleting = cluster.At(w.s.Now) }, decision.RolloutTrial},
		"a pod without a controller crashes":            {func(w *world, x *cluster.Node) { w.crash(x).Owner = nil }, decision.RolloutTrial},
		"one of five siblings is not Ready": {func(w *world, x *cluster.Node) {
			w.crash(x)
			for range 3 {
				w.well(w.s.Nodes[0])
			}
			w.well(w.s.Nodes[0]).Unready = true
		}, crashes},
		"its sibling is not Ready": {func(w *world, x *cluster.Node) { w.crash(x); w.s.Nodes[0].Pods[0].Unready = true }, decision.RolloutTrial},
		"its sibling is deleted":   {func(w *world, x *cluster.Node) { w.crash(x); w.s.Nodes[0].Pods[0].Deleting = cluster.At(w.s.Now) }, decision.RolloutTrial},
		"its sibling crashes": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.s.Nodes[0].Pods[0].Trouble = &cluster.PodTrouble{Waiting: "CrashLoopBackOff"}
		}, decision.RolloutTrial},
		"no sibling":                         {func(w *world, x *cluster.Node) { w.crash(x).Owner.UID = "else" }, decision.RolloutTrial},
		"no sibling, and it was well before": {func(w *world, x *cluster.Node) { worked(w, "else"); w.crash(x).Owner.UID = "else" }, crashes},
		"no sibling, and another was":        {func(w *world, x *cluster.Node) { worked(w, "other"); w.crash(x).Owner.UID = "else" }, decision.RolloutTrial},
		"a DaemonSet crashes": {func(w *world, x *cluster.Node) {
			pod := w.crash(x)
			pod.Owner.Kind, w.s.Nodes[0].Pods[0].Owner.Kind = "DaemonSet", "DaemonSet"
		}, crashes},
		"a new revision of a DaemonSet crashes": {func(w *world, x *cluster.Node) {
			w.s.Classes = append(w.s.Classes, cluster.PodClass{Namespace: "default", Requests: cluster.Resources{Pods: 1}, Labels: map[string]string{cluster.LabelRevisionHash: "2"}})
			w.crash(x).Class = 1
		}, decision.RolloutTrial},
		"two without siblings": {func(w *world, x *cluster.Node) { w.crash(x).Owner.UID, w.crash(x).Owner.UID = "a", "b" }, decision.RolloutTrial},
		"a sibling on another new machine": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.s.Nodes[0].Pods = nil
			put(w.join(w.g(), "y", time.Hour, "new"), w.s.Now)
		}, "the pods on node y, the first machine of the source, have to be Ready until 2026-01-05T08:02:00Z"},
		"a sibling in another group with the same source": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.s.Nodes[0].Pods = nil
			w.well(w.join(w.other("b"), "y", time.Hour, "new"))
		}, crashes},
		"a sibling on a node of no group": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.s.Nodes[0].Pods = nil
			n := &cluster.Node{Name: "y", Ready: cluster.StatusTrue, Created: w.s.Now.Add(-time.Hour)}
			w.well(n)
			w.s.Nodes = append(w.s.Nodes, n)
		}, crashes},
		"a pod is not Ready in its time": {func(w *world, x *cluster.Node) { w.crash(x).Trouble = nil }, "halted: pod default/x-0 on node x, a machine of the source, is not Ready since 2026-01-05T07:00:00Z, and its siblings on other machines are well"},
		"it waited before the machine was Ready": {func(w *world, x *cluster.Node) {
			w.crash(x).Trouble = nil
			x.ReadySince = w.s.Now.Add(-14 * time.Minute)
		}, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"a young pod":             {func(w *world, x *cluster.Node) { put(x, w.s.Now.Add(-time.Minute)) }, "the pods on node x, the first machine of the source, have to be Ready until 2026-01-05T08:01:00Z"},
		"on a young machine":      {func(w *world, x *cluster.Node) { w.well(x); x.ReadySince = w.s.Now.Add(-time.Minute) }, "have to be Ready until 2026-01-05T08:01:00Z"},
		"beside older ones":       {func(w *world, x *cluster.Node) { put(x, w.s.Now.Add(-time.Minute)); w.well(x); put(x, w.s.Now) }, decision.RolloutRolling},
		"beside a younger one":    {func(w *world, x *cluster.Node) { put(x, w.s.Now.Add(-time.Minute)); put(x, w.s.Now) }, "until 2026-01-05T08:01:00Z"},
		"only a DaemonSet's pod":  {func(w *world, x *cluster.Node) { put(x, w.s.Now).Owner.Kind = "DaemonSet" }, decision.RolloutTrial},
		"a DaemonSet's beside it": {func(w *world, x *cluster.Node) { w.well(x).Owner.Kind = "DaemonSet"; put(x, w.s.Now) }, "until 2026-01-05T08:02:00Z"},
		"a deleted one beside it": {func(w *world, x *cluster.Node) { w.well(x).Deleting = cluster.At(w.s.Now); put(x, w.s.Now) }, "until 2026-01-05T08:02:00Z"},
		"a leader is the first":   {func(w *world, x *cluster.Node) { x.ControlPlane = true; w.crash(x) }, decision.RolloutTrial},
		"another machine fails": {func(w *world, x *cluster.Node) {
			w.well(x).Owner.UID = "else"
			w.crash(w.join(w.g(), "y", time.Hour, "new"))
		}, strings.ReplaceAll(crashes, "x-0 on node x", "y-0 on node y")},
		"it was halted before": {func(w *world, x *cluster.Node) { w.well(x); w.halt("workers", digest); w.m.Halts[0].Node = "gone" }, "halted: before"},
		"for another source":   {func(w *world, x *cluster.Node) { w.well(x); w.halt("workers", "f00d") }, decision.RolloutRolling},
		"in another group":     {func(w *world, x *cluster.Node) { w.other("b"); w.well(x); w.halt("b", digest) }, decision.RolloutRolling},
		"by an earlier leader": {func(w *world, x *cluster.Node) {
			w.well(x)
			w.halt("workers", digest)
			w.p.Halts, w.m.Halts = w.m.Halts, nil
		}, "halted: before"},
		"by this machine, which is well again": {func(w *world, x *cluster.Node) { w.well(x); w.halt("workers", digest); w.m.Halts[0].Node = "x" }, decision.RolloutRolling},
		"by this machine, a short time ago": {func(w *world, x *cluster.Node) {
			w.well(x)
			x.ReadySince = w.s.Now.Add(-time.Minute)
			w.halt("workers", digest)
			w.m.Halts[0].Node = "x"
		}, "halted: before"},
		"by one that did not join, and this one did": {func(w *world, x *cluster.Node) {
			w.well(x)
			x.ReadySince = w.s.Now.Add(-30 * time.Minute)
			w.halt("workers", digest)
		}, decision.RolloutRolling},
		"nothing is unhealthy but the cluster": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.p.OKTotalUnready, w.p.MaxTotalUnreadyPercent = 0, 10
			w.s.Nodes[1].Ready = cluster.StatusFalse
		}, "no machine of source " + digest + " has proven itself"},
	} {
		w := drifted(3)
		w.p.ReplaceSettleTime = 2 * time.Minute
		x := w.join(w.g(), "x", time.Hour, "new")
		c.change(w, x)
		d := w.begin()
		if got := trial(d); got != c.want && !strings.HasSuffix(got, c.want) && name != "nothing is unhealthy but the cluster" || strings.HasPrefix(got, "halted") != strings.HasPrefix(c.want, "halted") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// halt notes that a rollout was halted.
func (w *world) halt(group cluster.GroupID, source string) {
	w.m.Halts = append(w.m.Halts, decision.Halt{Group: group, Source: source, Why: "before", At: w.s.Now.Add(-time.Hour)})
}

// TestWithoutARollout: where no machine of another source is left, and none was for an hour, nothing halts.
func TestWithoutARollout(t *testing.T) {
	digest := cluster.Spec{"image": "new"}.Digest()
	for name, c := range map[string]struct {
		facts []decision.SourceFacts
		ended time.Duration
		want  bool
	}{
		"nothing was replaced":           {nil, 0, false},
		"it ended a short time ago":      {[]decision.SourceFacts{{Group: "workers", Source: digest, Worked: []string{"web"}}}, time.Minute, true},
		"it ended long ago":              {[]decision.SourceFacts{{Group: "workers", Source: digest, Worked: []string{"web"}}}, 2 * time.Hour, false},
		"that of another source, lately": {[]decision.SourceFacts{{Group: "workers", Source: "f00d", Worked: []string{"web"}}}, time.Minute, false},
	} {
		w := drifted(3)
		for i := range w.g().Instances {
			w.g().Instances[i].Source = cluster.Spec{"image": "new"}
		}
		w.crash(w.s.Nodes[1])
		w.s.Nodes[0].Pods = nil
		w.s.Nodes[2].Ready = cluster.StatusFalse
		for i := range c.facts {
			c.facts[i].Ended = w.s.Now.Add(-c.ended)
		}
		w.m.Sources = c.facts
		d := w.begin()
		if got := d.Halted(0); (got != "") != c.want || (len(d.State.Next.Sources) > 0) != c.want {
			t.Errorf("%s: %q, remembered %+v", name, got, d.State.Next.Sources)
		}
	}
}

// TestWhatIsSeen: the facts of a source change by what happened: which programs were well on a node that is drained, and which machines did
// not come.
func TestWhatIsSeen(t *testing.T) {
	w := drifted(3)
	mark(w.s.Nodes[0])
	w.well(w.s.Nodes[0]).Owner.UID = "b"
	w.well(w.s.Nodes[0]).Owner.UID = "a"
	w.crash(w.s.Nodes[0]).Owner.UID = "ill"
	w.well(w.s.Nodes[1]).Owner.UID = "not-drained"
	d := w.begin()
	if f := d.State.Next.Sources; len(f) != 1 || !slices.Equal(f[0].Worked, []string{"a", "b", "web"}) {
		t.Errorf("%+v", f)
	}
	late := func(id cluster.InstanceID) {
		w.g().Instances = append(w.g().Instances, cluster.Instance{ID: id, Member: true, Phase: cluster.PhaseRunning, Created: w.s.Now.Add(-16 * time.Minute), Source: cluster.Spec{"image": "new"}})
		w.g().Target++
		w.m.Unregistered = map[cluster.InstanceID]time.Time{id: w.s.Now.Add(-16 * time.Minute)}
	}
	w = drifted(3)
	x := w.join(w.g(), "x", time.Hour, "new")
	w.well(x)
	w.p.ReplaceSettleTime = time.Minute
	late("i-1")
	w.m = w.begin().State.Next
	if f := w.m.Sources[0]; f.Proven.IsZero() || !slices.Equal(f.Missed, []cluster.InstanceID{"i-1"}) || len(w.m.Halts) > 0 {
		t.Fatalf("%+v, halts %+v", f, w.m.Halts)
	}
	w.s.Now = w.s.Now.Add(time.Minute)
	w.g().ReadAt = w.s.Now
	y := w.join(w.g(), "y", 0, "new")
	again := w.begin()
	if f := again.State.Next.Sources[0]; len(f.Missed) != 1 {
		t.Errorf("i-1 is still late: %+v", f)
	}
	w.g().Instances = slices.DeleteFunc(w.g().Instances, func(in cluster.Instance) bool { return in.ID == "i-1" })
	w.g().Target--
	if f := w.begin().State.Next.Sources[0]; len(f.Missed) != 0 {
		t.Errorf("y has come: %+v", f)
	}
	y.Ready = cluster.StatusFalse
	late("i-2")
	if d := w.begin(); !strings.Contains(d.Halted(0), "i-2") || !strings.HasSuffix(d.Halted(0), "; 2 in a row did not come") {
		t.Errorf("two in a row: %q", d.Halted(0))
	}
}

// TestOneGoesFirst: while no machine of a source has proven itself one node of the group goes for it. One that goes because it is idle
// is none.
func TestOneGoesFirst(t *testing.T) {
	w := drifted(3)
	w.join(w.g(), "x", time.Hour, "new")
	for add, want := range map[string]string{"x": "", "w-000": decision.RuleCanary} {
		d := w.begin()
		d.Add(d.ByName[cluster.NodeName(add)])
		if rule, words := d.Hold(2, d.Reason(2)); rule != want {
			t.Errorf("%s goes, and w-002 is held by [%s] %s", add, rule, words)
		}
	}
	w.well(w.s.Nodes[3])
	d := w.begin()
	if rule, words := d.Hold(2, d.Reason(2)); rule != "" {
		t.Errorf("the source is proven, and w-002 is held by [%s] %s", rule, words)
	}
	d.Add(0)
	if rule, words := d.Hold(2, d.Reason(2)); rule != decision.RuleCanary || !strings.Contains(words, ": 1 of 1") {
		t.Errorf("one machine has pods, and beside w-000 w-002 is held by [%s] %s", rule, words)
	}
	w.well(w.join(w.g(), "y", time.Hour, "new"))
	w.well(w.join(w.g(), "z", time.Hour, "new"))
	d = w.begin()
	d.Add(0)
	if rule, words := d.Hold(2, d.Reason(2)); rule != "" {
		t.Errorf("three machines have pods, and beside w-000 w-002 is held by [%s] %s", rule, words)
	}
}

// TestFailedMachinesGo: machines of a source whose rollout is halted are sick, and stay it while they are drained; others are not held for
// it, and machines of other sources are kept.
func TestFailedMachinesGo(t *testing.T) {
	w := drifted(3)
	failed, drained := w.join(w.g(), "a", time.Hour, "new"), w.join(w.g(), "m", time.Hour, "new")
	w.crash(failed)
	mark(drained)
	mark(w.s.Nodes[0])
	d := w.begin()
	for _, n := range []cluster.NodeName{"a", "m"} {
		i := d.ByName[n]
		why := d.Reason(i)
		if rule, words := d.Hold(i, why); why.Rule != decision.RuleSick || rule != "" || stays(d, i) != "" {
			t.Errorf("node %s: [%s] %s, held by [%s] %s, kept: %s", n, why.Rule, why.Why, rule, words, stays(d, i))
		}
	}
	if i := d.ByName["w-001"]; d.Reason(i).Rule != decision.RuleDrifted || stays(d, i) == "" {
		t.Errorf("an old node: %v, kept: %q", d.Reason(i), stays(d, i))
	}
	w.p.Rollouts = cluster.RolloutOrders{"workers": {Resumed: w.g().Template.Source.Digest()}}
	d = w.begin()
	if why := d.Reason(d.ByName["m"]); why.Rule != "" || stays(d, d.ByName["w-001"]) != "" {
		t.Errorf("resumed: %v", why)
	}
}

// TestHaltsAreKept: a halt is remembered where the rollout cannot be judged, and forgotten with its source.
func TestHaltsAreKept(t *testing.T) {
	digest := cluster.Spec{"image": "new"}.Digest()
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"halted":           {func(w *world) { w.halt("workers", digest) }, "workers " + digest},
		"and written down": {func(w *world) { w.halt("workers", digest); w.p.Halts = w.m.Halts }, "workers " + digest},
		"another source":   {func(w *world) { w.halt("workers", "f00d") }, ""},
		"resumed": {func(w *world) {
			w.halt("workers", digest)
			w.p.Rollouts = cluster.RolloutOrders{"workers": {Resumed: digest}}
		}, ""},
		"its source is not known":                {func(w *world) { w.halt("workers", "f00d"); w.g().Template.Source = nil }, "workers f00d"},
		"nothing is replaced":                    {func(w *world) { w.halt("workers", "f00d"); w.p.Drift = false }, "workers f00d"},
		"its group is not told":                  {func(w *world) { w.halt("b", "f00d") }, "b f00d"},
		"two groups":                             {func(w *world) { w.halt("workers", digest); w.halt("b", "f00d") }, "b f00d workers " + digest},
		"the cluster is not told":                {func(w *world) { w.halt("workers", "f00d"); w.s.Stale = "no answer" }, "workers f00d"},
		"remembered otherwise than written down": {func(w *world) { w.halt("b", "f00d"); w.p.Halts = []decision.Halt{{Group: "b", Source: "beef"}} }, "b f00d"},
	} {
		w := drifted(3)
		c.change(w)
		var got []string
		for _, h := range w.begin().State.Next.Halts {
			got = append(got, string(h.Group), h.Source)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// stays is by which rule a machine stays that nothing needs.
func stays(d *disruption.Round, i int) string {
	switch n := &d.Nodes[i]; {
	case d.StaysForHalt(n) != "":
		return decision.RuleHalted
	case d.Unproven(n) != "":
		return decision.RuleCanary
	}
	return ""
}

// TestUnproven: the machine of an old node that is drained or not needed is not ended before the first machine of the new source has proven itself.
func TestUnproven(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, x *cluster.Node)
		want   bool
	}{
		"a first machine waits": {func(w *world, x *cluster.Node) { put(x, w.s.Now) }, true},
		"none has come":         {func(w *world, x *cluster.Node) { w.g().Instances[3].Source["image"] = "old" }, false},
		"its Node was deleted":  {func(w *world, x *cluster.Node) { w.s.Nodes = w.s.Nodes[:3] }, true},
		"it is interrupted":     {func(w *world, x *cluster.Node) { put(x, w.s.Now); w.g().Instances[3].Phase = cluster.PhaseDeleting }, true},
		"it has proven itself":  {func(w *world, x *cluster.Node) { w.well(x) }, false},
		"nothing is replaced":   {func(w *world, x *cluster.Node) { w.p.Drift = false }, false},
	} {
		w := drifted(3)
		w.p.ReplaceSettleTime = time.Minute
		x := w.join(w.g(), "x", time.Hour, "new")
		c.change(w, x)
		d := w.begin()
		if got := stays(d, 0); (got == decision.RuleCanary) != c.want || !c.want && got != "" {
			t.Errorf("%s: %q", name, got)
		}
		if first, is := d.ByName["x"]; is && stays(d, first) != "" {
			t.Errorf("%s: the first machine itself stays by %q", name, stays(d, first))
		}
	}
}

// TestCheckpoints: at each share of the group no further node goes until its time is over, and those of the share go.
func TestCheckpoints(t *testing.T) {
	for name, c := range map[string]struct {
		old, fresh, going int           // of twelve nodes; more: spare machines
		ago               time.Duration // since when the third, the fourth and the sixth machine of the source are there
		want              string        // "": no checkpoint keeps a further node
	}{
		"the share is not full":          {10, 2, 0, time.Minute, ""},
		"the last of the share goes":     {10, 2, 1, time.Minute, "on their way out"},
		"it is full":                     {9, 3, 0, time.Minute, "waits at 25% of the group until 2026-01-05T08:59:00Z"},
		"and its time is over":           {9, 3, 0, time.Hour, ""},
		"a spare machine has come early": {9, 4, 0, time.Minute, "waits at 25% of the group until 2026-01-05T08:59:00Z"},
		"the next share is full":         {6, 6, 0, time.Hour, "waits at 50% of the group until 2026-01-05T09:00:00Z"},
		"the times of both are over":     {6, 6, 0, 2 * time.Hour, ""},
	} {
		w := drifted(c.old)
		w.p.ReplaceCheckpoints = cluster.Checkpoints{{Percent: 25, Wait: time.Hour}, {Percent: 50, Wait: 2 * time.Hour}}
		w.m.Sources = []decision.SourceFacts{{Group: "workers", Source: w.g().Template.Source.Digest(), Proven: w.s.Now}}
		w.m.Sizes = map[cluster.GroupID]int{"workers": 12}
		for i := range c.fresh {
			age := 10 * time.Hour
			if i == 2 || i == 3 || i == 5 {
				age = c.ago
			}
			if x := w.join(w.g(), cluster.NodeName("n"+strconv.Itoa(i)), age, "new"); i < 12-c.old {
				put(x, w.s.Now.Add(-age))
			}
		}
		for i := range c.going {
			mark(w.s.Nodes[i])
		}
		d := w.begin()
		at := d.ByName["w-004"]
		_, got := d.Hold(at, d.Reason(at))
		if c.want == "" && strings.Contains(got, "% of the group") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestHealthCondition: a machine of the source has to have a condition that somebody else writes before another node goes, and its own
// pods prove nothing without it.
func TestHealthCondition(t *testing.T) {
	w := drifted(3)
	w.p.ReplaceSettleTime, w.p.ReplaceHealthCondition = time.Minute, "example.net/Checked"
	x := w.join(w.g(), "x", time.Hour, "new")
	w.well(x)
	d := w.begin()
	if rule, got := d.Hold(0, d.Reason(0)); rule != decision.RuleCanary || !strings.Contains(got, "node x, a machine of the source, has not the condition example.net/Checked") || stays(d, 0) != decision.RuleCanary {
		t.Errorf("without the condition: [%s] %s, stays by %q", rule, got, stays(d, 0))
	}
	if len(d.Next.Sources) != 1 || !d.Next.Sources[0].Proven.IsZero() {
		t.Errorf("without the condition it is proven: %+v", d.Next.Sources)
	}
	x.Conditions = map[string]time.Time{"example.net/Checked": w.s.Now}
	d = w.begin()
	if rule, got := d.Hold(0, d.Reason(0)); rule != "" || d.Next.Sources[0].Proven.IsZero() {
		t.Errorf("with the condition: [%s] %s, %+v", rule, got, d.Next.Sources)
	}
}

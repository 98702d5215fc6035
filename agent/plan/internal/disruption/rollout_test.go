package disruption_test

import (
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
	pod.Crashing, pod.Unready = true, true
	return pod
}

// TestTrial looks at an hour-old machine "x" of the new source in a group with three old ones.
func TestTrial(t *testing.T) {
	digest := cluster.Spec{"image": "new"}.Digest()
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
		"it is not Ready":                    {func(w *world, x *cluster.Node) { x.Ready = cluster.StatusFalse }, "halted: node x, a machine of the source, is not Ready 15m0s after it joined"},
		"it is deleted":                      {func(w *world, x *cluster.Node) { x.Deleting = true; w.crash(x) }, decision.RolloutTrial},
		"its machine is stopped":             {func(w *world, x *cluster.Node) { w.g().Instances[3].Phase = cluster.PhaseStopped; w.crash(x) }, decision.RolloutTrial},
		"it is drained":                      {func(w *world, x *cluster.Node) { mark(x); w.crash(x) }, "node x is being drained, and no machine of source " + digest + " has proven itself yet"},
		"it is drained, and pods run":        {func(w *world, x *cluster.Node) { mark(x); w.well(x) }, "node x is being drained, and no machine of source " + digest + " has proven itself yet"},
		"an old node is drained":             {func(w *world, _ *cluster.Node) { mark(w.s.Nodes[0]) }, "node w-000 is being drained, and no machine of source " + digest + " has proven itself yet"},
		"a pod crashes":                      {func(w *world, x *cluster.Node) { w.crash(x) }, "halted: pod default/x-0 crashes on node x, a machine of the source, and its siblings on other nodes do not"},
		"a pod crashed, and has ended":       {func(w *world, x *cluster.Node) { w.crash(x).Finished = true }, decision.RolloutTrial},
		"a pod crashes, and is deleted":      {func(w *world, x *cluster.Node) { w.crash(x).Deleting = cluster.At(w.s.Now) }, decision.RolloutTrial},
		"a pod without a controller crashes": {func(w *world, x *cluster.Node) { w.crash(x).Owner = nil }, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"two of them":                        {func(w *world, x *cluster.Node) { w.crash(x).Owner = nil; w.crash(x).Owner = nil }, "pod default/x-1 on node x, the first machine of the source, is not Ready yet"},
		"one of its siblings is not Ready":   {func(w *world, x *cluster.Node) { w.crash(x); w.well(w.s.Nodes[0]).Unready = true }, "halted: pod default/x-0 crashes on node x, a machine of the source, and its siblings on other nodes do not"},
		"its sibling is not Ready":           {func(w *world, x *cluster.Node) { w.crash(x); w.s.Nodes[0].Pods[0].Unready = true }, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"its sibling is deleted":             {func(w *world, x *cluster.Node) { w.crash(x); w.s.Nodes[0].Pods[0].Deleting = cluster.At(w.s.Now) }, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"its sibling crashes at times":       {func(w *world, x *cluster.Node) { w.crash(x); w.s.Nodes[0].Pods[0].Crashing = true }, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"no sibling":                         {func(w *world, x *cluster.Node) { w.crash(x); w.s.Nodes[0].Pods[0].Owner.UID = "else" }, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"others have no controller":          {func(w *world, x *cluster.Node) { w.crash(x); w.s.Nodes[0].Pods[0].Owner = nil }, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"two without siblings": {func(w *world, x *cluster.Node) {
			w.crash(x).Owner.UID, w.crash(x).Owner.UID = "a", "b"
		}, "halted: the pods of 2 controllers crash on node x, a machine of the source, and on no other node"},
		"two that crash elsewhere too": {func(w *world, x *cluster.Node) {
			for _, uid := range []cluster.UID{"a", "b"} {
				pod, sibling := w.crash(x), w.crash(w.s.Nodes[1])
				pod.Owner.UID, sibling.Owner.UID = uid, uid
			}
		}, "pod default/x-1 on node x, the first machine of the source, is not Ready yet"},
		"a sibling on another new machine": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.s.Nodes[0].Pods = nil
			w.well(w.join(w.g(), "y", time.Second, "new")).Created = cluster.At(w.s.Now)
		}, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"a sibling in another group with the same source": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.s.Nodes[0].Pods = nil
			w.well(w.join(w.other("b"), "y", time.Hour, "new"))
		}, "halted: pod default/x-0 crashes on node x, a machine of the source, and its siblings on other nodes do not"},
		"a sibling on a node of no group": {func(w *world, x *cluster.Node) {
			w.crash(x)
			w.s.Nodes[0].Pods = nil
			n := &cluster.Node{Name: "y", Ready: cluster.StatusTrue, Created: w.s.Now.Add(-time.Hour)}
			w.well(n)
			w.s.Nodes = append(w.s.Nodes, n)
		}, "halted: pod default/x-0 crashes on node x, a machine of the source, and its siblings on other nodes do not"},
		"a pod is not Ready in its time": {func(w *world, x *cluster.Node) { w.crash(x).Crashing = false }, "halted: pod default/x-0 on node x, a machine of the source, is not Ready 15m0s after it could start, and its siblings on other nodes are"},
		"nor at times its sibling": {func(w *world, x *cluster.Node) {
			w.crash(x).Crashing = false
			w.s.Nodes[0].Pods[0].Crashing = true
			w.well(w.s.Nodes[0])
		}, "pod default/x-0 on node x, the first machine of the source, is not Ready yet"},
		"a young pod":                                {func(w *world, x *cluster.Node) { put(x, w.s.Now.Add(-time.Minute)) }, "the pods on node x, the first machine of the source, have to be Ready until 2026-01-05T08:01:00Z"},
		"beside older ones":                          {func(w *world, x *cluster.Node) { put(x, w.s.Now.Add(-time.Minute)); w.well(x); put(x, w.s.Now) }, decision.RolloutRolling},
		"beside a younger one":                       {func(w *world, x *cluster.Node) { put(x, w.s.Now.Add(-time.Minute)); put(x, w.s.Now) }, "until 2026-01-05T08:01:00Z"},
		"only a DaemonSet's pod":                     {func(w *world, x *cluster.Node) { put(x, w.s.Now).Owner.Kind = "DaemonSet" }, decision.RolloutTrial},
		"a DaemonSet's beside it":                    {func(w *world, x *cluster.Node) { w.well(x).Owner.Kind = "DaemonSet"; put(x, w.s.Now) }, "until 2026-01-05T08:02:00Z"},
		"a deleted one beside it":                    {func(w *world, x *cluster.Node) { w.well(x).Deleting = cluster.At(w.s.Now); put(x, w.s.Now) }, "until 2026-01-05T08:02:00Z"},
		"a leader is the first":                      {func(w *world, x *cluster.Node) { x.ControlPlane = true; w.crash(x) }, decision.RolloutTrial},
		"another machine fails, which is told first": {func(w *world, x *cluster.Node) { w.well(x); w.crash(w.join(w.g(), "a", time.Hour, "new")) }, decision.RolloutRolling},
		"another machine fails, which is told last":  {func(w *world, x *cluster.Node) { w.well(x); w.crash(w.join(w.g(), "y", time.Hour, "new")) }, decision.RolloutRolling},
		"it was halted before":                       {func(w *world, x *cluster.Node) { w.well(x); w.halt("workers", digest) }, "halted: before"},
		"for another source":                         {func(w *world, x *cluster.Node) { w.well(x); w.halt("workers", "f00d") }, decision.RolloutRolling},
		"in another group":                           {func(w *world, x *cluster.Node) { w.other("b"); w.well(x); w.halt("b", digest) }, decision.RolloutRolling},
		"by an earlier leader": {func(w *world, x *cluster.Node) {
			w.well(x)
			w.halt("workers", digest)
			w.p.Halts, w.m.Halts = w.m.Halts, nil
		}, "halted: before"},
		"another node was ordered a machine": {func(w *world, _ *cluster.Node) {
			w.ordered("w-001", decision.RuleDrifted, 2*time.Hour).Ordered = w.s.Now.Add(time.Second)
		}, "a machine of source " + digest + " was ordered in place of node w-001, and is the first"},
	} {
		w := drifted(3)
		x := w.join(w.g(), "x", time.Hour, "new")
		c.change(w, x)
		d := w.begin()
		if got := trial(d); got != c.want && !strings.HasSuffix(got, "; it waits: "+c.want) && !(strings.HasPrefix(c.want, "until") && strings.HasSuffix(got, c.want)) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// halt notes that a rollout was halted.
func (w *world) halt(group cluster.GroupID, source string) {
	w.m.Halts = append(w.m.Halts, decision.Halt{Group: group, Source: source, Why: "before", At: w.s.Now.Add(-time.Hour)})
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
	pod := w.well(w.s.Nodes[3])
	d := w.begin()
	d.Add(0)
	if rule, words := d.Hold(2, d.Reason(2)); rule != "" {
		t.Errorf("the source is proven, and w-002 is held by [%s] %s", rule, words)
	}
	pod.Finished = true
	w.ordered("w-002", decision.RuleDrifted, time.Second)
	d = w.begin()
	d.Add(0)
	if rule, words := d.Hold(2, d.Reason(2)); rule != "" {
		t.Errorf("the node whose machine is ordered is held by [%s] %s", rule, words)
	}
	w.m.Replacements = nil
	w.dear(time.Second, "w-000")
	d = w.begin()
	if rule, words := d.Hold(2, d.Reason(2)); rule != "" {
		t.Errorf("beside a dear node w-002 is held by [%s] %s", rule, words)
	}
	w.m.Replacements = nil
	w.join(w.other("b"), "y", 24*time.Hour, "old")
	w.ordered("y", decision.RuleDrifted, time.Second).Group = "b"
	d = w.begin()
	if rule, words := d.Hold(2, d.Reason(2)); rule != "" {
		t.Errorf("beside another group's order w-002 is held by [%s] %s", rule, words)
	}
}

// TestFailedMachineGoes: a machine that halts a rollout is sick, and stays it while it is drained, whatever the other machines are
// called; others are not held for it, and its order outlives the round.
func TestFailedMachineGoes(t *testing.T) {
	for _, name := range []cluster.NodeName{"a", "x"} {
		w := drifted(3)
		failed, drained := w.join(w.g(), name, time.Hour, "new"), w.join(w.g(), "m", time.Hour, "new")
		w.crash(failed)
		mark(drained)
		mark(w.s.Nodes[0])
		w.ordered(name, decision.RuleExpired, time.Minute)
		d := w.begin()
		for _, n := range []cluster.NodeName{name, "m"} {
			i := d.ByName[n]
			why := d.Reason(i)
			if rule, words := d.Hold(i, why); why.Rule != decision.RuleSick || rule != "" {
				t.Errorf("beside %s: node %s: [%s] %s, held by [%s] %s", name, n, why.Rule, why.Why, rule, words)
			}
		}
		if !d.Ordered(d.ByName[name]) {
			t.Errorf("the order of %s is forgotten", name)
		}
		if why := d.Reason(d.ByName["w-000"]); why.Rule != decision.RuleDrifted {
			t.Errorf("an old node: %v", why)
		}
		w.p.Rollouts = cluster.RolloutOrders{"workers": {Resumed: w.g().Template.Source.Digest()}}
		d = w.begin()
		if why := d.Reason(d.ByName["m"]); why.Rule != "" {
			t.Errorf("resumed: %v", why)
		}
	}
}

// TestNeverCame: a machine that was ordered and does not come halts the rollout of its group's source, unless the cloud has none.
func TestNeverCame(t *testing.T) {
	noJoin := func(w *world, group cluster.GroupID, ago time.Duration) {
		w.refused(group, ago)
		w.m.Backoff[len(w.m.Backoff)-1].Cause = cluster.CauseNoJoin
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"there is time":              {func(w *world) { w.ordered("w-000", decision.RuleDrifted, 29*time.Minute) }, decision.RolloutTrial},
		"it is over":                 {func(w *world) { w.ordered("w-000", decision.RuleDrifted, 30*time.Minute) }, "halted: the machine that was ordered at 2026-01-05T07:30:00Z in place of node w-000 was not Ready by 2026-01-05T08:00:00Z"},
		"it is over for a dear node": {func(w *world) { w.dear(30*time.Minute, "w-000") }, decision.RolloutTrial},
		"it is over in another group": {func(w *world) {
			w.join(w.other("b"), "y", 24*time.Hour, "old")
			w.ordered("y", decision.RuleDrifted, 30*time.Minute).Group = "b"
		}, decision.RolloutTrial},
		"it is over, and the machine has come": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 30*time.Minute)
			w.join(w.g(), "x", time.Minute, "old")
		}, decision.RolloutTrial},
		"it is over, and the source is proven": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 30*time.Minute)
			w.well(w.join(w.g(), "x", time.Hour, "new"))
		}, decision.RolloutRolling},
		"it is over, and the cloud had none": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 30*time.Minute)
			w.refused("workers", time.Minute)
		}, decision.RolloutTrial},
		"before the order": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 30*time.Minute)
			w.refused("workers", 30*time.Minute)
		}, "halted: the machine that was ordered at 2026-01-05T07:30:00Z in place of node w-000 was not Ready by 2026-01-05T08:00:00Z"},
		"for another group": {func(w *world) {
			w.other("b")
			w.ordered("w-000", decision.RuleDrifted, 30*time.Minute)
			w.refused("b", time.Minute)
		}, "halted: the machine that was ordered at 2026-01-05T07:30:00Z in place of node w-000 was not Ready by 2026-01-05T08:00:00Z"},
		"it did not join": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 20*time.Minute)
			noJoin(w, "workers", time.Minute)
		}, "halted: the machine that was ordered at 2026-01-05T07:40:00Z in place of node w-000 did not join: full"},
		"another did not join before the order": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 20*time.Minute)
			noJoin(w, "workers", 20*time.Minute)
		}, decision.RolloutTrial},
		"the cloud had none, after one did not join": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 30*time.Minute)
			noJoin(w, "workers", 30*time.Minute)
		}, "halted: the machine that was ordered at 2026-01-05T07:30:00Z in place of node w-000 was not Ready by 2026-01-05T08:00:00Z"},
		"a machine of another group did not join": {func(w *world) {
			w.other("b")
			w.ordered("w-000", decision.RuleDrifted, 20*time.Minute)
			noJoin(w, "b", time.Minute)
		}, decision.RolloutTrial},
		"the second of two orders": {func(w *world) {
			w.ordered("w-000", decision.RuleDrifted, 20*time.Minute)
			w.ordered("w-001", decision.RuleDrifted, 40*time.Minute)
		}, "halted: the machine that was ordered at 2026-01-05T07:20:00Z in place of node w-001 was not Ready by 2026-01-05T07:50:00Z"},
	} {
		w := drifted(3)
		c.change(w)
		d := w.begin()
		got := d.Halted(d.ByID["workers"])
		if got != "" {
			got = "halted: " + got
		} else {
			d.Tell()
			got = d.Plan.Rollouts[d.ByID["workers"]].State
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
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

// TestUnproven: the machine of an old node that is drained is not ended before the first machine of the new source has proven itself.
func TestUnproven(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, x *cluster.Node)
		want   bool
	}{
		"a first machine waits": {func(w *world, x *cluster.Node) { put(x, w.s.Now) }, true},
		"none has come":         {func(w *world, x *cluster.Node) { w.g().Instances[3].Source["image"] = "old" }, false},
		"it has proven itself":  {func(w *world, x *cluster.Node) { w.well(x) }, false},
		"nothing is replaced":   {func(w *world, x *cluster.Node) { w.p.Drift = false }, false},
	} {
		w := drifted(3)
		x := w.join(w.g(), "x", time.Hour, "new")
		c.change(w, x)
		d := w.begin()
		if got := d.Unproven(&d.Nodes[0]); (got != "") != c.want || d.Unproven(&d.Nodes[d.ByName["x"]]) != "" {
			t.Errorf("%s: %q, and of the first machine itself %q", name, got, d.Unproven(&d.Nodes[d.ByName["x"]]))
		}
	}
}

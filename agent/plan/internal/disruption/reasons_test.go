package disruption_test

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
)

// ask annotates a node: somebody wants it to be replaced.
func ask(n *cluster.Node) { n.Annotations = map[string]string{cluster.AnnotationReplace: "true"} }

// TestReason: why the node w-000, which is a day old, is replaced.
func TestReason(t *testing.T) {
	unwell := func(w *world, n *cluster.Node, ago time.Duration) {
		w.p.RepairAfter = time.Hour
		n.Ready, n.ReadySince = cluster.StatusFalse, w.s.Now.Add(-ago)
	}
	conditions := func(w *world, n *cluster.Node, ago ...time.Duration) {
		w.p.RepairAfter, w.p.RepairConditions = time.Hour, cluster.RepairConditions{{Type: "Disk"}, {Type: "Kernel"}}
		n.Conditions = map[string]time.Time{}
		for i, d := range ago {
			n.Conditions[w.p.RepairConditions[i].Type] = w.s.Now.Add(-d)
		}
	}
	for name, c := range map[string]struct {
		change func(w *world, n *cluster.Node)
		want   string
		why    string
		wake   time.Duration
	}{
		"nothing is replaced": {func(*world, *cluster.Node) {}, "", "", 0},
		"drift":               {func(w *world, _ *cluster.Node) { w.p.Drift = true }, decision.RuleDrifted, "it is drifted: image: old, wanted new", 0},
		"drift, in its group": {func(w *world, _ *cluster.Node) { w.g().Options.Drift = new(true) }, decision.RuleDrifted, "", 0},
		"not in its group":    {func(w *world, _ *cluster.Node) { w.p.Drift = true; w.g().Options.Drift = new(false) }, "", "", 0},
		"the rollout is started": {func(w *world, _ *cluster.Node) {
			w.p.Rollouts = cluster.RolloutOrders{"workers": {Started: w.g().Template.Source.Digest()}}
		}, decision.RuleDrifted, "", 0},
		"that of another source": {func(w *world, _ *cluster.Node) { w.p.Rollouts = cluster.RolloutOrders{"workers": {Started: "f00d"}} }, "", "", 0},
		"it starts":              {func(w *world, n *cluster.Node) { w.p.Drift = true; n.Created, n.Ready = w.s.Now, cluster.StatusFalse }, "", "", 0},
		"it is asked for":        {func(_ *world, n *cluster.Node) { ask(n) }, decision.RuleReplaceNode, "somebody asked for its replacement", 0},
		"by another word":        {func(_ *world, n *cluster.Node) { ask(n); n.Annotations[cluster.AnnotationReplace] = "false" }, "", "", 0},
		"of a node that starts":  {func(w *world, n *cluster.Node) { ask(n); n.Created, n.Ready = w.s.Now, cluster.StatusFalse }, "", "", 0},
		"of a leader":            {func(w *world, n *cluster.Node) { ask(n); n.ControlPlane, w.p.Drift = true, true }, "", "", 0},
		"of a node of no group":  {func(w *world, n *cluster.Node) { ask(n); n.ProviderID, w.p.Drift = "else", true }, "", "", 0},
		"of another node":        {func(w *world, _ *cluster.Node) { ask(w.s.Nodes[1]) }, "", "", 0},
		"while nothing is known": {func(w *world, n *cluster.Node) { ask(n); w.s.Stale = "no answer" }, decision.RuleReplaceNode, "", 0},
		"not Ready":              {func(w *world, n *cluster.Node) { unwell(w, n, time.Hour) }, decision.RuleSick, "it is sick: not Ready since 2026-01-05T07:00:00Z", 0},
		"not yet for long":       {func(w *world, n *cluster.Node) { unwell(w, n, 50*time.Minute) }, "", "", 10 * time.Minute},
		"not Ready, of a group without repair": {func(w *world, n *cluster.Node) {
			unwell(w, n, time.Hour)
			w.g().Options.RepairAfter = new(time.Duration(0))
			w.p.Drift = true
		}, decision.RuleDrifted, "", 0},
		"not Ready since nobody knows": {func(w *world, n *cluster.Node) {
			unwell(w, n, 0)
			n.ReadySince = time.Time{}
			w.m.Unready = map[cluster.NodeName]time.Time{n.Name: w.s.Now.Add(-time.Minute)}
		}, "", "", 59 * time.Minute},
		"not Ready, and starts": {func(w *world, n *cluster.Node) { unwell(w, n, 2*time.Hour); n.Created = w.s.Now }, "", "", 0},
		"a condition":           {func(w *world, n *cluster.Node) { conditions(w, n, time.Hour) }, decision.RuleSick, "it is sick: condition Disk since 2026-01-05T07:00:00Z", 0},
		"the second condition":  {func(w *world, n *cluster.Node) { conditions(w, n, time.Minute, time.Hour) }, decision.RuleSick, "it is sick: condition Kernel since 2026-01-05T07:00:00Z", 59 * time.Minute},
		"a condition with its own time": {func(w *world, n *cluster.Node) {
			conditions(w, n, time.Minute)
			w.p.RepairAfter, w.p.RepairConditions[0].After = 0, time.Minute
		}, decision.RuleSick, "it is sick: condition Disk since 2026-01-05T07:59:00Z", 0},
		"with its own, longer time": {func(w *world, n *cluster.Node) {
			conditions(w, n, time.Hour)
			w.p.RepairConditions[0].After = 2 * time.Hour
		}, "", "", time.Hour},
		"one with its own time, and another one": {func(w *world, n *cluster.Node) {
			conditions(w, n, time.Minute, 24*time.Hour)
			w.p.RepairAfter, w.p.RepairConditions[0].After = 0, time.Hour
		}, "", "", 59 * time.Minute},
		"not Ready, with its own time": {func(w *world, n *cluster.Node) {
			unwell(w, n, 10*time.Minute)
			w.p.RepairAfter, w.p.RepairConditions = 0, cluster.RepairConditions{{Type: "Ready", Status: cluster.StatusFalse, After: 10 * time.Minute}}
		}, decision.RuleSick, "it is sick: not Ready since 2026-01-05T07:50:00Z", 0},
		"not known to be Ready, where only False has a time": {func(w *world, n *cluster.Node) {
			unwell(w, n, time.Hour)
			n.Ready = cluster.StatusUnknown
			w.p.RepairAfter, w.p.RepairConditions = 0, cluster.RepairConditions{{Type: "Ready", Status: cluster.StatusFalse, After: 10 * time.Minute}}
		}, "", "", 0},
		"with its own time, of a group without repair": {func(w *world, n *cluster.Node) {
			conditions(w, n, time.Hour)
			w.p.RepairConditions[0].After, w.g().Options.RepairAfter = time.Minute, new(time.Duration(0))
		}, "", "", 0},
		"a condition, not yet":                              {func(w *world, n *cluster.Node) { conditions(w, n, time.Minute) }, "", "", 59 * time.Minute},
		"a condition of one that is not Ready for a moment": {func(w *world, n *cluster.Node) { unwell(w, n, time.Minute); conditions(w, n, time.Hour) }, decision.RuleSick, "it is sick: condition Disk since 2026-01-05T07:00:00Z", 59 * time.Minute},
		"a condition while it starts": {func(w *world, n *cluster.Node) {
			conditions(w, n, time.Hour)
			n.Created, n.Ready = w.s.Now, cluster.StatusFalse
		}, decision.RuleSick, "", 0},
		"too old":               {func(w *world, _ *cluster.Node) { w.p.MaxNodeAge = time.Hour }, decision.RuleExpired, "it is expired: it joined at 2026-01-04T08:00:00Z, and its time was over at 2026-01-04T08:55:08Z", 0},
		"too old, in its group": {func(w *world, _ *cluster.Node) { w.g().Options.MaxNodeAge = new(time.Hour) }, decision.RuleExpired, "", 0},
		"young":                 {func(w *world, n *cluster.Node) { w.p.MaxNodeAge = 100 * time.Hour }, "", "", 67*time.Hour + 53*time.Minute + 38*time.Second},
	} {
		w := drifted(2)
		w.p.Drift = false
		n := w.s.Nodes[0]
		c.change(w, n)
		d := w.begin()
		d.Plan.Wake = time.Time{}
		got := d.Reason(0)
		if again := d.Reason(0); got.Rule != c.want || c.why != "" && got.Why != c.why || again != got {
			t.Errorf("%s: %v, then %v", name, got, again)
		}
		if wake := d.Plan.Wake; wake.IsZero() != (c.wake == 0) || c.wake > 0 && wake != w.s.Now.Add(c.wake) {
			t.Errorf("%s: looked at again at %s", name, wake)
		}
	}
}

// TestDearBesideNothing: a dear node goes in a group of which no node is replaced otherwise.
func TestDearBesideNothing(t *testing.T) {
	w := old(3)
	w.p.MaxNodeAge = 0
	w.dear(time.Minute)
	w.join(w.g(), "x", time.Second, "")
	d := w.begin()
	if rule, words := d.Hold(0, d.Reason(0)); rule != "" || d.Halted(0) != "" || d.Reason(0).Name != cluster.ReasonDear {
		t.Errorf("%v is held by [%s] %s; %s", d.Reason(0), rule, words, d.Halted(0))
	}
}

// TestReplaces: the rules by which a node is replaced one day, and no other.
func TestReplaces(t *testing.T) {
	for rule, want := range map[string]bool{decision.RuleReplaceNode: true, decision.RuleSick: true, decision.RuleDrifted: true, decision.RuleExpired: true,
		decision.RuleConsolidate: false, decision.RuleUnneeded: false, "": false} {
		if disruption.Replaces(rule) != want {
			t.Errorf("%s: %v", rule, !want)
		}
	}
}

// TestIdleAndUnready: while too many nodes are not Ready, one that is not Ready does not go for being idle either, where such nodes
// are replaced.
func TestIdleAndUnready(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		want   bool
	}{
		"three of three":         {func(*world) {}, true},
		"nothing is repaired":    {func(w *world) { w.p.RepairAfter = 0 }, false},
		"it is Ready":            {func(w *world) { w.s.Nodes[0].Ready = cluster.StatusTrue }, false},
		"one of three":           {func(w *world) { w.s.Nodes[1].Ready, w.s.Nodes[2].Ready = cluster.StatusTrue, cluster.StatusTrue }, false},
		"the others start":       {func(w *world) { w.s.Nodes[1].Created, w.s.Nodes[2].Created = w.s.Now, w.s.Now }, false},
		"the others are leaders": {func(w *world) { w.s.Nodes[1].ControlPlane, w.s.Nodes[2].ControlPlane = true, true }, false},
		"the others have a condition": {func(w *world) {
			w.p.RepairConditions = cluster.RepairConditions{{Type: "Disk"}}
			for _, n := range w.s.Nodes[1:] {
				n.Ready, n.Conditions = cluster.StatusTrue, map[string]time.Time{"Disk": w.s.Now}
			}
		}, true},
		"the others have another condition": {func(w *world) {
			w.p.RepairConditions = cluster.RepairConditions{{Type: "Disk"}}
			for _, n := range w.s.Nodes[1:] {
				n.Ready, n.Conditions = cluster.StatusTrue, map[string]time.Time{"Kernel": w.s.Now}
			}
		}, false},
	} {
		w := old(3)
		w.p.RepairAfter = time.Hour
		for _, n := range w.s.Nodes {
			n.Ready = cluster.StatusFalse
		}
		c.change(w)
		if got := w.begin().Breaker(0); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestGivenUpIsForgotten: a node that is gone is not remembered.
func TestGivenUpIsForgotten(t *testing.T) {
	w := old(1)
	w.m.GivenUp = map[cluster.NodeName]time.Time{"w-000": w.s.Now, "w-009": w.s.Now}
	if d := w.begin(); !d.GivenUp("w-000") || d.GivenUp("w-009") {
		t.Errorf("given up: %v", d.State.Next.GivenUp)
	}
}

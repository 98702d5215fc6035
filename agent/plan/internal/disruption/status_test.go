package disruption_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// budgets sets the group's budgets and those of the cluster.
func (w *world) budgets(group, all string) {
	list := cluster.DisruptionBudgets{}
	if list.Decode(group) != nil || w.p.DisruptionBudgets.Decode(all) != nil {
		panic("not budgets: " + group + "; " + all)
	}
	w.g().Options.Budgets = &list
}

// twoReasons is a group with a proven source, in which nodes are drifted and one is expired, under budgets.
func twoReasons(budgets string) func(*world, *cluster.Node) {
	return func(w *world, x *cluster.Node) {
		w.well(x)
		x.Created = w.s.Now.Add(-100 * time.Hour)
		w.p.MaxNodeAge = 99 * time.Hour
		w.budgets(budgets, "")
	}
}

// TestTell: what the command "rollout status" and the page say of a group. It is 08:00.
func TestTell(t *testing.T) {
	digest := cluster.Spec{"image": "new"}.Digest()
	paused := cluster.RolloutOrder{Paused: true, Since: time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC), Reason: "a freeze"}
	const drifted09 = "no disruption budget of group workers for drifted nodes holds now; the next one does at 2026-01-05T09:00:00Z"
	const none = "0 of 4 nodes of group workers are disrupted (on their way out, not Ready, or about to be replaced), and its budget is 0"
	for name, c := range map[string]struct {
		change func(w *world, x *cluster.Node)
		want   string
	}{
		"nothing is replaced": {func(w *world, _ *cluster.Node) { w.p.Drift = false }, ""},
		"nothing is known":    {func(w *world, _ *cluster.Node) { w.s.Stale = "no answer" }, ""},
		"first machine":       {func(w *world, x *cluster.Node) { put(x, w.s.Now) }, "trial D30 x: the pods on node x, the first machine of the source, have to be Ready until 2026-01-05T08:02:00Z, 1/4 map[drifted:3] going 0"},
		"none has come":       {func(w *world, _ *cluster.Node) { w.g().Instances[3].Source["image"] = "old" }, "trial D30 : no node of source " + digest + " is there to prove it, 0/4 map[drifted:4] going 0"},
		"proven":              {func(w *world, x *cluster.Node) { w.well(x) }, "rolling  : , 1/4 map[drifted:3] going 0"},
		"one is drained":      {func(w *world, x *cluster.Node) { w.well(x); mark(w.s.Nodes[0]) }, "rolling  : , 1/4 map[drifted:3] going 1"},
		"one is ready":        {func(w *world, _ *cluster.Node) {}, "trial D30 : node x, a machine of source " + digest + ", is Ready, and no pod on it has proven the source yet, 1/4 map[drifted:3] going 0"},
		"halted": {func(w *world, x *cluster.Node) {
			w.halt("workers", digest)
			w.m.Halts[0].Node = "gone"
			w.p.Rollouts = cluster.RolloutOrders{"workers": paused}
		}, "halted D31 : before, since 2026-01-05T07:00:00Z, 1/4 map[drifted:3 sick:1] going 0"},
		"paused":                {func(w *world, x *cluster.Node) { w.p.Rollouts = cluster.RolloutOrders{"workers": paused} }, "paused D34 : the rollout of its group is paused since 2026-01-04T00:00:00Z (a freeze); `autoscaler-agent rollout resume workers` lets it go on, since 2026-01-04T00:00:00Z, 1/4 map[drifted:3] going 0"},
		"paused without a word": {func(w *world, x *cluster.Node) { w.p.Rollouts = cluster.RolloutOrders{"": {Paused: true}} }, "paused D34 : the rollout of its group is paused; `autoscaler-agent rollout resume --all` lets it go on, 1/4 map[drifted:3] going 0"},
		"done": {func(w *world, _ *cluster.Node) {
			w.g().Template.Source = cluster.Spec{"image": "old"}
			w.g().Instances[3].Source["image"] = "old"
		}, "done  : , 4/4 map[] going 0"},
		"done, budgets closed": {func(w *world, _ *cluster.Node) {
			w.g().Template.Source = cluster.Spec{"image": "old"}
			w.g().Instances[3].Source["image"] = "old"
			w.budgets("1 at 0 9 * * * for 1h", "")
		}, "done  : , 4/4 map[] going 0, next 2026-01-05T09:00:00Z"},
		"no drift": {func(w *world, x *cluster.Node) {
			w.p.Drift = false
			w.p.MaxNodeAge = time.Hour
			w.well(x)
			x.Created = w.s.Now
		}, "rolling  : , 0/4 map[expired:3] going 0"},
		"an instance of no size":                {func(w *world, x *cluster.Node) { w.well(x); w.g().Instances[0].Member = false }, "rolling  : , 1/3 map[drifted:2] going 0"},
		"a window":                              {func(w *world, x *cluster.Node) { w.budgets("1 at 0 9 * * * for 1h", "") }, "waiting D29 : " + drifted09 + ", 1/4 map[drifted:3] going 0, next 2026-01-05T09:00:00Z"},
		"a window of the cluster is later":      {func(w *world, x *cluster.Node) { w.budgets("1 at 0 9 * * * for 1h", "1 at 0 10 * * * for 1h") }, "waiting D29 : " + drifted09 + ", 1/4 map[drifted:3] going 0, next 2026-01-05T10:00:00Z"},
		"a closed window beside an open budget": {func(w *world, x *cluster.Node) { w.budgets("2; 3 at 0 22 * * * for 1h", "1 at 0 10 * * * for 1h") }, "waiting D29 : no disruption budget of the cluster for drifted nodes holds now; the next one does at 2026-01-05T10:00:00Z, 1/4 map[drifted:3] going 0, next 2026-01-05T10:00:00Z"},
		"none for some hours":                   {func(w *world, x *cluster.Node) { w.budgets("2; 0 at 0 7 * * * for 3h", "") }, "waiting D29 : " + none + " at 0 7 * * * for 3h0m0s, 1/4 map[drifted:3] going 0, next 2026-01-05T10:00:00Z"},
		"some for some hours":                   {func(w *world, x *cluster.Node) { w.well(x); w.budgets("2; 1 at 0 7 * * * for 3h", "") }, "rolling  : , 1/4 map[drifted:3] going 0"},
		"no node at all":                        {func(w *world, x *cluster.Node) { w.budgets("0", "") }, "waiting D29 : " + none + ", 1/4 map[drifted:3] going 0"},
		"for other reasons":                     {func(w *world, x *cluster.Node) { w.well(x); w.budgets("0 of expired", "0 of expired") }, "rolling  : , 1/4 map[drifted:3] going 0"},
		"for the one reason": {func(w *world, x *cluster.Node) {
			w.p.Drift, w.p.MaxNodeAge = false, time.Hour
			w.well(x)
			w.budgets("0 of expired; 1 of drifted", "")
		}, "waiting D29 : " + none + " of expired, 0/4 map[expired:4] going 0"},
		"for one of two reasons":               {twoReasons("0 of expired; 1 of drifted"), "rolling  : , 1/4 map[drifted:3 expired:1] going 0"},
		"for two reasons, at two times":        {twoReasons("1 of expired at 0 9 * * * for 1h; 1 of drifted at 0 10 * * * for 1h"), "waiting D29 : no disruption budget of group workers for expired nodes holds now; the next one does at 2026-01-05T09:00:00Z, 1/4 map[drifted:3 expired:1] going 0, next 2026-01-05T09:00:00Z"},
		"the first of two reasons opens first": {twoReasons("1 of expired at 0 10 * * * for 1h; 1 of drifted at 0 9 * * * for 1h"), "waiting D29 : no disruption budget of group workers for expired nodes holds now; the next one does at 2026-01-05T10:00:00Z, 1/4 map[drifted:3 expired:1] going 0, next 2026-01-05T09:00:00Z"},
		"one of two reasons has no time":       {twoReasons("0 of expired; 1 of drifted at 0 9 * * * for 1h"), "waiting D29 : " + none + " of expired, 1/4 map[drifted:3 expired:1] going 0, next 2026-01-05T09:00:00Z"},
		"a budget that cannot be read": {func(w *world, x *cluster.Node) {
			w.g().Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 1, Cron: "x"}}
		}, `waiting D29 : a disruption budget of group workers cannot be read: "x" is no schedule: expected exactly 5 fields, found 1: [x]; write for example 0 22 * * mon-fri (minute, hour, day of the month, month, day of the week), 1/4 map[drifted:3] going 0`},
	} {
		w := drifted(3)
		w.p.ReplaceSettleTime = 2 * time.Minute
		x := w.join(w.g(), "x", time.Hour, "new")
		c.change(w, x)
		d := w.begin()
		d.Tell()
		got := ""
		for _, x := range d.Plan.Rollouts {
			got = fmt.Sprintf("%s %s %s: %s", x.State, x.Rule, x.Trial, x.Why)
			if !x.Since.IsZero() {
				got += ", since " + x.Since.Format(time.RFC3339)
			}
			got += fmt.Sprintf(", %d/%d %v going %d", x.Replaced, x.Machines, x.By, x.Going)
			if !x.Next.IsZero() {
				got += ", next " + x.Next.Format(time.RFC3339)
			}
		}
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

// TestTakenBack: a pause takes drains back that are for drift or age, a halt those that are for drift.
func TestTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		halted, paused bool
		rule           string
		want           bool
	}{
		"drifted":         {false, false, decision.RuleDrifted, false},
		"drifted, halted": {true, false, decision.RuleDrifted, true},
		"drifted, paused": {false, true, decision.RuleDrifted, true},
		"expired, halted": {true, false, decision.RuleExpired, false},
		"expired, paused": {false, true, decision.RuleExpired, true},
		"sick":            {true, true, decision.RuleSick, false},
	} {
		w := drifted(1)
		if c.halted {
			w.halt("workers", w.g().Template.Source.Digest())
		}
		if c.paused {
			w.p.Rollouts = paused
		}
		if got := w.begin().TakenBack(0, c.rule); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFormer: what most machines were started from before is known until the source is judged no more, also when none of them is left.
func TestFormer(t *testing.T) {
	w := drifted(3)
	for i, version := range []string{"6", "7", "7"} {
		w.g().Instances[i].Origin = cluster.Origin{Template: "lt-1", Version: version}
	}
	x := w.join(w.g(), "x", time.Minute, "new")
	w.g().Instances[3].Origin = cluster.Origin{Template: "lt-1", Version: "8"}
	for _, after := range []time.Duration{0, time.Minute, 50 * time.Minute, 11 * time.Minute} {
		w.s.Now = w.s.Now.Add(after)
		w.g().ReadAt = w.s.Now
		d := w.begin()
		d.Tell()
		want := cluster.Origin{Template: "lt-1", Version: "7"}
		if after == 11*time.Minute {
			want = cluster.Origin{}
		}
		if got := d.Plan.Rollouts[0].Former; got != want {
			t.Errorf("%s later: %v", after, got)
		}
		w.m = d.State.Next
		w.s.Nodes, w.g().Instances, w.g().Target = []*cluster.Node{x}, w.g().Instances[len(w.g().Instances)-1:], 1
	}
}

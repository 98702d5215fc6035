package disruption_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestOrder asks for machines for some of three nodes, whose pods have no room, and compares what the last one is told.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		nodes  int // that ask
		want   string
		grow   string // the action; empty: none
		empty  bool   // the node is emptied first
	}{
		"a machine is ordered":           {func(*world) {}, 1, "no room: a machine is ordered in its place", "grow workers 3->4 for 0 pods [D28] in place of w-000: it is expired", false},
		"two are":                        {func(*world) {}, 2, "no room: a machine is ordered in its place", "grow workers 3->5 for 0 pods [D28] in place of w-000, w-001", false},
		"one is coming":                  {func(w *world) { w.g().Target++ }, 1, "it waits for a machine of its group that is coming (no room)", "", false},
		"one is coming for two":          {func(w *world) { w.g().Target++ }, 2, "no room: a machine is ordered in its place", "grow workers 4->5 for 0 pods [D28] in place of w-001: it is expired", false},
		"one has come, and is starting":  {func(w *world) { w.join(w.g(), "x", time.Second, "").Ready = cluster.StatusFalse }, 1, "it waits for a machine of its group that is coming (no room)", "", false},
		"one has come":                   {func(w *world) { w.join(w.g(), "x", time.Second, "") }, 1, "a machine of its group has come, and no room", "", false},
		"one has come, and has pods":     {func(w *world) { put(w.join(w.g(), "x", time.Second, ""), w.s.Now) }, 1, "a machine is ordered", "grow workers 4->5", false},
		"it has a DaemonSet's":           {func(w *world) { put(w.join(w.g(), "x", time.Second, ""), w.s.Now).Owner.Kind = "DaemonSet" }, 1, "has come, and", "", false},
		"one has come, and is cordoned":  {func(w *world) { w.join(w.g(), "x", time.Second, "").Unschedulable = true }, 1, "a machine is ordered", "grow workers 4->5", false},
		"one has come to another group":  {func(w *world) { w.join(w.other("b"), "x", time.Second, "") }, 1, "a machine is ordered", "grow workers 3->4", false},
		"one has come long ago, in vain": {func(w *world) { w.join(w.g(), "x", 30*time.Minute, "") }, 1, "machines of its group are empty, and no room: it is tried again at 2026-01-05T09:00:00Z", "", false},
		"its group had more time": {func(w *world) {
			w.join(w.g(), "x", 30*time.Minute, "")
			w.g().Options.MaxNodeStartupTime = new(time.Hour)
		}, 1, "has come, and no room", "", false},
		"the node is dear":              {func(w *world) { w.dear(time.Minute); w.join(w.g(), "x", time.Second, "") }, 1, "it is dear: 1 machine of group workers can replace w-000, w-001; no room", "", false},
		"the machine is for dear nodes": {func(w *world) { w.g().Target++; w.dear(time.Minute, "w-001", "w-002") }, 1, "a machine is ordered", "grow workers 4->5 ", false},
		"it has come":                   {func(w *world) { w.join(w.g(), "x", time.Second, ""); w.dear(time.Minute, "w-001", "w-002") }, 1, "a machine is ordered", "grow workers 4->5 ", false},
		"one of two is for dear nodes":  {func(w *world) { w.g().Target += 2; w.dear(time.Minute, "w-001", "w-002") }, 1, "it waits for a machine", "", false},
		"the rollout is halted": {func(w *world) {
			w.g().Template.Source = cluster.Spec{"image": "new"}
			w.m.Halts = []decision.Halt{{Group: "workers", Source: w.g().Template.Source.Digest(), Why: "x"}}
		}, 1, "no machine is ordered in its place while the rollout of its group is halted", "", false},
		"the group is full":                             {func(w *world) { w.g().Max = 3 }, 1, "no machine can be ordered in its place: the group is held or full [U7] at its maximum of 3", "", false},
		"full for the second":                           {func(w *world) { w.g().Max, w.p.ReplaceAtMax = 4, "empty-first" }, 2, "held or full", "grow workers 3->4", false},
		"full, and nodes are emptied first":             {func(w *world) { w.g().Max, w.p.ReplaceAtMax = 3, "empty-first" }, 1, "", "", true},
		"the cluster is full, and nodes are emptied":    {func(w *world) { w.p.MaxNodesTotal, w.p.ReplaceAtMax = 3, "empty-first" }, 1, "", "", true},
		"held after a failure, and nodes are emptied":   {func(w *world) { w.p.ReplaceAtMax = "empty-first"; w.refused("workers", 0) }, 1, "held or full", "", false},
		"full at the minimum":                           {func(w *world) { w.g().Max, w.g().Min, w.p.ReplaceAtMax = 3, 3, "empty-first" }, 1, "held or full", "", false},
		"room for one, and nodes are emptied when full": {func(w *world) { w.g().Max, w.p.ReplaceAtMax = 4, "empty-first" }, 1, "a machine is ordered", "grow workers 3->4 ", false},
	} {
		w := old(3)
		c.change(w)
		d := w.begin()
		empty := false
		for i := range c.nodes {
			empty = d.Order(i, "no room", func() bool { return true })
		}
		d.Grow()
		grown := ""
		for _, a := range d.Plan.Actions {
			grown = a.String()
		}
		got := held(d, fmt.Sprintf("w-%03d", c.nodes-1))
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || empty != c.empty || !strings.HasPrefix(grown, c.grow) || (c.grow == "") != (grown == "") {
			t.Errorf("%s: %q, emptied first %v, %q", name, got, empty, grown)
		}
		if waits := strings.Contains(got, "is ordered in its place") && !strings.Contains(got, "halted") || strings.Contains(got, "it waits for") || strings.Contains(got, "has come, and"); d.Waits(c.nodes-1) != waits {
			t.Errorf("%s: it waits for a machine: %v", name, d.Waits(c.nodes-1))
		}
	}
}

// TestOrderIsHeld: nothing is ordered where a new machine would not help, and while the group shrinks.
func TestOrderIsHeld(t *testing.T) {
	d := old(3).begin()
	d.Order(0, "no room", func() bool { return false })
	d.Order(1, "at the minimum", nil)
	if d.Grow(); !strings.Contains(held(d, "w-000"), "would not have room for its pods either") || len(d.Plan.Actions) != 1 || !strings.HasPrefix(d.Plan.Actions[0].String(), "grow workers 3->4") {
		t.Errorf("%s; %v", held(d, "w-000"), d.Plan.Actions)
	}
	w := old(3)
	d = w.begin()
	d.Groups[0].Shrinks = true
	d.Order(0, "no room", nil)
	if d.Grow(); !strings.Contains(held(d, "w-000"), "when no other change of the group is under way") || len(d.Plan.Actions) > 0 || d.Plan.Wake != w.s.Now.Add(time.Second) {
		t.Errorf("a node of the group goes: %s, %v, wake at %s", held(d, "w-000"), d.Plan.Actions, d.Plan.Wake)
	}
}

// TestConsolidationGoesOn says which nodes of a consolidation still go in the next round.
func TestConsolidationGoesOn(t *testing.T) {
	const both, over = "w-000 w-001", "w-000 [D21] its replacement is given up: its time was over at 2026-01-05T08:00:00Z; w-001 [D21] its replacement is given up: its time was over at 2026-01-05T08:00:00Z"
	const refused = "w-000 [D21] its replacement is given up: no machine of group workers came: backed off until 2026-01-05T09:00:00Z (capacity): full; w-001 [D21] its replacement is given up: no machine of group workers came: backed off until 2026-01-05T09:00:00Z (capacity): full"
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"it was ordered":               {func(w *world) { w.dear(time.Minute) }, both},
		"no machine was to be ordered": {func(w *world) { w.dear(time.Minute).Machines = 0 }, both},
		"a node is gone":               {func(w *world) { w.dear(time.Minute, "w-000", "w-009") }, "w-000"},
		"a machine is ended":           {func(w *world) { w.dear(time.Minute); w.m.Deleted = map[cluster.InstanceID]time.Time{"i-000": w.s.Now} }, "w-001"},
		"consolidation is off":         {func(w *world) { w.dear(time.Minute); w.p.ScaleDown = false }, ""},
		"its time":                     {func(w *world) { w.dear(30*time.Minute - time.Second) }, both},
		"is over":                      {func(w *world) { w.dear(30 * time.Minute) }, over},
		"its group is not told": {func(w *world) {
			w.dear(29 * time.Minute).Group = "b"
			w.g().Options.MaxNodeStartupTime = new(time.Minute)
		}, both},
		"a drain":                    {func(w *world) { w.dear(time.Minute); put(w.s.Nodes[0], w.s.Now); mark(w.s.Nodes[0]) }, both},
		"has an end":                 {func(w *world) { w.dear(30 * time.Minute); mark(w.s.Nodes[0]) }, "w-001 [D21] its replacement is given up: its time was over at 2026-01-05T08:00:00Z"},
		"a machine that was refused": {func(w *world) { w.dear(time.Minute); w.refused("workers", 0) }, refused},
		"one that is coming all the same": {func(w *world) {
			w.dear(time.Minute)
			w.join(w.g(), "x", time.Second, "").Ready = cluster.StatusFalse
			w.refused("workers", 0)
		}, both},
		"of another group by the cloud":       {func(w *world) { w.dear(time.Minute); w.other("b"); w.refused("b", 0) }, both},
		"beside one that came":                {func(w *world) { w.dear(time.Minute); w.join(w.g(), "x", time.Second, ""); w.refused("workers", 0) }, both},
		"a pod has come":                      {func(w *world) { w.dear(time.Minute); put(w.s.Nodes[0], w.s.Now.Add(-59*time.Minute)) }, "w-001; w-000 [D21] its replacement is given up: pod default/w-000-0 has come to it meanwhile"},
		"a pod has been there":                {func(w *world) { w.dear(time.Minute); put(w.s.Nodes[0], w.s.Now.Add(-time.Hour)) }, both},
		"the cluster is told no more":         {func(w *world) { w.s.Stale = "no answer"; w.dear(time.Hour) }, both},
		"it is thought of, and not under way": {func(w *world) { w.dear(0).Ordered = time.Time{} }, ""},
	} {
		w := old(3)
		c.change(w)
		d := w.begin()
		got := []string{}
		if c := d.State.Next.Consolidation; c != nil {
			for _, n := range c.Nodes {
				got = append(got, string(n))
			}
		}
		text := strings.Join(got, " ")
		for _, node := range slices.Sorted(maps.Keys(d.State.Next.GivenUp)) {
			text = strings.TrimPrefix(text+"; "+string(node)+" "+held(d, string(node)), "; ")
		}
		if text != c.want {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// TestStaysFor: a machine that has just come is not idle while nodes of its group are to be replaced.
func TestStaysFor(t *testing.T) {
	started := func(w *world, now string, machines ...string) {
		w.g().Template.Source = cluster.Spec{"image": now}
		for i, image := range machines {
			w.g().Instances[i].Source = cluster.Spec{"image": image}
		}
	}
	const kept = "it has just come, and node w-000 of its group is to be replaced"
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"nodes are to be replaced": {func(*world) {}, kept},
		"none is":                  {func(w *world) { w.p.MaxNodeAge = 0 }, ""},
		"all are on their way out": {func(w *world) {
			for _, n := range w.s.Nodes[:3] {
				mark(n)
			}
		}, ""},
		"all are given up": {func(w *world) {
			w.m.GivenUp = map[cluster.NodeName]time.Time{"w-000": w.s.Now, "w-001": w.s.Now, "w-002": w.s.Now}
		}, ""},
		"the rollout is paused": {func(w *world) { w.p.Rollouts = paused }, ""},
		"it came long ago":      {func(w *world) { w.s.Nodes[3].Created = w.s.Now.Add(-30 * time.Minute) }, ""},
		"a pod is on it":        {func(w *world) { put(w.s.Nodes[3], w.s.Now) }, ""},
		"a pod is on it, and a node is drained for its source": {func(w *world) {
			put(w.s.Nodes[3], w.s.Now)
			started(w, "new", "old", "old", "old", "new")
			mark(w.s.Nodes[1])
		}, "nodes of its group are being drained for its source, and node w-000 of its group is to be replaced"},
		"and it is of another source": {func(w *world) {
			put(w.s.Nodes[3], w.s.Now)
			started(w, "new", "old", "old", "old", "old")
			mark(w.s.Nodes[1])
		}, ""},
		"a consolidation ordered it": {func(w *world) { w.p.MaxNodeAge = 0; w.dear(time.Minute) }, "it has come for a consolidation: 1 machine of group workers can replace w-000, w-001"},
		"and it has pods":            {func(w *world) { w.p.MaxNodeAge = 0; w.dear(time.Minute); put(w.s.Nodes[3], w.s.Now) }, "it has come for a consolidation: 1 machine of group workers can replace w-000, w-001"},
		"or another one long before": {func(w *world) { w.p.MaxNodeAge = 0; w.dear(0); w.s.Nodes[3].Created = w.s.Now.Add(-30 * time.Minute) }, ""},
		"for another group":          {func(w *world) { w.p.MaxNodeAge = 0; w.dear(time.Minute).Group = "b" }, ""},
	} {
		w := old(3)
		w.join(w.g(), "x", 2*time.Second, "")
		c.change(w)
		d := w.begin()
		if got := d.StaysFor(d.ByName["x"]); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestMachinesOfAConsolidation: those that have neither come nor are coming are asked for, however often the cloud refused that.
func TestMachinesOfAConsolidation(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"none is coming": {func(*world) {}, "grow workers 3->5 for 0 pods [D21] 2 machines of group workers can replace w-000, w-001"},
		"one is coming":  {func(w *world) { w.g().Target++ }, "grow workers 4->5 for 0 pods [D21]"},
		"one has come":   {func(w *world) { w.join(w.g(), "x", time.Second, "") }, "grow workers 4->5 for 0 pods [D21]"},
		"and is not Ready for now": {func(w *world) {
			n := w.join(w.g(), "x", time.Minute, "")
			n.Ready, n.ReadySince = cluster.StatusUnknown, w.s.Now
		}, "grow workers 4->5 for 0 pods [D21]"},
		"and somebody ends it":      {func(w *world) { w.join(w.g(), "x", time.Minute, "").Deleting = true }, "grow workers 4->6"},
		"both are coming":           {func(w *world) { w.g().Target += 2 }, ""},
		"both came, and have pods":  {func(w *world) { w.m.Consolidation.Came = true }, ""},
		"there is none to be had":   {func(w *world) { w.m.Consolidation.Machines = 0 }, ""},
		"the group is at its most":  {func(w *world) { w.g().Max = 4 }, "grow workers 3->4 for 0 pods [D21]"},
		"a rollout needs one too":   {func(w *world) { w.p.MaxNodeAge = time.Hour }, "grow workers 3->5 for 0 pods [D28] in place of w-002"},
		"its group is not told":     {func(w *world) { w.m.Consolidation.Group = "b" }, ""},
		"the cloud gives none now":  {func(w *world) { w.refused("workers", 0) }, ""},
		"an earlier step has grown": {func(*world) {}, ""},
		"the group shrinks":         {func(*world) {}, ""},
		"the group is full":         {func(w *world) { w.g().Max = 3 }, ""},
		"deletions are frozen": {func(w *world) {
			w.p.OKTotalUnready = 0
			for _, n := range w.s.Nodes[:3] {
				n.Ready = cluster.StatusFalse
			}
		}, ""},
	} {
		w := old(3)
		w.p.MaxNodeAge = 0
		w.dear(time.Minute).Machines = 2
		c.change(w)
		d := w.begin()
		d.Grew, d.Groups[0].Shrinks = name == "an earlier step has grown", name == "the group shrinks"
		if w.p.MaxNodeAge > 0 {
			d.Order(2, "no room", func() bool { return true })
		}
		d.Grow()
		grown := ""
		for _, a := range d.Plan.Actions {
			grown = a.String()
		}
		if !strings.HasPrefix(grown, c.want) || (c.want == "") != (grown == "") {
			t.Errorf("%s: %q", name, grown)
		}
		if given := d.GivenUp("w-000"); given != (name == "the cloud gives none now") || given == d.State.Next.Consolidation.Has("w-000") {
			t.Errorf("%s: given up %v, %v", name, given, d.State.Next.Consolidation)
		}
	}
}

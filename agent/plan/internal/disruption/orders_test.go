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
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/disruption"
)

// world is what a round is about.
type world struct {
	s cluster.Snapshot
	m decision.Memory
	p decision.Policy
}

// g is the group of fleet.
func (w *world) g() *cluster.NodeGroup { return &w.s.Groups[0] }

// old is a fleet whose machines are too old, of a group whose source is not told, so that no first machine has to prove itself.
func old(n int) *world {
	w := &world{}
	w.s, w.p = fleet(n)
	w.s.Classes = []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{Pods: 1}}}
	w.p.MaxNodeAge, w.p.OKTotalUnready = time.Hour, 1000
	w.g().Template.Source = nil
	w.g().Options.Budgets = &cluster.DisruptionBudgets{{Nodes: 100, Percent: true}}
	return w
}

// drifted is a fleet whose machines are to be replaced by those of another source.
func drifted(n int) *world {
	w := old(n)
	w.p.MaxNodeAge, w.p.Drift = 0, true
	w.g().Template.Source = cluster.Spec{"image": "new"}
	return w
}

// other adds a group without machines.
func (w *world) other(name cluster.GroupID) *cluster.NodeGroup {
	g := *w.g()
	g.ID, g.Instances, g.Target = name, nil, 0
	w.s.Groups = append(w.s.Groups, g)
	return &w.s.Groups[len(w.s.Groups)-1]
}

// join adds a Ready node of a group.
func (w *world) join(g *cluster.NodeGroup, name cluster.NodeName, age time.Duration, source string) *cluster.Node {
	n := &cluster.Node{Name: name, ProviderID: "i-" + string(name), Ready: cluster.StatusTrue, Created: w.s.Now.Add(-age), Capacity: g.Template.Capacity, Allocatable: g.Template.Allocatable}
	w.s.Nodes = append(w.s.Nodes, n)
	g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID(n.ProviderID), Member: true, Phase: cluster.PhaseRunning, Created: n.Created, Source: cluster.Spec{"image": source}})
	g.Target++
	return n
}

// mark cordons a node as the agent does.
func mark(n *cluster.Node) {
	n.Unschedulable = true
	n.Taints = append(n.Taints, cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"})
	n.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
}

// ordered notes that a machine was ordered in place of a node.
func (w *world) ordered(node cluster.NodeName, rule string, ago time.Duration) *decision.Replacement {
	x := decision.Replacement{Node: node, Group: w.g().ID, Rule: rule, Ordered: w.s.Now.Add(-ago)}
	if rule == decision.RuleConsolidate {
		x.Machines = 1
	}
	w.m.Replacements = append(w.m.Replacements, x)
	return &w.m.Replacements[len(w.m.Replacements)-1]
}

// dear notes that one machine was ordered in place of two nodes, to save money.
func (w *world) dear(ago time.Duration, nodes ...cluster.NodeName) {
	if len(nodes) == 0 {
		nodes = []cluster.NodeName{"w-000", "w-001"}
	}
	w.p.ScaleDown, w.p.Consolidate = true, decision.ConsolidateAlways
	for _, name := range nodes {
		w.ordered(name, decision.RuleConsolidate, ago)
	}
}

// refused notes that the cloud had no machine for a group.
func (w *world) refused(group cluster.GroupID, ago time.Duration) {
	w.m.Backoff = append(w.m.Backoff, decision.Backoff{Group: group, Cause: cluster.CauseCapacity, Last: w.s.Now.Add(-ago), Until: w.s.Now.Add(time.Hour), Text: "full"})
}

func (w *world) begin() *disruption.Round { return begun(&w.s, &w.m, &w.p) }

// held are the words about a node or a group.
func held(d *disruption.Round, name string) string {
	var out []string
	for _, h := range d.Plan.Held {
		if h.Name == name {
			out = append(out, "["+h.Rule+"] "+h.Why)
		}
	}
	return strings.Join(out, "; ")
}

// orders lists the orders that are remembered.
func orders(d *disruption.Round) string {
	out := []string{}
	for _, x := range d.State.Next.Replacements {
		out = append(out, fmt.Sprintf("%s %s", x.Node, x.Rule))
	}
	return strings.Join(out, ", ")
}

// TestOrder asks for a machine in place of the first of three nodes.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
		grow   string // the action; empty: none
		empty  bool   // the node is emptied first
	}{
		"a machine is ordered":     {func(*world) {}, "no room: a machine is ordered in its place", "grow workers 3->4 for 0 pods [D28] in place of w-000: it is expired", false},
		"it was, and has not come": {func(w *world) { w.ordered("w-000", decision.RuleExpired, time.Minute) }, "it waits for the machine that was ordered in its place at 2026-01-05T07:59:00Z", "", false},
		"it was, and has come": {func(w *world) {
			w.ordered("w-000", decision.RuleExpired, time.Minute)
			w.join(w.g(), "x", time.Second, "")
		}, "has come, and no room", "", false},
		"a machine of another group has come": {func(w *world) {
			w.ordered("w-000", decision.RuleExpired, time.Minute)
			w.join(w.other("b"), "x", time.Second, "")
		}, "it waits for the machine that was ordered", "", false},
		"a leader has come": {func(w *world) {
			w.ordered("w-000", decision.RuleExpired, time.Minute)
			w.join(w.g(), "x", time.Second, "").ControlPlane = true
		}, "it waits for the machine that was ordered", "", false},
		"a machine has come that is not Ready": {func(w *world) {
			w.ordered("w-000", decision.RuleExpired, time.Minute)
			w.join(w.g(), "x", time.Second, "").Ready = cluster.StatusFalse
		}, "it waits for the machine that was ordered", "", false},
		"the last machine came right before the order": {func(w *world) {
			w.ordered("w-000", decision.RuleExpired, time.Minute)
			w.join(w.g(), "x", 61*time.Second, "")
		}, "it waits for the machine that was ordered", "", false},
		"a machine came in the second of the order": {func(w *world) {
			w.ordered("w-000", decision.RuleExpired, 59*time.Second+time.Millisecond)
			w.join(w.g(), "x", time.Minute, "")
		}, "has come, and", "", false},
		"it was, and did not help": {func(w *world) { w.ordered("w-000", decision.RuleExpired, 30*time.Minute) }, "did not help (no room); another one may be ordered at 2026-01-05T08:15:00Z", "", false},
		"it had more time in its group": {func(w *world) {
			w.ordered("w-000", decision.RuleExpired, 30*time.Minute)
			w.g().Options.MaxNodeStartupTime = new(time.Hour)
		}, "it waits for the machine", "", false},
		"it was, long ago":                           {func(w *world) { w.ordered("w-000", decision.RuleExpired, 45*time.Minute) }, "no room: a machine is ordered", "grow workers 3->4 ", false},
		"the node is dear, and its machine has come": {func(w *world) { w.dear(time.Minute); w.join(w.g(), "x", time.Second, "") }, "it is dear: 1 machine of group workers can replace w-000, w-001; no room", "", false},
		"the rollout is halted": {func(w *world) {
			w.g().Template.Source = cluster.Spec{"image": "new"}
			w.m.Halts = []decision.Halt{{Group: "workers", Source: w.g().Template.Source.Digest(), Why: "x"}}
		}, "no machine is ordered in its place while the rollout of its group is halted", "", false},
		"a machine is coming":                  {func(w *world) { w.g().Target++ }, "it waits for a machine of its group that is coming (no room)", "", false},
		"a machine has come that is starting":  {func(w *world) { w.join(w.g(), "x", time.Second, "").Ready = cluster.StatusFalse }, "it waits for a machine of its group that is coming (no room)", "", false},
		"another node was ordered the machine": {func(w *world) { w.g().Target++; w.ordered("w-001", decision.RuleExpired, time.Minute) }, "a machine is ordered", "grow workers 4->5 ", false},
		"another node has got its machine": {func(w *world) {
			w.g().Target++
			w.ordered("w-001", decision.RuleExpired, time.Minute)
			w.join(w.g(), "x", time.Second, "")
		}, "it waits for a machine of its group that is coming", "", false},
		"the machine of a node of another group": {func(w *world) {
			w.g().Target++
			w.join(w.other("b"), "y", 24*time.Hour, "")
			w.ordered("y", decision.RuleExpired, time.Minute).Group = "b"
		}, "it waits for a machine of its group that is coming", "", false},
		"one of two machines is for two dear nodes": {func(w *world) {
			w.g().Target += 2
			w.dear(time.Minute, "w-001", "w-002")
		}, "it waits for a machine of its group that is coming", "", false},
		"the machine is for two dear nodes": {func(w *world) {
			w.g().Target++
			w.dear(time.Minute, "w-001", "w-002")
		}, "a machine is ordered", "grow workers 4->5 ", false},
		"two machines are for two dear nodes": {func(w *world) {
			w.g().Target += 2
			w.dear(time.Minute, "w-001", "w-002")
			w.m.Replacements[0].Machines, w.m.Replacements[1].Machines = 2, 2
		}, "a machine is ordered", "grow workers 5->6 ", false},
		"the group is full":                             {func(w *world) { w.g().Max = 3 }, "no machine can be ordered in its place: the group is held or full [U7] at its maximum of 3", "", false},
		"full, and nodes are emptied first":             {func(w *world) { w.g().Max, w.p.ReplaceAtMax = 3, "empty-first" }, "", "", true},
		"the cluster is full, and nodes are emptied":    {func(w *world) { w.p.MaxNodesTotal, w.p.ReplaceAtMax = 3, "empty-first" }, "", "", true},
		"held after a failure, and nodes are emptied":   {func(w *world) { w.p.ReplaceAtMax = "empty-first"; w.refused("workers", 0) }, "held or full", "", false},
		"full at the minimum":                           {func(w *world) { w.g().Max, w.g().Min, w.p.ReplaceAtMax = 3, 3, "empty-first" }, "held or full", "", false},
		"room for one, and nodes are emptied when full": {func(w *world) { w.g().Max, w.p.ReplaceAtMax = 4, "empty-first" }, "a machine is ordered", "grow workers 3->4 ", false},
	} {
		w := old(3)
		c.change(w)
		d := w.begin()
		empty := d.Order(d.ByName["w-000"], "no room")
		d.Grow()
		grown := ""
		for _, a := range d.Plan.Actions {
			grown = a.String()
		}
		if got := held(d, "w-000"); !strings.Contains(got, c.want) || c.want == "" && got != "" || empty != c.empty || !strings.HasPrefix(grown, c.grow) || (c.grow == "") != (grown == "") {
			t.Errorf("%s: %q, emptied first %v, %q", name, got, empty, grown)
		}
		if c.grow != "" && !strings.Contains(orders(d), "w-000 "+decision.RuleExpired) {
			t.Errorf("%s: not remembered: %s", name, orders(d))
		}
	}
}

// TestGrow orders machines for two nodes of one group, which has room for one or for both.
func TestGrow(t *testing.T) {
	for most, want := range map[int]string{
		9: "grow workers 3->5 for 0 pods [D28] in place of w-000, w-002; w-000 D26, w-002 D26",
		4: "grow workers 3->4 for 0 pods [D28] in place of w-002: it is expired: ; w-002 D26",
	} {
		w := old(3)
		w.g().Max, w.p.ReplaceAtMax = most, "empty-first"
		d := w.begin()
		for _, i := range []int{2, 0} {
			if d.Order(i, "no room") {
				t.Errorf("at most %d: node %d is emptied in a group that grows", most, i)
			}
		}
		if d.Ordered(0) == strings.Contains(held(d, "w-000"), "held or full") {
			t.Errorf("at most %d: %s", most, held(d, "w-000"))
		}
		d.Grow()
		got := ""
		for _, a := range d.Plan.Actions {
			said, _, _ := strings.Cut(a.String(), "it joined")
			got += said + "; "
		}
		if got += orders(d); got != want {
			t.Errorf("at most %d: %s", most, got)
		}
	}
	w := old(3)
	d := w.begin()
	d.Groups[0].Shrinks = true
	d.Order(0, "no room")
	if d.Grow(); !strings.Contains(held(d, "w-000"), "when no other change of the group is under way") || len(d.Plan.Actions) > 0 || d.Plan.Wake != w.s.Now.Add(time.Second) {
		t.Errorf("a node of the group goes: %s, %v, wake at %s", held(d, "w-000"), d.Plan.Actions, d.Plan.Wake)
	}
}

// TestOrderStands says which orders outlive a round.
func TestOrderStands(t *testing.T) {
	aged := func(age time.Duration) func(*world) {
		return func(w *world) { w.ordered("w-000", decision.RuleExpired, age) }
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"an order":                           {aged(time.Minute), "w-000 D26"},
		"of a node that is gone":             {func(w *world) { w.ordered("w-009", decision.RuleExpired, time.Minute) }, ""},
		"of a node whose machine is ended":   {func(w *world) { aged(time.Minute)(w); w.m.Deleted = map[cluster.InstanceID]time.Time{"i-000": w.s.Now} }, ""},
		"of a node that the cloud lists not": {func(w *world) { aged(time.Minute)(w); w.g().Instances = w.g().Instances[1:] }, "w-000 D26"},
		"of a group that is not told":        {func(w *world) { w.ordered("w-000", decision.RuleExpired, time.Minute).Group = "b" }, ""},
		"of another group":                   {func(w *world) { w.other("b"); w.ordered("w-000", decision.RuleExpired, time.Minute).Group = "b" }, ""},
		"nothing asks for it any more":       {func(w *world) { aged(time.Minute)(w); w.p.MaxNodeAge = 0 }, ""},
		"its time and its patience":          {aged(45*time.Minute - time.Second), "w-000 D26"},
		"are over":                           {aged(45 * time.Minute), ""},
		"a dear node":                        {func(w *world) { w.dear(time.Minute) }, "w-000 D21, w-001 D21"},
		"consolidation is off":               {func(w *world) { w.dear(time.Minute); w.p.ScaleDown = false }, ""},
		"its time":                           {func(w *world) { w.dear(30*time.Minute - time.Second) }, "w-000 D21, w-001 D21"},
		"is over":                            {func(w *world) { w.dear(30 * time.Minute) }, "; w-000 [D21] its replacement is given up: its time was over at 2026-01-05T08:00:00Z; w-001 [D21] its replacement is given up: its time was over at 2026-01-05T08:00:00Z"},
		"its group is not told, which has the time of the settings": {func(w *world) {
			w.dear(29 * time.Minute)
			w.g().Options.MaxNodeStartupTime = new(time.Minute)
			w.m.Replacements[0].Group, w.m.Replacements[1].Group = "b", "b"
		}, "w-000 D21, w-001 D21"},
		"a drain of a dear node": {func(w *world) { w.dear(time.Minute); put(w.s.Nodes[0], w.s.Now); mark(w.s.Nodes[0]) }, "w-000 D21, w-001 D21"},
		"has an end":             {func(w *world) { w.dear(30 * time.Minute); mark(w.s.Nodes[0]) }, "; w-001 [D21] its replacement is given up: its time was over at 2026-01-05T08:00:00Z"},
		"a machine that was refused": {func(w *world) {
			w.dear(time.Minute)
			w.refused("workers", 0)
		}, "; w-000 [D21] its replacement is given up: no machine of group workers came: full; w-001 [D21] its replacement is given up: no machine of group workers came: full"},
		"before the order": {func(w *world) {
			w.dear(time.Minute)
			w.refused("workers", time.Minute)
		}, "w-000 D21, w-001 D21"},
		"of another group by the cloud": {func(w *world) {
			w.dear(time.Minute)
			w.other("b")
			w.refused("b", 0)
		}, "w-000 D21, w-001 D21"},
		"beside one that came": {func(w *world) {
			w.dear(time.Minute)
			w.join(w.g(), "x", time.Second, "")
			w.refused("workers", 0)
		}, "w-000 D21, w-001 D21"},
		"a pod has come":              {func(w *world) { w.dear(time.Minute); put(w.s.Nodes[0], w.s.Now.Add(-59*time.Minute)) }, "w-001 D21; w-000 [D21] its replacement is given up: pod default/w-000-0 has come to it meanwhile"},
		"a pod has been there":        {func(w *world) { w.dear(time.Minute); put(w.s.Nodes[0], w.s.Now.Add(-time.Hour)) }, "w-000 D21, w-001 D21"},
		"the cluster is told no more": {func(w *world) { w.s.Stale = "no answer"; w.ordered("w-009", decision.RuleExpired, time.Hour) }, "w-009 D26"},
	} {
		w := old(3)
		c.change(w)
		d := w.begin()
		got := orders(d)
		for _, node := range slices.Sorted(maps.Keys(d.State.Next.GivenUp)) {
			got += fmt.Sprintf("; %s %s", node, held(d, string(node)))
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// put puts a pod on a node.
func put(n *cluster.Node, made time.Time) *cluster.Pod {
	n.Pods = append(n.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/%s-%d", n.Name, len(n.Pods))), Node: n.Name, Created: cluster.At(made), Owner: &cluster.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}})
	return &n.Pods[len(n.Pods)-1]
}

// TestCordoned: a node that is cordoned without an order takes over that of another node of its group whose machine has come.
func TestCordoned(t *testing.T) {
	came := func(w *world) {
		w.ordered("w-001", decision.RuleExpired, time.Minute)
		w.join(w.g(), "x", time.Second, "")
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"nothing is ordered":           {func(*world) {}, ""},
		"the machine has come":         {came, "w-000 D26"},
		"it has not":                   {func(w *world) { w.ordered("w-001", decision.RuleExpired, time.Minute) }, "w-001 D26"},
		"it has a new order itself":    {func(w *world) { w.ordered("w-000", decision.RuleExpired, 0); came(w) }, "w-000 D26, w-001 D26"},
		"the node has an order itself": {func(w *world) { w.ordered("w-000", decision.RuleExpired, time.Minute); came(w) }, "w-000 D26, w-001 D26"},
		"the other is drained":         {func(w *world) { came(w); mark(w.s.Nodes[1]) }, "w-001 D26"},
		"the other is dear":            {func(w *world) { w.dear(time.Minute, "w-001"); w.join(w.g(), "x", time.Second, "") }, "w-001 D21"},
		"the node is idle":             {func(w *world) { came(w); w.s.Nodes[0].Created = w.s.Now.Add(-time.Minute) }, "w-001 D26"},
		"the other is of another group": {func(w *world) {
			b := w.other("b")
			w.join(b, "y", 24*time.Hour, "")
			w.join(b, "z", time.Second, "")
			w.ordered("y", decision.RuleExpired, time.Minute).Group = "b"
		}, "y D26"},
	} {
		w := old(3)
		c.change(w)
		d := w.begin()
		d.Cordoned(d.ByName["w-000"])
		if got := orders(d); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestCameFor: a machine that has come after an order of its group is not idle.
func TestCameFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"no order":          {func(*world) {}, ""},
		"an order":          {func(w *world) { w.ordered("w-001", decision.RuleExpired, time.Minute) }, "it has come in place of node w-001"},
		"an order after it": {func(w *world) { w.ordered("w-001", decision.RuleExpired, 0) }, ""},
		"of its own":        {func(w *world) { w.p.MaxNodeAge = time.Second; w.ordered("x", decision.RuleExpired, time.Minute) }, ""},
		"of another group": {func(w *world) {
			w.join(w.other("b"), "y", 24*time.Hour, "")
			w.ordered("y", decision.RuleExpired, time.Minute).Group = "b"
		}, ""},
		"the second of two": {func(w *world) {
			w.ordered("w-001", decision.RuleExpired, 0)
			w.ordered("w-002", decision.RuleExpired, time.Minute)
		}, "it has come in place of node w-002"},
		"an order of a second": {func(w *world) { w.ordered("w-001", decision.RuleExpired, 2*time.Second-time.Millisecond) }, "it has come in place of node w-001"},
	} {
		w := old(3)
		w.join(w.g(), "x", 2*time.Second, "")
		c.change(w)
		d := w.begin()
		if got := d.CameFor(&d.Nodes[d.ByName["x"]]); got != c.want {
			t.Errorf("%s: %q (%s)", name, got, orders(d))
		}
	}
}

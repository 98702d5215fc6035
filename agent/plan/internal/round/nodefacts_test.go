package round

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// TestFacts: what the pods of the node n-1 take of it, and what of that counts for its utilisation. A pod requests 100m and a
// device; the node has 2 cores and, where it is said, a GPU.
func TestFacts(t *testing.T) {
	gpu := func(n *cluster.Node) {
		n.Labels = map[string]string{"nvidia.com/gpu": "yes"}
		n.Capacity.Extended = map[string]int64{"nvidia.com/gpu": 1}
		n.Allocatable.Extended = n.Capacity.Extended
	}
	for name, c := range map[string]struct {
		change func(l *ledger, n *cluster.Node, pod *cluster.Pod)
		want   string
	}{
		"a pod":                 {func(*ledger, *cluster.Node, *cluster.Pod) {}, "1900 left, pods [{0 1}] 100 map[], of DaemonSets 0"},
		"it has ended":          {func(_ *ledger, _ *cluster.Node, pod *cluster.Pod) { pod.Finished = true }, "2000 left, pods [] 0 map[], of DaemonSets 0"},
		"it does not matter":    {func(l *ledger, _ *cluster.Node, _ *cluster.Pod) { l.p.ExpendablePodsCutoff = 1 }, "2000 left, pods [{0 0}] 0 map[], of DaemonSets 0, less than there are"},
		"a DaemonSet's":         {func(_ *ledger, _ *cluster.Node, pod *cluster.Pod) { pod.Owner.Kind = "DaemonSet" }, "1900 left, pods [{0 1}] 0 map[], of DaemonSets 100 [{rs 0}]"},
		"it goes with its node": {func(_ *ledger, _ *cluster.Node, pod *cluster.Pod) { pod.Wishes = &cluster.PodWishes{Daemon: true} }, "1900 left, pods [{0 1}] 0 map[], of DaemonSets 100 [{rs 0}]"},
		"it does, and is nobody's": {func(_ *ledger, _ *cluster.Node, pod *cluster.Pod) {
			pod.Owner, pod.Wishes = nil, &cluster.PodWishes{Daemon: true}
		}, "1900 left, pods [{0 1}] 0 map[], of DaemonSets 100"},
		"it is told to go":         {func(_ *ledger, _ *cluster.Node, pod *cluster.Pod) { pod.Deleting = pod.Created }, "1900 left, pods [{0 1}] 100 map[], of DaemonSets 0, timed"},
		"it is kept for a time":    {func(_ *ledger, _ *cluster.Node, pod *cluster.Pod) { pod.Wishes = &cluster.PodWishes{KeepFor: 1} }, "1900 left, pods [{0 1}] 100 map[], of DaemonSets 0, timed"},
		"it wishes something else": {func(_ *ledger, _ *cluster.Node, pod *cluster.Pod) { pod.Wishes = &cluster.PodWishes{ScaleUpDelay: 1} }, "1900 left, pods [{0 1}] 100 map[], of DaemonSets 0"},
		"a node with a GPU":        {func(_ *ledger, n *cluster.Node, _ *cluster.Pod) { gpu(n) }, "1900 left, pods [{0 1}] 100 map[nvidia.com/gpu:1], of DaemonSets 0"},
		"two pods": {func(_ *ledger, n *cluster.Node, pod *cluster.Pod) {
			pod.Deleting = pod.Created
			n.Pods = append(n.Pods, cluster.Pod{Key: "b", Node: n.Name})
		}, "1800 left, pods [{0 2}] 200 map[], of DaemonSets 0, timed"},
	} {
		l := newLedger()
		l.p.GPUTotal = nil
		l.s.Classes = []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 100, Pods: 1, Extended: map[string]int64{"nvidia.com/gpu": 1}}}}
		n := l.s.Nodes[0]
		n.Allocatable = cluster.Resources{MilliCPU: 2000, Pods: 9}
		n.Pods = []cluster.Pod{{Key: "a", Node: n.Name, Owner: &cluster.Owner{UID: "rs"}, Created: cluster.At(l.s.Now)}}
		c.change(l, n, &n.Pods[0])
		w := l.count()
		x := &w.Nodes[0]
		f := x.Facts
		got := fmt.Sprintf("%d left, pods %v %d %v, of DaemonSets %d", x.Room[0], f.Classes, f.Requested.MilliCPU, f.Requested.Extended, f.DaemonRequests.MilliCPU)
		if len(f.daemons) > 0 {
			got += fmt.Sprintf(" %v", f.daemons)
		}
		if f.Timed {
			got += ", timed"
		}
		if f.Expendable {
			got += ", less than there are"
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSorted: pods in the order of their names; the node's own list is not written to.
func TestSorted(t *testing.T) {
	pods := []cluster.Pod{{Key: "b"}, {Key: "a"}, {Key: "c"}}
	got := Sorted(pods)
	if got[0].Key != "a" || got[2].Key != "c" || pods[0].Key != "b" {
		t.Errorf("%v of %v", got, pods)
	}
	if same := Sorted(got); &same[0] != &got[0] {
		t.Error("a list in order is copied")
	}
}

// TestReasonsAreKept: the words of a node's reason are those of this round, whichever they were in the one before.
func TestReasonsAreKept(t *testing.T) {
	var f nodeFacts
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	because := func(why string) func() string { return func() string { return why } }
	for i, c := range []struct{ got, want string }{
		{f.DueWords(at), "not needed: may go at 2026-01-05T08:00:00Z"},
		{f.DueWords(at), "not needed: may go at 2026-01-05T08:00:00Z"},
		{f.DueWords(at.Add(time.Hour)), "not needed: may go at 2026-01-05T09:00:00Z"},
		{f.UnplaceableWords("a", nil), "pod a has room nowhere else"},
		{f.UnplaceableWords("a", nil), "pod a has room nowhere else"},
		{f.UnplaceableWords("b", nil), "pod b has room nowhere else"},
		{f.UnplaceableWords("b", because(": it is spread")), "pod b has room nowhere else: it is spread"},
		{f.UnplaceableWords("b", because(": it is full")), "pod b has room nowhere else: it is full"},
		{f.DueWords(at), "not needed: may go at 2026-01-05T08:00:00Z"},
		{f.UnplaceableWords("b", nil), "pod b has room nowhere else"},
	} {
		if c.got != c.want {
			t.Errorf("%d: %s", i, c.got)
		}
	}
}

// TestDaemonPods: which pods say what DaemonSets take, on the machines of which group; before and after the nodes are indexed.
func TestDaemonPods(t *testing.T) {
	l := newLedger()
	l.s.Groups = append(l.s.Groups, cluster.NodeGroup{ID: "a", ReadAt: l.s.Now})
	l.s.Classes = []cluster.PodClass{{}, {Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{"n-2"}}}}}}}
	l.s.DaemonSets = []cluster.DaemonSet{{Key: "ds", UID: "ds", Class: 0}}
	daemon := &cluster.Owner{Kind: "DaemonSet", UID: "ds"}
	l.s.Nodes[0].Pods = []cluster.Pod{
		{Key: "a", Node: "n-1", Owner: daemon}, {Key: "b", Node: "n-1", Owner: daemon, Finished: true}, {Key: "c", Node: "n-1", Owner: &cluster.Owner{UID: "rs"}},
		{Key: "d", Node: "n-1", Wishes: &cluster.PodWishes{Daemon: true}},
	}
	l.s.Nodes = append(l.s.Nodes, &cluster.Node{Name: "z", Pods: []cluster.Pod{{Key: "e", Node: "z", Owner: daemon}}})
	l.s.Pods = []cluster.Pod{
		{Key: "f", Class: 1, Owner: daemon}, {Key: "g", Class: 0, Owner: daemon}, {Key: "h", Class: 1, Owner: daemon, Finished: true},
		{Key: "i", Class: 1, Owner: &cluster.Owner{UID: "rs"}}, {Key: "j", Class: 1, Wishes: &cluster.PodWishes{Daemon: true}},
	}
	w := New(new(Cache), &l.s, &l.m, &l.p)
	w.matchInstances()
	for _, when := range []string{"before", "after"} {
		var got []string
		for g, pod := range w.daemonPods {
			got = append(got, fmt.Sprintf("%s %d on %d", pod.Owner, pod.Class, g))
		}
		if is := strings.Join(got, ", "); is != "ds 0 on 1, ds 0 on -1, ds 1 on 1, ds 0 on -1" {
			t.Errorf("%s: %s", when, is)
		}
		w.Index()
	}
}

// TestReserveDaemons: the room of DaemonSet pods that a node is still to get is taken off.
func TestReserveDaemons(t *testing.T) {
	l := newLedger()
	l.joined("3", time.Hour)
	l.s.Classes = []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 100, Pods: 1}, NodeSelector: map[string]string{"agent": "yes"}}}
	l.s.DaemonSets = []cluster.DaemonSet{{Key: "other", UID: "other", Class: 0}, {Key: "ds", UID: "ds", Class: 0}}
	for _, n := range l.s.Nodes {
		n.Allocatable = cluster.Resources{MilliCPU: 2000, Pods: 9}
		n.Labels = map[string]string{"agent": "yes"}
	}
	l.s.Nodes[2].Labels = nil
	l.s.Nodes[1].Pods = []cluster.Pod{{Key: "a", Node: "n-2", Owner: &cluster.Owner{Kind: "DaemonSet", UID: "ds"}}}
	w := l.count()
	for i, want := range []string{"1800, [0 0] come", "1800, [0] come", "2000, [] come"} {
		if got := fmt.Sprintf("%d, %v come", w.Nodes[i].Room[0], w.Nodes[i].Shape.Daemons); got != want {
			t.Errorf("%s has %s", w.Nodes[i].Name, got)
		}
	}
}

// TestMay: of nodes that lack the label of a selector no filter is asked, but for those that are still to get labels of their zone.
func TestMay(t *testing.T) {
	const zone = "topology.kubernetes.io/zone"
	l := newLedger()
	l.s.Classes = []cluster.PodClass{{NodeSelector: map[string]string{"a": "b"}}, {}, {NodeSelector: map[string]string{zone: "z"}}}
	l.s.Nodes[1].Labels = map[string]string{"a": "b"}
	l.s.Nodes[1].Unschedulable = true
	w := l.count()
	w.Nodes[0].Shape.InZones = []fit.NodeInfo{{Labels: map[string]string{zone: "z"}}}
	for _, c := range []struct {
		class, node int
		may, passes bool
	}{{0, 0, true, false}, {0, 1, true, false}, {1, 0, true, true}, {2, 0, true, true}, {2, 1, false, false}} {
		f := w.FiltersOf(c.class)
		if f.May(c.node) != c.may || f.Passes(c.node) != c.passes || w.Passes(c.class, c.node) != c.passes || f.May(c.node) != c.passes {
			t.Errorf("class %d on node %d: may %v, passes %v", c.class, c.node, f.May(c.node), f.Passes(c.node))
		}
	}
}

// TestOpenShape: a node that the agent drains has the shape that it had before, a node that others cordon is cordoned.
func TestOpenShape(t *testing.T) {
	l := newLedger()
	l.s.Classes = []cluster.PodClass{{Tolerations: []cluster.Toleration{{Key: "a", Operator: "Exists"}}}}
	for i, n := range l.s.Nodes {
		marked(n, i == 0)
		n.Unschedulable = true
	}
	w := l.count()
	for i, want := range []bool{true, false} {
		if n := &w.Nodes[i]; w.OpenShape(n).Unschedulable == want || w.Passes(0, i) != want {
			t.Errorf("%s: %+v", n.Name, w.OpenShape(n))
		}
	}
}

// TestInstanceOfTwoGroups: an instance that two groups list is the first one's.
func TestInstanceOfTwoGroups(t *testing.T) {
	l := newLedger()
	l.s.Groups = append(l.s.Groups, cluster.NodeGroup{ID: "a", ReadAt: l.s.Now, Instances: l.g().Instances[:1]})
	w := l.count()
	if a, b := w.Groups[w.Nodes[0].Group].ID, w.Groups[w.Nodes[1].Group].ID; a != "a" || b != "w" {
		t.Errorf("n-1 is of %s, n-2 of %s", a, b)
	}
}

// TestNewState: which pods and volumes of the nodes the filters of a round count. Class 0 keeps off its own kind, class 1 is spread
// over the hosts with it, classes 2 and 3 have a volume each.
func TestNewState(t *testing.T) {
	on := func(class int) func(*ledger, *cluster.Node) {
		return func(_ *ledger, n *cluster.Node) { n.Pods = []cluster.Pod{{Key: "x", Class: class}} }
	}
	limit := map[string]int64{"disks": 1}
	for name, c := range map[string]struct {
		change func(l *ledger, n *cluster.Node)
		want   string // the rules by which n-1 refuses classes 0, 1 and 3
	}{
		"none is there":            {func(*ledger, *cluster.Node) {}, "[  ]"},
		"a pod":                    {on(0), "[F12 F11 ]"},
		"it has ended":             {func(l *ledger, n *cluster.Node) { on(0)(l, n); n.Pods[0].Finished = true }, "[  ]"},
		"it is told to go":         {func(l *ledger, n *cluster.Node) { on(0)(l, n); n.Pods[0].Deleting = cluster.At(l.s.Now) }, "[F12  ]"},
		"one is nominated":         {func(l *ledger, _ *cluster.Node) { l.s.Pods = []cluster.Pod{{Key: "x", Nominated: "n-1"}} }, "[F12 F11 ]"},
		"to a node that is no":     {func(l *ledger, _ *cluster.Node) { l.s.Pods = []cluster.Pod{{Key: "x", Nominated: "n-9"}} }, "[  ]"},
		"others are drained":       {func(l *ledger, n *cluster.Node) { on(0)(l, n); marked(l.s.Nodes[1], true) }, "[F12  ]"},
		"a volume":                 {on(2), "[  ]"},
		"more than the node takes": {func(l *ledger, n *cluster.Node) { on(2)(l, n); n.VolumeLimits = limit }, "[  F8]"},
		"than its group's do":      {func(l *ledger, n *cluster.Node) { on(2)(l, n); l.g().Template.VolumeLimits = limit }, "[  F8]"},
		"but it says more itself": {func(l *ledger, n *cluster.Node) {
			on(2)(l, n)
			l.g().Template.VolumeLimits, n.VolumeLimits = limit, map[string]int64{"disks": 2}
		}, "[  ]"},
		"it is of no group": {func(l *ledger, n *cluster.Node) { on(2)(l, n); l.g().Template.VolumeLimits = limit; l.foreign(n) }, "[  ]"},
	} {
		l := newLedger()
		with := func(key string) *cluster.Selector {
			return &cluster.Selector{Requirements: []cluster.Requirement{{Key: key, Operator: "Exists"}}}
		}
		volume := func(handle string) []cluster.Volume { return []cluster.Volume{{Driver: "disks", Handle: handle}} }
		l.s.Classes = []cluster.PodClass{
			{Namespace: "d", Labels: map[string]string{"app": "a", "alone": "yes"}, PodAntiAffinity: []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Selector: with("alone"), Namespaces: []string{"d"}}}},
			{Namespace: "d", Labels: map[string]string{"app": "a"}, Spread: []cluster.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, Selector: with("app")}}},
			{Volumes: volume("v")}, {Volumes: volume("w")},
		}
		for _, n := range l.s.Nodes {
			n.Labels, n.Allocatable = map[string]string{"kubernetes.io/hostname": string(n.Name)}, cluster.Resources{Pods: 9}
		}
		c.change(l, l.s.Nodes[0])
		w := l.count()
		st := w.NewState()
		var got []string
		for _, class := range []int{0, 1, 3} {
			rule, _ := st.Refused(class, w.ByName["n-1"])
			got = append(got, rule)
		}
		if is := fmt.Sprint(got); is != c.want {
			t.Errorf("%s: %s", name, is)
		}
	}
}

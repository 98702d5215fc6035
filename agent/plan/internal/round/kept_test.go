package round

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// keptWorld has nodes of two groups, one of no group, one that is starting and one that is being drained, and a class for each
// property of a node that a filter reads.
func keptWorld() *ledger {
	l := newLedger()
	l.joined("3", time.Minute)
	l.machine("4", time.Minute)
	l.s.Groups = append(l.s.Groups, cluster.NodeGroup{ID: "b", Max: 9, Target: 1, ReadAt: l.s.Now, Instances: []cluster.Instance{{ID: "i-5", Member: true, Phase: cluster.PhaseRunning}}})
	l.g().Template = cluster.Template{Spec: "m", Labels: map[string]string{"disk": "ssd", "late": "yes"}, Allocatable: cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 9}}
	l.s.Nodes = append(l.s.Nodes, &cluster.Node{Name: "n-5", ProviderID: "i-5", Ready: cluster.StatusTrue}, &cluster.Node{Name: "alone", Ready: cluster.StatusTrue})
	for i, n := range l.s.Nodes {
		n.Labels = map[string]string{"disk": []string{"ssd", "hdd"}[i%2], "late": "yes"}
		n.Allocatable = cluster.Resources{MilliCPU: 4000, Memory: 8 << 30, Pods: 9}
	}
	delete(l.s.Nodes[2].Labels, "late")
	l.s.Nodes[1].Pods = []cluster.Pod{{Key: "x", Node: "n-2", Class: 3}, {Key: "y", Node: "n-2", Class: 0}}
	marked(l.s.Nodes[1], true)
	l.s.Nodes[1].Unschedulable = true
	small := cluster.Resources{MilliCPU: 100, Pods: 1}
	l.s.Classes = []cluster.PodClass{
		{Requests: cluster.Resources{MilliCPU: 500, Pods: 1}, NodeSelector: map[string]string{"disk": "ssd"}},
		{Requests: small, NodeSelector: map[string]string{"late": "yes"}},
		{Requests: small, NodeName: "n-1"},
		{Requests: small},
		{Requests: small, NodeSelector: map[string]string{"disk": "ssd"}},
	}
	return l
}

// round plays the steps that a kept Cache takes part in.
func (l *ledger) round(c *Cache) *State {
	w := New(c, &l.s, &l.m, &l.p)
	w.Remember()
	w.Index()
	return w
}

// shows is all that a round knows of nodes and classes.
func (w *State) shows() string {
	var out strings.Builder
	for i := range w.Nodes {
		n := &w.Nodes[i]
		fmt.Fprintf(&out, "%s group %d state %s room %v", n.Name, n.Group, stateNames[n.State], n.Room)
		if n.Instance != nil {
			fmt.Fprintf(&out, " instance %s", n.Instance.ID)
		}
		for class := range w.Snapshot.Classes {
			fmt.Fprintf(&out, " %t", w.Passes(class, i))
		}
		fmt.Fprintf(&out, " holds %v, requested %v, drained %v\n", n.Facts.Classes, n.Facts.Requested, n.Facts.Timed)
	}
	k := &w.Cache.Classes
	of := make([][]int, len(k.Representative)) // the numbers of kinds may be others
	for class, kind := range k.Equivalent {
		of[kind] = append(of[kind], class)
	}
	slices.SortFunc(of, slices.Compare)
	fmt.Fprintf(&out, "rank %v of one kind %v, instances %v, %v\n", k.Rank, of, w.Identity.Node, slices.Sorted(maps.Keys(w.ByName)))
	return out.String()
}

// keptChanges are what can be another from round to round. Values that were handed in are never written to.
var keptChanges = map[string]func(l *ledger){
	"nothing": func(*ledger) {},
	"a label": func(l *ledger) { l.change(0, func(n *cluster.Node) { n.Labels = map[string]string{"disk": "hdd"} }) },
	"a taint": func(l *ledger) {
		l.change(0, func(n *cluster.Node) { n.Taints = []cluster.Taint{{Key: "a", Effect: "NoSchedule"}} })
	},
	"a cordon":                   func(l *ledger) { l.change(0, func(n *cluster.Node) { n.Unschedulable = true }) },
	"a name":                     func(l *ledger) { l.change(0, func(n *cluster.Node) { n.Name = "a-1" }) },
	"a name in the same order":   func(l *ledger) { l.change(0, func(n *cluster.Node) { n.Name = "n-0" }) },
	"the pods of a node":         func(l *ledger) { l.change(0, func(n *cluster.Node) { n.Pods = []cluster.Pod{{Key: "z", Class: 1}} }) },
	"a pod that is told to go":   func(l *ledger) { l.change(1, func(n *cluster.Node) { n.Pods[0].Deleting = cluster.At(l.s.Now) }) },
	"a node that is not Ready":   func(l *ledger) { l.change(0, func(n *cluster.Node) { n.Ready = cluster.StatusFalse }) },
	"the mark goes":              func(l *ledger) { l.change(1, func(n *cluster.Node) { n.Taints, n.Annotations = nil, nil }) },
	"the mark is another's":      func(l *ledger) { l.change(1, func(n *cluster.Node) { n.Annotations = nil }) },
	"the first node goes":        func(l *ledger) { l.s.Nodes = l.s.Nodes[1:] },
	"the last node goes":         func(l *ledger) { l.s.Nodes = l.s.Nodes[:len(l.s.Nodes)-1] },
	"all nodes go":               func(l *ledger) { l.s.Nodes = nil },
	"two nodes change places":    func(l *ledger) { l.s.Nodes[0], l.s.Nodes[3] = l.s.Nodes[3], l.s.Nodes[0] },
	"one goes and another comes": func(l *ledger) { l.s.Nodes[0] = &cluster.Node{Name: "zz", Ready: cluster.StatusTrue} },
	"a node comes before them": func(l *ledger) {
		l.s.Nodes = append([]*cluster.Node{{Name: "aa", Ready: cluster.StatusTrue}}, l.s.Nodes...)
	},
	"an ID of the cloud": func(l *ledger) { l.change(0, func(n *cluster.Node) { n.ProviderID = "i-4" }) },
	"no ID of the cloud": func(l *ledger) { l.change(0, func(n *cluster.Node) { n.ProviderID = "" }) },
	"an address":         func(l *ledger) { l.change(4, func(n *cluster.Node) { n.Addresses = []string{"10.0.0.4"} }) },
	"the ID of a machine's board": func(l *ledger) {
		l.change(4, func(n *cluster.Node) { n.SystemUUID = "ec2d7ae5-8d5b-4a3e-9d2a-000000000004" })
	},
	"instances of a group": func(l *ledger) {
		l.s.Groups[1].Instances = []cluster.Instance{{ID: "i-6", Member: true, Phase: cluster.PhaseRunning}}
	},
	"the group of a name":    func(l *ledger) { l.s.Groups[0].ID = "a" },
	"a group goes":           func(l *ledger) { l.s.Groups = l.s.Groups[:1] },
	"what its nodes will be": func(l *ledger) { l.g().Template.Labels = map[string]string{"disk": "hdd"} },
	"what a class requests":  func(l *ledger) { l.class(0, func(c *cluster.PodClass) { c.Requests.MilliCPU = 700 }) },
	"what two classes request": func(l *ledger) {
		l.class(0, func(c *cluster.PodClass) { c.Requests.MilliCPU = 700 })
		l.class(2, func(c *cluster.PodClass) { c.Requests.MilliCPU = 900 })
	},
	"what a class selects": func(l *ledger) {
		l.class(0, func(c *cluster.PodClass) { c.NodeSelector = map[string]string{"disk": "hdd"} })
	},
	"a resource more": func(l *ledger) {
		l.class(1, func(c *cluster.PodClass) { c.Requests.Extended = map[string]int64{"gpu": 1} })
	},
	"a class more": func(l *ledger) {
		l.s.Classes = append(slices.Clip(l.s.Classes), cluster.PodClass{Requests: cluster.Resources{MilliCPU: 300, Pods: 1}})
	},
	"a class less": func(l *ledger) { l.s.Classes = l.s.Classes[:4] },
	"another class at its place": func(l *ledger) {
		l.s.Classes = append(slices.Clone(l.s.Classes[:4]), cluster.PodClass{NodeSelector: map[string]string{"disk": "hdd"}})
	},
	"no class and no pod": func(l *ledger) {
		l.s.Classes = nil
		l.change(1, func(n *cluster.Node) { n.Pods = nil })
	},
}

// change makes a node another value, as an observer does.
func (l *ledger) change(i int, f func(*cluster.Node)) {
	n := *l.s.Nodes[i]
	n.Pods = slices.Clone(n.Pods)
	f(&n)
	l.s.Nodes[i] = &n
}

func (l *ledger) class(i int, f func(*cluster.PodClass)) {
	l.s.Classes = slices.Clone(l.s.Classes)
	f(&l.s.Classes[i])
}

// next is the same cluster a moment later, in slices of its own.
func (l *ledger) next() *ledger {
	out := *l
	out.s.Nodes, out.s.Groups = slices.Clone(l.s.Nodes), slices.Clone(l.s.Groups)
	out.s.Now = l.s.Now.Add(time.Millisecond)
	return &out
}

// TestStaysForIsAsFresh: a Cache of earlier rounds changes no answer, whatever has changed in between, there and back.
func TestStaysForIsAsFresh(t *testing.T) {
	for name, change := range keptChanges {
		first := keptWorld()
		first.s.Groups[0].Instances[3].Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.4")}
		first.s.Groups[0].Instances[3].ID = "openstack:///ec2d7ae5-8d5b-4a3e-9d2a-000000000004"
		second, third := first.next(), first.next()
		change(second)
		var kept Cache
		first.next().round(&kept).Passes(1, 0) // of one class only
		for i, l := range []*ledger{first, second, third} {
			if got, want := l.round(&kept).shows(), l.round(new(Cache)).shows(); got != want {
				t.Errorf("%s, round %d:\n%s\nwant\n%s", name, i+1, got, want)
			}
		}
	}
}

// TestStaysForIsNotWorkedOutAgain: a round takes over the facts about nodes that have not changed, and does not compute them again.
func TestStaysForIsNotWorkedOutAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change          func(l *ledger)
		facts, verdicts int // nodes that are looked at again, of 5
		matched         bool
	}{
		"nothing":                    {keptChanges["nothing"], 0, 1, false},
		"equal classes":              {func(l *ledger) { l.s.Classes = slices.Clone(l.s.Classes) }, 0, 1, false},
		"classes of equal content":   {func(l *ledger) { l.class(0, func(c *cluster.PodClass) { c.NodeSelector = maps.Clone(c.NodeSelector) }) }, 0, 1, false},
		"a class less":               {keptChanges["a class less"], 0, 1, false},
		"a class more":               {keptChanges["a class more"], 0, 1, false},
		"a class that runs":          {keptChanges["what a class requests"], 1, 1, false},
		"a class that runs nowhere":  {func(l *ledger) { l.class(2, func(c *cluster.PodClass) { c.Requests.MilliCPU = 9 }) }, 0, 1, false},
		"pods of a node":             {keptChanges["the pods of a node"], 1, 1, false},
		"the label of a node":        {keptChanges["a label"], 1, 2, false},
		"nodes that change places":   {keptChanges["two nodes change places"], 0, 5, true},
		"a resource more":            {keptChanges["a resource more"], 5, 5, false},
		"the last node goes":         {keptChanges["the last node goes"], 0, 4, true},
		"the addresses of a machine": {keptChanges["an address"], 1, 5, true},
	} {
		first := keptWorld()
		second := first.next()
		c.change(second)
		var kept Cache
		first.round(&kept).shows()
		was := map[*nodeFacts]bool{}
		for _, f := range kept.Facts {
			was[f] = true
		}
		w := second.round(&kept)
		facts, verdicts := 0, 0
		for i, f := range kept.Facts {
			if !was[f] {
				facts++
			}
			if slices.ContainsFunc(kept.filters.rows, func(row []int8) bool { return row[i] == 0 }) || len(kept.filters.rows) == 0 {
				verdicts++
			}
		}
		if facts != c.facts || verdicts != c.verdicts || w.rebuilt != c.matched {
			t.Errorf("%s: facts of %d nodes and verdicts on %d are worked out again, instances matched again %v", name, facts, verdicts, w.rebuilt)
		}
	}
}

// TestShapesAreForgotten: demands on nodes of classes that are gone do not fill the memory.
func TestShapesAreForgotten(t *testing.T) {
	var b classIndex
	for i := range manyShapes + 50 {
		b.update([]cluster.PodClass{{NodeSelector: map[string]string{"a": "b"}}, {NodeSelector: map[string]string{"pool": fmt.Sprint(i)}}})
		if len(b.shapeIDs) > 2*len(b.classes)+manyShapes+1 {
			t.Fatalf("%d demands of %d classes are remembered", len(b.shapeIDs), len(b.classes))
		}
		if b.shape[0] == b.shape[1] {
			t.Fatalf("round %d: two demands have one number", i)
		}
		if i == manyShapes/2 && b.gen != 1 {
			t.Errorf("round %d: all verdicts are forgotten for a demand more", i)
		}
	}
	if b.gen < 2 || len(b.shapeIDs) > manyShapes {
		t.Errorf("verdicts by numbers of shapes that mean another demand now are kept (%d demands)", len(b.shapeIDs))
	}
}

// TestRank: classes are ranked by size, the largest first; of one kind are classes of equal size and demands.
func TestRank(t *testing.T) {
	class := func(cpu int64, pool string) cluster.PodClass {
		c := cluster.PodClass{Requests: cluster.Resources{MilliCPU: cpu, Pods: 1}}
		if pool != "" {
			c.NodeSelector = map[string]string{"pool": pool}
		}
		return c
	}
	var b classIndex
	b.update([]cluster.PodClass{class(1, ""), class(3, "a"), class(2, "a"), class(3, "b"), class(3, "a"), class(1, ""), class(4, "a"), {NodeSelector: map[string]string{"pool": "a"}, Affinity: []cluster.NodeTerm{}, Requests: cluster.Resources{MilliCPU: 2, Pods: 1}}})
	kinds := map[int32][]int{}
	for i, k := range b.Equivalent {
		kinds[k] = append(kinds[k], i)
	}
	if got := fmt.Sprint(b.Rank, kinds, len(b.Representative)); got != "[3 1 2 1 1 3 0 2] map[0:[6] 1:[1 4] 2:[3] 3:[2] 4:[7] 5:[0 5]] 6" {
		t.Error(got)
	}
	for k, i := range b.Representative {
		if b.Equivalent[i] != int32(k) {
			t.Errorf("class %d stands for kind %d and is of kind %d", i, k, b.Equivalent[i])
		}
	}
}

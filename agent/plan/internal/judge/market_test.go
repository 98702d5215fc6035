package judge

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// market is a cluster in which pods wait, and the groups that sell machines for them.
type market struct {
	s cluster.Snapshot
	m decision.Memory
	p decision.Policy
}

func newMarket() *market {
	return &market{s: cluster.Snapshot{Now: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)},
		p: decision.Policy{Expander: "price", FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, MaxNodeProvisionTime: 15 * time.Minute}}
}

// group sells machines of so many milli-CPU and MiB in a zone.
func (k *market) group(id cluster.GroupID, zone string, cpu, memory int64, price float64) *cluster.NodeGroup {
	room := cluster.Resources{MilliCPU: cpu, Memory: memory << 20, Pods: 110}
	k.s.Groups = append(k.s.Groups, cluster.NodeGroup{ID: id, Max: 2000, ReadAt: k.s.Now, Price: price,
		Template: cluster.Template{Spec: "m", Capacity: room, Allocatable: room, Labels: map[string]string{"topology.kubernetes.io/zone": zone, "pool": string(id)}}})
	return &k.s.Groups[len(k.s.Groups)-1]
}

// waiting adds a class, and n pods of it that wait.
func (k *market) waiting(n int, cpu, memory int64) *cluster.PodClass {
	class := len(k.s.Classes)
	k.s.Classes = append(k.s.Classes, cluster.PodClass{Namespace: "d", Labels: map[string]string{"app": fmt.Sprint(class)}, Requests: cluster.Resources{MilliCPU: cpu, Memory: memory << 20, Pods: 1}})
	for i := range n {
		k.s.Pods = append(k.s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("p%d-%02d", class, i)), Class: class, Created: cluster.At(k.s.Now), Unschedulable: cluster.At(k.s.Now)})
	}
	return &k.s.Classes[class]
}

// judge plays the steps of a round before it buys.
func (k *market) judge() *Judge {
	w := round.New(new(round.Cache), &k.s, &k.m, &k.p)
	w.OpenHeadroom()
	w.Remember()
	w.LearnOutcomes()
	w.Index()
	w.Account()
	w.CountOrphanedUpcoming()
	w.Health()
	growth.Judge(w)
	w.Gather()
	w.HoldUnknown()
	p := packing.New(w)
	p.Topology = topology.Compile(w)
	j := New(p)
	j.Measure()
	return j
}

func (k *market) model() *model {
	w := k.judge()
	cost, _ := w.packer.Costs()
	j := w.newModel(cost, false, nil)
	j.limit = w.Budget
	return j
}

// TestQueue: kube-scheduler takes pods by priority and age; those of one second in another order in each draw, and pods that have
// room on a node, or for which nothing is bought, not at all.
func TestQueue(t *testing.T) {
	k := newMarket()
	k.group("a", "z", 4000, 8192, 1)
	k.waiting(8, 1000, 64)
	k.waiting(8, 900, 64)
	k.waiting(1, 800, 64).Priority = 1
	k.waiting(1, 700, 64)
	k.s.Pods[17].Created-- // a second older
	k.waiting(1, 600, 64)
	k.s.Pods[18].Unschedulable = 0
	k.s.Controllers = []cluster.Controller{{Owner: cluster.Owner{UID: "rs"}, Missing: 2}}
	k.s.Pods[0].Owner = &cluster.Owner{UID: "rs"}
	j := k.model()
	text := func(q []podRun) string { return fmt.Sprint(q) }
	if got := text(j.queue(0)); got != "[{2 1} {3 1} {0 8} {1 8} {0 2}]" {
		t.Errorf("the queue is %s", got)
	}
	seen := map[string]bool{}
	for draw := range judgeConfirms {
		q := j.queue(draw)
		if draw > 0 && (q[0] != podRun{2, 1} || q[1] != podRun{3, 1}) {
			t.Errorf("draw %d begins with %v", draw, q[:2])
		}
		n := map[int]int{}
		for _, r := range q {
			n[r.class] += r.n
		}
		if fmt.Sprint(n) != "map[0:10 1:8 2:1 3:1]" {
			t.Errorf("draw %d has %v", draw, n)
		}
		seen[text(q)] = true
	}
	if len(seen) < judgeConfirms/2 { // names differ in their last letters, and so do hashes: some draws are alike
		t.Errorf("%d orders in %d draws", len(seen), judgeConfirms)
	}
}

// TestRunsOf: of each class so many pods as are left after those that have room, in the order of the queue.
func TestRunsOf(t *testing.T) {
	var all []queued
	for _, class := range []int{0, 1, 1, 0, 0, 2, 1} {
		all = append(all, queued{class: class})
	}
	for _, c := range []struct {
		after, left []int
		want        string
	}{
		{[]int{0, 0, 0}, []int{9, 9, 9}, "[{0 1} {1 2} {0 2} {2 1} {1 1}]"},
		{[]int{1, 0, 0}, []int{9, 9, 9}, "[{1 2} {0 2} {2 1} {1 1}]"},
		{[]int{0, 0, 0}, []int{1, 3, 0}, "[{0 1} {1 3}]"},
		{[]int{0, 2, 0}, []int{1, 1, 1}, "[{0 1} {2 1} {1 1}]"},
	} {
		if got := fmt.Sprint(runsOf(all, c.after, c.left)); got != c.want {
			t.Errorf("after %v, %v left: %s", c.after, c.left, got)
		}
	}
}

// TestKarpenterPurchase: pods by falling cpu, each onto the machine with the fewest pods that some group could still provide.
func TestKarpenterPurchase(t *testing.T) {
	for name, c := range map[string]struct {
		build func(k *market)
		want  string // machines by group: large, small
	}{
		"one":                {func(k *market) { k.waiting(1, 1000, 64) }, "[0 1]"},
		"as many as fit":     {func(k *market) { k.waiting(2, 1000, 64) }, "[0 1]"},
		"a larger machine":   {func(k *market) { k.waiting(4, 1000, 64) }, "[1 0]"},
		"one more":           {func(k *market) { k.waiting(5, 1000, 64) }, "[1 1]"},
		"too large":          {func(k *market) { k.waiting(1, 4001, 64) }, "[0 0]"},
		"too large, and not": {func(k *market) { k.waiting(1, 4001, 64); k.waiting(1, 1000, 64) }, "[0 1]"},
		"the memory is full": {func(k *market) { k.waiting(2, 1000, 4096) }, "[1 0]"},
		"to the machine with the fewest pods": {func(k *market) {
			k.waiting(2, 2500, 64)  // a machine each
			k.waiting(2, 700, 64)   // one on each
			k.waiting(2, 600, 5000) // one on each; both on one have no room
		}, "[2 0]"},
		"of such ones to the first": {func(k *market) {
			k.waiting(1, 2500, 64)
			k.waiting(1, 2400, 2000)
			k.waiting(1, 1500, 64)
			k.waiting(1, 1490, 7000) // it had room on the first without the one before
		}, "[3 0]"},
		"by memory where the cpu is equal": {func(k *market) { k.waiting(2, 1000, 1024); k.waiting(2, 1000, 3072) }, "[1 0]"},
	} {
		k := newMarket()
		k.group("large", "z", 4000, 8192, 3)
		k.group("small", "z", 2000, 4096, 1)
		c.build(k)
		if got := fmt.Sprint(k.model().karpenterPurchase()); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestStillFits: a machine is full where a resource that the pod requests is; one that it does not request may be overdrawn.
func TestStillFits(t *testing.T) {
	k := newMarket()
	k.group("a", "z", 1000, 1024, 1)
	k.waiting(1, 0, 512)
	j := k.model()
	used := make([]int64, j.w.Dimensions.Len())
	for _, c := range []struct {
		cpu, memory int64
		want        bool
	}{{0, 0, true}, {1000, 0, true}, {1001, 0, true}, {0, 512 << 20, true}, {0, 512<<20 + 1, false}} {
		used[0], used[1] = c.cpu, c.memory
		if got := j.stillFits(0, 0, used); got != c.want {
			t.Errorf("with %dm and %d bytes: %v", c.cpu, c.memory, got)
		}
	}
}

// TestExceedsJudging: the first number by which a round is too large, at each bound.
func TestExceedsJudging(t *testing.T) {
	for _, c := range []struct {
		pods, classes, nodes, groups int
		want                         string
	}{
		{6000, 200, 136, 64, ""},
		{1, 1, 0, 65, "65 node groups"},
		{6001, 1, 0, 1, "6001 pods"},
		{201, 201, 0, 1, "201 classes of pods"},
		{200, 200, 137, 64, "200 classes of pods on 137 nodes and 64 node groups"},
		{1, 1, 40000, 1, "1 classes of pods on 40000 nodes and 1 node groups"},
	} {
		if got := exceedsJudging(c.pods, c.classes, c.nodes, c.groups); got != c.want {
			t.Errorf("%d pods of %d classes, %d nodes, %d groups: %q", c.pods, c.classes, c.nodes, c.groups, got)
		}
	}
}

// TestTellBudget: a round that buys says where its search had to end; one that buys nothing lacks nothing.
func TestTellBudget(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Judge, *packing.Solution)
		want   int
	}{
		"it was whole":          {func(*Judge, *packing.Solution) {}, 0},
		"it was cut":            {func(w *Judge, _ *packing.Solution) { w.cut = true }, 1},
		"it bought nothing":     {func(w *Judge, s *packing.Solution) { w.cut, s.Grow = true, []int{0} }, 0},
		"it was too large":      {func(w *Judge, _ *packing.Solution) { w.tooLarge = "9 pods" }, 1},
		"it goes by no price":   {func(w *Judge, _ *packing.Solution) { w.tooLarge, w.Policy.Expander = "9 pods", "random" }, 0},
		"it was cut, by no one": {func(w *Judge, _ *packing.Solution) { w.cut, w.Policy.Expander = true, "random" }, 1},
	} {
		k := newMarket()
		k.group("a", "z", 1000, 1024, 1)
		k.waiting(1, 100, 64)
		w := k.judge()
		w.Steps = 7
		s := &packing.Solution{Grow: []int{1}}
		c.change(w, s)
		w.Plan.Held = nil
		w.TellBudget(s)
		if len(w.Plan.Held) != c.want || c.want > 0 && w.Plan.Held[0].Rule != decision.RuleBudget {
			t.Errorf("%s: %v", name, w.Plan.Held)
		}
	}
}

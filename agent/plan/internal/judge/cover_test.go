package judge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

const zoneLabel = "topology.kubernetes.io/zone"

// apart keeps the pods of a class off nodes with the same value of a label.
func apart(c *cluster.PodClass, key string) {
	c.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: key, Namespaces: []string{"d"}, Selector: ownSelector(c)}}
}

// spreadOver spreads the pods of a class over the values of a label of nodes.
func spreadOver(c *cluster.PodClass, key string) {
	c.Spread = []cluster.Spread{{TopologyKey: key, MaxSkew: 1, Selector: ownSelector(c)}}
}

func ownSelector(c *cluster.PodClass) *cluster.Selector {
	return &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{c.Labels["app"]}}}}
}

const hostLabel = "kubernetes.io/hostname"

// TestMissing: what the machines that a purchase lacks cost at least, for the resource that is shortest.
func TestMissing(t *testing.T) {
	j := &model{rooms: [][]int64{{4, 8}, {2, 16}, nil, {0, 100}}, cost: []float64{4, 3, 0, 10}, groups: []int{0, 1, 3}}
	for _, c := range []struct {
		x    []int
		need []int64
		want float64
	}{
		{[]int{0, 0, 0, 0}, []int64{0, 0}, 0},
		{[]int{0, 0, 0, 0}, []int64{4, 0}, 4},    // a first machine; of the second group it costs 6
		{[]int{0, 0, 0, 0}, []int64{0, 32}, 3.2}, // the fourth group has the most of it
		{[]int{0, 0, 0, 0}, []int64{4, 32}, 4},
		{[]int{1, 0, 0, 0}, []int64{4, 8}, 0},
		{[]int{1, 0, 0, 0}, []int64{5, 8}, 1},
		{[]int{1, 1, 0, 0}, []int64{5, 8}, 0},
		{[]int{2, 0, 0, 0}, []int64{9, 200}, 18.4},
	} {
		if got := j.missing(c.x, c.need); !(got > c.want-1e-9 && got < c.want+1e-9) {
			t.Errorf("%v of %v: %g, want %g", c.x, c.need, got, c.want)
		}
	}
	j.groups = []int{3}
	if got := j.missing(make([]int, 4), []int64{4, 0}); got != 0 {
		t.Errorf("%g for what no group sells", got)
	}
	if got := share([]int64{1, 4, 0}, []int64{2, 4, 0}); got != 1 {
		t.Errorf("a share of %g", got)
	}
}

// TestNeeds: what the waiting pods request that a machine helps; where pods depend on others, less the room on the nodes.
func TestNeeds(t *testing.T) {
	node := func(k *market) {
		k.s.Nodes = []*cluster.Node{{Name: "n", Ready: cluster.StatusTrue, Allocatable: cluster.Resources{MilliCPU: 300, Memory: 64 << 20, Pods: 9}}}
	}
	for name, c := range map[string]struct {
		build func(k *market)
		cpu   int64
	}{
		"two pods":             {func(k *market) { k.waiting(2, 500, 64) }, 1000},
		"one is too large":     {func(k *market) { k.waiting(2, 500, 64); k.waiting(1, 5000, 64) }, 1000},
		"a node has no room":   {func(k *market) { node(k); k.waiting(2, 500, 64) }, 1000},
		"they keep off others": {func(k *market) { node(k); apart(k.waiting(2, 500, 64), hostLabel) }, 700},
		"a machine is upcoming for them": {func(k *market) {
			k.s.Groups[0].Target = 1
			k.waiting(9, 700, 64) // five have room there, and half a core is left
			k.m.Reservations = []decision.Reservation{{Group: "a", Pods: []cluster.PodKey{"p0-00"}}}
		}, 2300},
		"and there is no node": {func(k *market) { apart(k.waiting(2, 500, 64), hostLabel) }, 1000},
	} {
		k := newMarket()
		k.group("a", "z", 4000, 8192, 1)
		c.build(k)
		if got := k.model().needs()[0]; got != c.cpu {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestCoverLeft: which machines cover the pods that wait: those that take most for their price, one group alone as far as it goes.
func TestCoverLeft(t *testing.T) {
	for name, c := range map[string]struct {
		build func(k *market)
		only  int    // of this group alone; -1: of all
		want  string // machines by group: big, dear, small; and the pods that remain
	}{
		"one pod":                     {func(k *market) { k.waiting(1, 900, 64) }, -1, "[0 0 1] 0"},
		"many":                        {func(k *market) { k.waiting(8, 1000, 64) }, -1, "[2 0 0] 0"},
		"the rest on a small one":     {func(k *market) { k.waiting(9, 1000, 64) }, -1, "[2 0 1] 0"},
		"of one group":                {func(k *market) { k.waiting(9, 1000, 64) }, 2, "[0 0 9] 0"},
		"of the dear one":             {func(k *market) { k.waiting(9, 1000, 64) }, 1, "[0 3 0] 0"},
		"too large for the group":     {func(k *market) { k.waiting(2, 1100, 64) }, 2, "[0 0 0] 2"},
		"too large for all":           {func(k *market) { k.waiting(2, 9000, 64); k.waiting(1, 900, 64) }, -1, "[0 0 1] 2"},
		"two sizes":                   {func(k *market) { k.waiting(2, 3000, 64); k.waiting(2, 1000, 64) }, -1, "[2 0 0] 0"},
		"up to the maximum":           {func(k *market) { k.s.Groups[0].Max = 1; k.waiting(8, 1000, 64) }, -1, "[1 0 4] 0"},
		"of one group, to its end":    {func(k *market) { k.s.Groups[0].Max = 1; k.waiting(8, 1000, 64) }, 0, "[1 0 0] 4"},
		"one on each host":            {func(k *market) { apart(k.waiting(3, 1000, 64), hostLabel) }, -1, "[0 0 3] 0"},
		"one on each host, of one":    {func(k *market) { apart(k.waiting(3, 1000, 64), hostLabel) }, 0, "[3 0 0] 0"},
		"one on each, to its end":     {func(k *market) { k.s.Groups[2].Max = 2; apart(k.waiting(3, 1000, 64), hostLabel) }, 2, "[0 0 2] 1"},
		"one on each, then others":    {func(k *market) { k.s.Groups[2].Max = 2; apart(k.waiting(3, 1000, 64), hostLabel) }, -1, "[1 0 2] 0"},
		"one in each zone":            {func(k *market) { apart(k.waiting(3, 1000, 64), zoneLabel) }, -1, "[0 1 1] 1"},
		"one in a zone, of one group": {func(k *market) { apart(k.waiting(3, 1000, 64), zoneLabel) }, 2, "[0 0 1] 2"},
		"over zones":                  {func(k *market) { spreadOver(k.waiting(8, 1000, 64), zoneLabel) }, -1, "[2 0 0] 0"},
		"over zones, with others":     {func(k *market) { spreadOver(k.waiting(2, 1000, 64), zoneLabel); k.waiting(3, 1000, 64) }, -1, "[1 0 1] 0"},
		"one on each, with others":    {func(k *market) { apart(k.waiting(2, 1000, 64), hostLabel); k.waiting(6, 1000, 64) }, -1, "[2 0 0] 0"},
		"each zone in turn": {func(k *market) {
			for _, zone := range []string{"a", "b"} {
				k.s.Nodes = append(k.s.Nodes, &cluster.Node{Name: cluster.NodeName(zone), Labels: map[string]string{zoneLabel: zone}, Ready: cluster.StatusTrue})
			}
			spreadOver(k.waiting(8, 1000, 64), zoneLabel)
		}, -1, "[0 1 4] 0"},
		"one on each, far over the end": {func(k *market) { k.s.Groups[2].Max = 2; apart(k.waiting(12, 1000, 64), hostLabel) }, 2, "[0 0 2] 10"},
		"a large one is used up first": {func(k *market) {
			apart(k.waiting(1, 3000, 64), hostLabel)
			apart(k.waiting(12, 500, 64), hostLabel)
		}, -1, "[1 0 11] 0"},
		"a rest for small ones": {func(k *market) { apart(k.waiting(9, 10, 64), hostLabel); k.waiting(9, 990, 64) }, -1, "[2 0 7] 0"},
		"a rest at the bound":   {func(k *market) { apart(k.waiting(20, 10, 64), hostLabel); k.waiting(5, 990, 64) }, -1, "[1 0 19] 0"},
		"five kinds on one": {func(k *market) {
			for cpu := int64(700); cpu <= 800; cpu += 25 {
				apart(k.waiting(1, cpu, 64), hostLabel)
			}
		}, -1, "[1 0 0] 0"},
		"others that only one group takes": {func(k *market) {
			apart(k.waiting(1, 10, 64), hostLabel)
			k.waiting(4, 990, 64).NodeSelector = map[string]string{"pool": "dear"}
		}, -1, "[0 1 0] 0"},
		"pods that only one group takes": {func(k *market) { k.waiting(4, 990, 64).NodeSelector = map[string]string{"pool": "dear"} }, -1, "[0 1 0] 0"},
		"one large among many":           {func(k *market) { k.waiting(1, 3000, 64); k.waiting(9, 1000, 64) }, -1, "[3 0 0] 0"},
		"too large, on each host":        {func(k *market) { apart(k.waiting(2, 9000, 64), hostLabel) }, -1, "[0 0 0] 2"},
	} {
		k := newMarket()
		k.group("small", "a", 1000, 8192, 1.2)
		k.group("big", "a", 4000, 8192, 4)
		k.group("dear", "b", 4000, 8192, 9)
		slices.SortFunc(k.s.Groups, func(a, b cluster.NodeGroup) int { return int(a.ID[0]) - int(b.ID[0]) })
		c.build(k)
		j := k.model()
		groups := j.groups
		if c.only >= 0 {
			groups = []int{c.only}
		}
		x, left := make([]int, len(j.cost)), j.waiting()
		total := j.coverLeft(x, left, groups)
		if got := fmt.Sprint(x, total); got != c.want || sumOf(left) != total {
			t.Errorf("%s: %s, left are %v", name, got, left)
		}
	}
}

// TestCandidates: purchases that differ and that the limits allow; where pods are spread over zones, one with as many machines in
// each. No trial comes before the first two.
func TestCandidates(t *testing.T) {
	build := func(change func(k *market)) *model {
		k := newMarket()
		k.group("a", "a", 4000, 8192, 4)
		k.group("b", "b", 4000, 8192, 4)
		k.group("c", "b", 4000, 8192, 5)
		k.group("d", "d", 2000, 8192, 4)
		change(k)
		return k.model()
	}
	plain := func(k *market) { k.waiting(16, 1000, 64) }
	spread := func(k *market) { plain(k); spreadOver(&k.s.Classes[0], zoneLabel) }
	all := func(j *model) (out []string) {
		for _, c := range j.candidates() {
			out = append(out, fmt.Sprint(c.machines, c.price))
		}
		return out
	}
	for name, c := range map[string]struct {
		change func(k *market)
		want   string
	}{
		"plain pods":  {plain, "[[4 0 0 0] 20 [0 4 0 0] 20 [0 0 4 0] 24 [0 0 0 8] 40]"},
		"a limit":     {func(k *market) { plain(k); k.p.MaxNodesTotal = 4 }, "[[4 0 0 0] 20 [0 4 0 0] 20 [0 0 0 4] 20 [0 0 4 0] 24]"},
		"a maximum":   {func(k *market) { plain(k); k.s.Groups[0].Max = 3 }, "[[3 1 0 0] 20 [0 4 0 0] 20 [0 0 4 0] 24 [0 0 0 8] 40]"},
		"spread pods": {spread, "[[4 0 0 0] 20 [0 4 0 0] 20 [2 2 0 0] 20 [0 0 4 0] 24 [0 0 0 8] 40]"},
	} {
		j := build(c.change)
		if got := fmt.Sprint(all(j)); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	j := build(spread)
	if got := fmt.Sprint(j.overZones([]int{3, 0, 1, 2})); got != "[1 2 1 2]" {
		t.Errorf("over zones: %s", got)
	}
	if got := fmt.Sprint(build(plain).overZones([]int{3, 0, 1, 2})); got != "[3 0 1 2]" {
		t.Errorf("pods that are not spread: %s", got)
	}
	j.limit = 0
	j.sim.Steps = 1
	if n := len(j.covers()); n != 1 {
		t.Errorf("%d purchases without steps", n)
	}
}

// TestZones: which zones are in use, and which groups are in them.
func TestZones(t *testing.T) {
	for name, c := range map[string]struct {
		build func(k *market)
		x     []int
		want  string
	}{
		"nothing is spread": {func(k *market) { k.waiting(2, 100, 64) }, []int{1, 0, 0}, "not asked"},
		"spread over hosts": {func(k *market) { spreadOver(k.waiting(2, 100, 64), hostLabel) }, []int{1, 0, 0}, "not asked"},
		"apart in zones":    {func(k *market) { apart(k.waiting(2, 100, 64), zoneLabel) }, []int{1, 0, 0}, "not asked"},
		"there is one zone": {func(k *market) {
			spreadOver(k.waiting(2, 100, 64), zoneLabel)
			for g := range k.s.Groups {
				k.s.Groups[g].Template.Labels = map[string]string{zoneLabel: "a"}
			}
		}, []int{1, 0, 0}, "not asked"},
		"no node is there": {func(k *market) { spreadOver(k.waiting(2, 100, 64), zoneLabel) }, []int{0, 0, 0}, "0 zones, groups []"},
		"one is bought":    {func(k *market) { spreadOver(k.waiting(2, 100, 64), zoneLabel) }, []int{1, 0, 0}, "1 zones, groups [0]"},
		"two, of one zone": {func(k *market) { spreadOver(k.waiting(2, 100, 64), zoneLabel) }, []int{0, 1, 1}, "1 zones, groups [1 2]"},
		"in all zones":     {func(k *market) { spreadOver(k.waiting(2, 100, 64), zoneLabel) }, []int{1, 0, 1}, "2 zones, groups []"},
		"one is upcoming": {func(k *market) {
			spreadOver(k.waiting(2, 100, 64), zoneLabel)
			k.s.Groups[0].Target = 1
		}, []int{0, 0, 0}, "1 zones, groups [0]"},
		"a node is there": {func(k *market) {
			spreadOver(k.waiting(2, 3000, 64), zoneLabel)
			k.s.Nodes = []*cluster.Node{{Name: "n", Labels: map[string]string{zoneLabel: "b"}, Ready: cluster.StatusTrue}}
		}, []int{0, 0, 0}, "1 zones, groups [1 2]"},
	} {
		k := newMarket()
		k.group("a", "a", 4000, 8192, 4)
		k.group("b", "b", 4000, 8192, 4)
		k.group("c", "b", 4000, 4096, 3)
		c.build(k)
		j := k.model()
		got := "not asked"
		if j.zonesInUse != nil {
			got = fmt.Sprintf("%d zones, groups %v", j.zonesWith(c.x), j.sameZones(c.x))
		} else if j.sameZones(c.x) != nil || j.zonesWith(c.x) != 0 {
			t.Errorf("%s: zones of pods that are not spread", name)
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestWithin: the machines of a balanced set have to go on its groups.
func TestWithin(t *testing.T) {
	k := newMarket()
	k.group("a", "a", 4000, 8192, 4).Max = 1
	k.group("b", "b", 4000, 8192, 4).Max = 1
	k.waiting(1, 1000, 64)
	apart(k.waiting(1, 1000, 64), hostLabel)
	j := k.model()
	j.balanced[0] = []int{0, 1}
	for n, want := range []bool{true, true, true, false} {
		if got := j.within([]int{n, 0}); got != want {
			t.Errorf("%d machines: %v", n, got)
		}
	}
	if j.constrained(0) || !j.constrained(1) {
		t.Error("of two classes the one that keeps off its own kind depends on others")
	}
}

package purchase

import (
	"fmt"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

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
	b := k.board()
	if got := fmt.Sprint(b.queue(0)); got != "[{2 1} {3 1} {0 8} {1 8} {0 2}]" {
		t.Errorf("the queue is %s", got)
	}
	seen := map[string]bool{}
	for draw := range finalDraws {
		q := b.queue(draw)
		if draw > 0 && (q[0] != run{2, 1} || q[1] != run{3, 1}) {
			t.Errorf("draw %d begins with %v", draw, q[:2])
		}
		n := map[int]int{}
		for _, r := range q {
			n[r.class] += r.n
		}
		if fmt.Sprint(n) != "map[0:10 1:8 2:1 3:1]" {
			t.Errorf("draw %d has %v", draw, n)
		}
		seen[fmt.Sprint(q)] = true
	}
	if len(seen) < finalDraws/2 { // names differ in their last letters, and so do hashes: some draws are alike
		t.Errorf("%d orders in %d draws", len(seen), finalDraws)
	}
	node := cluster.Resources{MilliCPU: 2500, Memory: 1 << 30, Pods: 9}
	k.s.Nodes = []*cluster.Node{{Name: "n", Ready: cluster.StatusTrue, Allocatable: node, Capacity: node}}
	if got := fmt.Sprint(k.board().queue(0)); got != "[{0 8} {1 8} {0 2}]" {
		t.Errorf("beside a node the queue is %s", got)
	}
}

// TestCover: which machines cover the pods that wait: those that take most for their price, one group as far as it goes.
func TestCover(t *testing.T) {
	for name, c := range map[string]struct {
		build func(k *market)
		only  int    // of this group alone; -1: of all
		want  string // machines by group: big, small; and the pods that remain
	}{
		"one pod":             {func(k *market) { k.waiting(1, 900, 64) }, -1, "[0 1] 0"},
		"many":                {func(k *market) { k.waiting(8, 1000, 64) }, -1, "[2 0] 0"},
		"the rest":            {func(k *market) { k.waiting(9, 1000, 64) }, -1, "[2 1] 0"},
		"of one group":        {func(k *market) { k.waiting(9, 1000, 64) }, 1, "[0 9] 0"},
		"too large for it":    {func(k *market) { k.waiting(2, 2000, 64) }, 1, "[0 0] 2"},
		"at its maximum":      {func(k *market) { k.s.Groups[0].Max = 1; k.waiting(8, 1000, 64) }, -1, "[1 4] 0"},
		"no machine is empty": {func(k *market) { apart(k.waiting(4, 500, 64), zoneLabel) }, -1, "[0 1] 3"},
		"some open others":    {func(k *market) { follow(k.waiting(2, 900, 64), k.waiting(1, 100, 64)) }, -1, "[0 2] 0"},
	} {
		k := newMarket()
		k.group("big", "z", 4000, 8192, 3)
		k.group("small", "z", 1000, 2048, 1)
		c.build(k)
		b := k.board()
		x, left, groups := b.none(), slices.Clone(b.left), b.groups
		if c.only >= 0 {
			groups = []int{c.only}
		}
		before := b.sim.Nodes()
		b.cover(x, left, groups)
		if got := fmt.Sprint(x, " ", sum(left)); got != c.want || b.sim.Nodes() != before {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// follow lets the pods of a class go only into zones where one of another class is.
func follow(c, other *cluster.PodClass) {
	c.PodAffinity = []cluster.PodTerm{{TopologyKey: zoneLabel, Namespaces: []string{"d"}, Selector: ownSelector(other)}}
}

// TestMissing: what the machines that a purchase lacks cost at least, for the resource that is shortest.
func TestMissing(t *testing.T) {
	b := &board{rooms: [][]int64{{4, 8}, {2, 16}, nil, {0, 100}}, cost: []float64{4, 3, 0, 10}, groups: []int{0, 1, 3}}
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
		if got := b.missing(c.x, c.need); !(got > c.want-1e-9 && got < c.want+1e-9) {
			t.Errorf("%v of %v: %g, want %g", c.x, c.need, got, c.want)
		}
	}
	b.groups = []int{3}
	if got := b.missing(make([]int, 4), []int64{4, 0}); got != 0 {
		t.Errorf("%g for what no group sells", got)
	}
}

// TestExchanges: each step saves, no step is there twice, and many machines go at once where there are many.
func TestExchanges(t *testing.T) {
	b := &board{cost: []float64{1, 2.5, 9}, rooms: [][]int64{{1, 4}, {2, 8}, {8, 32}}, groups: []int{0, 1, 2}}
	x := []int{40, 0, 1}
	all := b.exchanges(x)
	has := func(e exchange) bool {
		return slices.ContainsFunc(all, func(o exchange) bool { return o.out == e.out && o.n == e.n && o.in == e.in && o.m == e.m })
	}
	for _, e := range []exchange{{out: 0, n: 1, in: 0}, {out: 0, n: 40, in: 0}, {out: 0, n: 20, in: 0}, {out: 0, n: 3, in: 1, m: 1}, {out: 0, n: 40, in: 2, m: 4}, {out: 2, n: 1, in: 1, m: 3}, {out: 2, n: 1, in: 0, m: 2}} {
		if !has(e) {
			t.Errorf("%+v is missing", e)
		}
	}
	for i, e := range all {
		y := slices.Clone(x)
		y[e.out] -= e.n
		y[e.in] += e.m
		if saves := b.price(x) - b.price(y); saves <= 0 || saves-e.saves > 1e-9 || e.saves-saves > 1e-9 {
			t.Errorf("%+v saves %g", e, saves)
		}
		if i > 0 && all[i-1].saves < e.saves {
			t.Errorf("%+v comes after %+v", e, all[i-1])
		}
	}
}

// TestPlaceContents: pods go on the machines that they count on. A spread that another machine has closed since keeps none off, other rules do.
func TestPlaceContents(t *testing.T) {
	for name, c := range map[string]struct {
		build func(k *market)
		all   []content
		left  string // by class
	}{
		"two machines":            {func(k *market) { k.waiting(3, 2000, 64) }, []content{{Machine: 1, Node: -1, Pods: []podRun{{N: 1}}}, {Machine: 2, Node: -1, Pods: []podRun{{N: 2}}}}, "[0]"},
		"one has room for two":    {func(k *market) { k.waiting(3, 2000, 64) }, []content{{Machine: 1, Node: -1, Pods: []podRun{{N: 3}}}}, "[3]"},
		"a spread over hosts":     {func(k *market) { spreadOver(k.waiting(3, 1000, 64), hostname) }, []content{{Machine: 1, Node: -1, Pods: []podRun{{N: 3}}}}, "[0]"},
		"apart from each other":   {func(k *market) { apart(k.waiting(3, 1000, 64), hostname) }, []content{{Machine: 1, Node: -1, Pods: []podRun{{N: 3}}}}, "[2]"},
		"one waits for the other": {func(k *market) { follow(k.waiting(1, 500, 64), k.waiting(1, 100, 64)) }, []content{{Machine: 1, Node: -1, Pods: []podRun{{Class: 0, N: 1}}}, {Machine: 2, Node: -1, Pods: []podRun{{Class: 1, N: 1}}}}, "[0 0]"},
	} {
		k := newMarket()
		k.group("a", "z", 4000, 8192, 1)
		c.build(k)
		b := k.board()
		b.add(0)
		b.add(0)
		b.placeContents(c.all)
		if got := fmt.Sprint(b.left); got != c.left {
			t.Errorf("%s: left %s, want %s", name, got, c.left)
		}
	}
}

// TestTooLarge: the first number by which a round is too large, at each bound.
func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		pods, classes, groups int
		want                  string
	}{
		{6000, 200, 64, ""},
		{1, 1, 65, "65 node groups"},
		{6001, 1, 1, "6001 pods"},
		{201, 201, 1, "201 classes of pods"},
	} {
		k := newMarket()
		for g := range c.groups {
			k.group(cluster.GroupID(fmt.Sprint(g)), "z", 1000, 1024, 1)
		}
		for i := range c.classes {
			k.waiting(c.pods/c.classes+min(max(c.pods%c.classes-i, 0), 1), int64(1+i), 1)
		}
		if got := tooLarge(k.buyer().State, slices.Repeat([]bool{true}, c.groups)); got != c.want {
			t.Errorf("%d pods of %d classes, %d groups: %q, want %q", c.pods, c.classes, c.groups, got, c.want)
		}
	}
}

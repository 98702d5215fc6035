package packing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestNames: which expanders a chain names, and which of its names no build knows.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		chain, used, unknown string
		priorities           bool
	}{
		{"", "least-waste", "", false},
		{"price", "price", "", false},
		{" price , priority,,", "price priority", "", true},
		{"cheapest", "least-waste", "cheapest", false},
		{"cheapest,most-pods", "most-pods", "cheapest", false},
	} {
		w := newWorld(c.chain)
		w.group("a", 4)
		used, unknown := strings.Join(w.packer().expanderNames(), " "), strings.Join(UnknownExpanders(c.chain), " ")
		if used != c.used || unknown != c.unknown || UsesPriorities(c.chain) != c.priorities {
			t.Errorf("%q: uses %q, does not know %q, priorities %v; want %+v", c.chain, used, unknown, UsesPriorities(c.chain), c)
		}
	}
}

// TestMoneyFirst: least-waste goes by money first where every group has a price.
func TestMoneyFirst(t *testing.T) {
	for _, c := range []struct {
		chain string
		a, b  float64
		want  string
	}{
		{"least-waste", 1, 2, "price least-waste"},
		{"least-waste", 1, 0, "least-waste"},
		{"least-waste", 0, 2, "least-waste"},
		{"least-nodes,least-waste", 1, 2, "least-nodes least-waste"},
		{"", 1, 2, "price least-waste"},
	} {
		w := newWorld(c.chain)
		w.group("a", 4).Price = c.a
		w.group("b", 4).Price = c.b
		p := w.packer()
		if got := strings.Join(p.expanderNames(), " "); got != c.want {
			t.Errorf("%s with prices %v and %v: %s, want %s", c.chain, c.a, c.b, got, c.want)
		}
		one := len(strings.Fields(c.want)) == 1
		if first, again := p.OneExpander(), p.OneExpander(); first != one || again != one {
			t.Errorf("%s with prices %v and %v: one expander %v, asked again %v", c.chain, c.a, c.b, first, again)
		}
	}
}

// TestCompare: which of two purchases an expander likes better.
func TestCompare(t *testing.T) {
	own := 5
	for _, c := range []struct {
		name, chain string
		a, b        Purchase
		want        int
	}{
		{"less waste", "least-waste", Purchase{waste: 0.2}, Purchase{waste: 0.3}, -1},
		{"more waste", "least-waste", Purchase{waste: 0.4}, Purchase{waste: 0.3}, 1},
		{"waste that differs by rounding", "least-waste", Purchase{waste: 0.3, fresh: 2}, Purchase{waste: math.Nextafter(0.3, 1), fresh: 1}, 1},
		{"no waste", "least-waste", Purchase{fresh: 2}, Purchase{fresh: 1}, 1},
		{"cheaper", "price", Purchase{price: 1, podValue: 1}, Purchase{price: 2, podValue: 1}, -1},
		{"cheaper for what it holds", "price", Purchase{price: 3, podValue: 4}, Purchase{price: 1, podValue: 1}, -1},
		{"without a price", "price", Purchase{podValue: 1}, Purchase{price: 9, podValue: 1}, 1},
		{"beside one without a price", "price", Purchase{price: 9, podValue: 1}, Purchase{podValue: 1}, -1},
		{"both without a price", "price", Purchase{podValue: 1, fresh: 1}, Purchase{podValue: 2, fresh: 3}, -1},
		{"fewer machines", "least-nodes", Purchase{fresh: 2}, Purchase{fresh: 3}, -1},
		{"more pods", "most-pods", Purchase{pods: 3, helpers: 1}, Purchase{pods: 2, helpers: 1}, -1},
		{"more pods for a machine", "most-pods", Purchase{pods: 6, helpers: 3}, Purchase{pods: 5, helpers: 2}, 1},
		{"the next decides", "least-nodes,most-pods", Purchase{fresh: 2, pods: 3, helpers: 1}, Purchase{fresh: 2, pods: 2, helpers: 1}, -1},
		{"the first has decided", "least-nodes,most-pods", Purchase{fresh: 3, pods: 3, helpers: 1}, Purchase{fresh: 2, pods: 2, helpers: 1}, 1},
		{"a better tier", "priority", Purchase{group: 0}, Purchase{group: 1}, -1},
		{"a worse tier", "priority", Purchase{group: 2}, Purchase{group: 1}, 1},
		{"tiers of purchases", "priority", Purchase{machines: []int{1, 0, 1}, fresh: 2}, Purchase{machines: []int{0, 2, 0}, fresh: 2}, 1},
		{"fewer of the last tier", "priority", Purchase{machines: []int{1, 0, 1}, fresh: 2}, Purchase{machines: []int{0, 1, 1}, fresh: 2}, -1},
		{"a smaller share of the last tier", "priority", Purchase{machines: []int{0, 2, 1}, fresh: 3}, Purchase{machines: []int{1, 0, 1}, fresh: 2}, -1},
		{"one group beside several", "priority", Purchase{group: 1, fresh: 2}, Purchase{machines: []int{1, 0, 1}, fresh: 2}, -1},
		{"one group of the last tier beside several", "priority", Purchase{group: 2, fresh: 2}, Purchase{machines: []int{1, 0, 1}, fresh: 2}, 1},
		{"several beside one group", "priority", Purchase{machines: []int{1, 0, 1}, fresh: 2}, Purchase{group: 1, fresh: 2}, 1},
		{"all in the best tier", "priority", Purchase{machines: []int{1, 0, 0}, fresh: 1}, Purchase{machines: []int{2, 0, 0}, fresh: 2}, -1},
	} {
		w := newWorld(c.chain)
		w.group("a", 4).Priority = &own
		w.group("b", 4)
		w.group("c", 4)
		w.p.Priorities = []cluster.PriorityTier{{Priority: 3, Patterns: []string{"b"}}}
		if got := w.packer().Compare(&c.a, &c.b); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestCompareAfterFirst: what the first expander leaves open goes to the others, and then to the smaller machines.
func TestCompareAfterFirst(t *testing.T) {
	w := newWorld("least-nodes,least-waste")
	w.group("a", 4)
	for _, c := range []struct {
		a, b Purchase
		want int
	}{
		{Purchase{fresh: 3, waste: 0.1}, Purchase{fresh: 2, waste: 0.2}, -1},
		{Purchase{fresh: 3, size: 1}, Purchase{fresh: 2, size: 2}, 1},
		{Purchase{fresh: 2, size: 1}, Purchase{fresh: 2, size: 2}, -1},
	} {
		if got := w.packer().CompareAfterFirst(&c.a, &c.b); got != c.want {
			t.Errorf("%+v and %+v: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestPriorities: the tier of each group, 0 is the best.
func TestPriorities(t *testing.T) {
	own := 7
	for name, c := range map[string]struct {
		tiers []cluster.PriorityTier
		own   string
		want  string
	}{
		"no map":                {nil, "", "[0 0 0]"},
		"one tier":              {[]cluster.PriorityTier{{Priority: 10, Patterns: []string{"^a$", "c"}}}, "", "[0 1 0]"},
		"the highest of two":    {[]cluster.PriorityTier{{Priority: 20, Patterns: []string{"a"}}, {Priority: 10, Patterns: []string{".*"}}}, "", "[0 1 1]"},
		"the highest, last":     {[]cluster.PriorityTier{{Priority: 10, Patterns: []string{".*"}}, {Priority: 20, Patterns: []string{"a"}}}, "", "[0 1 1]"},
		"a pattern with a typo": {[]cluster.PriorityTier{{Priority: 10, Patterns: []string{"(", "b"}}}, "", "[1 0 1]"},
		"its own":               {[]cluster.PriorityTier{{Priority: 10, Patterns: []string{".*"}}, {Priority: 5, Patterns: []string{"c"}}}, "c", "[0 0 1]"},
		"negative":              {[]cluster.PriorityTier{{Priority: -10, Patterns: []string{"b"}}}, "", "[1 0 1]"},
	} {
		w := newWorld("priority")
		for _, id := range []string{"a", "b", "c"} {
			w.group(id, 4)
		}
		w.p.Priorities = c.tiers
		if c.own != "" {
			w.g(c.own).Priority = &own
		}
		if got := fmt.Sprint(w.packer().priorityTiers()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestMachineRanks: how well the expanders like a machine of each group, 0 is the best.
func TestMachineRanks(t *testing.T) {
	for _, c := range []struct{ chain, want string }{
		{"price", "[0 1 2 3]"},
		{"least-waste", "[1 0 1 2]"},
		{"least-nodes", "[1 0 1 2]"},
		{"least-nodes,price", "[0 1 2 3]"},
		{"priority,price", "[1 2 0 3]"},
	} {
		w := newWorld(c.chain)
		w.group("a", 4).Price = 1
		w.group("b", 2).Price = 2
		w.group("c", 4).Price = 3
		w.group("d", 8) // without a price: after those with one
		w.p.Priorities = []cluster.PriorityTier{{Priority: 3, Patterns: []string{"c"}}}
		if got := fmt.Sprint(w.packer().MachineRanks()); got != c.want {
			t.Errorf("%s: %s, want %s", c.chain, got, c.want)
		}
	}
	if got := newWorld("price").packer().MachineRanks(); len(got) != 0 {
		t.Errorf("ranks %v of no groups", got)
	}
}

// TestCosts: what a machine of each group costs, and what another purchase must save.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		name, chain string
		change      func(*world)
		want        string
	}{
		{"by price", "price", func(*world) {}, "[1.3 2.3] 0"},
		{"a group without a price", "price", func(w *world) { w.g("b").Price = 0 }, "[] 0"},
		{"by size", "least-waste", func(w *world) { w.g("b").Price = 0 }, "[5.1 2.5] 0.03"},
		{"machines of no known size", "least-waste", func(w *world) { w.g("b").Price, w.g("b").Template.Capacity = 0, cluster.Resources{} }, "[] 0"},
		{"by number", "least-nodes", func(*world) {}, "[1 1] 0"},
		{"by the pods that they help", "most-pods", func(*world) {}, "[] 0"},
		{"in an order", "priority", func(*world) {}, "[] 0"},
		{"at random", "random,price", func(*world) {}, "[] 0"},
		{"a machine that would strand", "price", func(w *world) {
			w.g("a").Template.Labels[zone], w.g("b").Template.Labels[zone] = "a", "b"
			w.pods(1, "web", 3000, spread(zone)) // too large for b
		}, "[1.3 4.5] 0"},
	} {
		w := newWorld(c.chain)
		w.group("a", 4).Price = 1
		w.group("b", 2).Price = 2
		c.change(w)
		cost, margin := w.packer().Costs()
		for i := range cost {
			cost[i] = math.Round(cost[i]*10) / 10
		}
		if got := fmt.Sprint(cost, margin); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPurchaseOf: what a purchase is to the expanders.
func TestPurchaseOf(t *testing.T) {
	rooms := [][]int64{{4000, 8000}, {0, 0}, {2000, 4000}}
	for _, c := range []struct {
		name     string
		machines []int
		want     string
	}{
		{"nothing", []int{0, 0, 0}, "0 machines at 0 of size 0.0, 0 pods of 0, waste 0"},
		{"of two groups", []int{1, 0, 2}, "3 machines at 7.75 of size 10.1, 14 pods of 3, waste 1.625"},
		{"of a group without a price and one with", []int{0, 1, 1}, "2 machines at 0 of size 3.8, 4 pods of 2, waste 0.5"},
		{"with a group without a price", []int{1, 1, 0}, "2 machines at 0 of size 6.3, 6 pods of 2, waste 1.25"},
		{"of a group without a price alone", []int{0, 1, 0}, "1 machines at 0 of size 1.3, 0 pods of 1, waste 0"},
		{"of the last with a price", []int{0, 0, 1}, "1 machines at 3.25 of size 2.5, 4 pods of 1, waste 0.5"},
	} {
		w := newWorld("price,most-pods")
		w.group("a", 4).Price = 1
		w.group("b", 2).Price = 3
		w.group("aa", 1)
		w.pods(4, "web", 1500)
		w.pods(2, "log", 3000)
		told := func(p Purchase) string {
			return fmt.Sprintf("%d machines at %v of size %.1f, %d pods of %d, waste %v", p.fresh, p.price, p.size, p.pods, p.helpers, p.waste)
		}
		p := w.packer()
		if got := told(p.PurchaseOf(c.machines, rooms, [2]float64{1000, 4000})); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		p.ByFirstAlone(func() {
			if x := p.PurchaseOf(c.machines, rooms, [2]float64{1000, 4000}); x.pods != 0 || !p.OneExpander() {
				t.Errorf("%s: %d pods are counted for an expander that is left out", c.name, x.pods)
			}
		})
		if p.OneExpander() || !slices.Equal(p.expanderNames(), []string{"price", "most-pods"}) {
			t.Errorf("%s: the chain is %v after it was asked for its first alone", c.name, p.expanderNames())
		}
	}
}

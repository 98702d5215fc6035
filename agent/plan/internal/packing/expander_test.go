package packing

import (
	"fmt"
	"math"
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
		{"more pods", "most-pods", Purchase{pods: 3}, Purchase{pods: 2}, -1},
		{"the next decides", "least-nodes,most-pods", Purchase{fresh: 2, pods: 3}, Purchase{fresh: 2, pods: 2}, -1},
		{"the first has decided", "least-nodes,most-pods", Purchase{fresh: 3, pods: 3}, Purchase{fresh: 2, pods: 2}, 1},
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

// TestOrderedCosts holds the costs of each expander, and of chains, against figures by hand.
func TestOrderedCosts(t *testing.T) {
	for _, c := range []struct {
		name, chain string
		change      func(*world)
		want        string
		adds        bool
	}{
		{"by price", "price", func(*world) {}, "[1.3 2.3]", true},
		{"a group without a price comes last", "price", func(w *world) { w.g("b").Price = 0 }, "[1.3 316.7]", false},
		{"no group has a price", "price,least-nodes", func(w *world) { w.g("a").Price, w.g("b").Price = 0, 0 }, "[1 1]", false},
		{"by size", "least-waste", func(w *world) { w.g("b").Price = 0 }, "[5.1 2.5]", true},
		{"by number", "least-nodes", func(*world) {}, "[1 1]", true},
		{"by the pods that they help, and then by price", "most-pods,price", func(*world) {}, "[1.3 2.3]", false},
		{"in an order", "priority,price", func(w *world) { w.p.Priorities = []cluster.PriorityTier{{Priority: 3, Patterns: []string{"b"}}} }, "[125 2.3]", false},
		{"in an order without entries", "priority,price", func(*world) {}, "[1.3 2.3]", false},
		{"a machine that would strand", "price", func(w *world) {
			w.g("a").Template.Labels[zone], w.g("b").Template.Labels[zone] = "a", "b"
			w.pods(1, "web", 3000, spread(zone)) // too large for b
		}, "[1.3 4.5]", true},
	} {
		w := newWorld(c.chain)
		w.group("a", 4).Price = 1
		w.group("b", 2).Price = 2
		c.change(w)
		p := w.packer()
		cost := p.OrderedCosts()
		for i := range cost {
			cost[i] = math.Round(cost[i]*10) / 10
		}
		if got := fmt.Sprint(cost); got != c.want || p.costsAdd() != c.adds {
			t.Errorf("%s: %s, they add up: %v, want %s", c.name, got, p.costsAdd(), c.want)
		}
	}
}

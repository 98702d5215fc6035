package purchase

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
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
		w := newMarket()
		w.p.Expander = c.chain
		w.group("a", "z", 4000, 8192, 0)
		used, unknown := strings.Join(w.buyer().expanderNames(), " "), strings.Join(UnknownExpanders(c.chain), " ")
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
		w := newMarket()
		w.p.Expander = c.chain
		w.group("a", "z", 4000, 8192, c.a)
		w.group("b", "z", 4000, 8192, c.b)
		p := w.buyer()
		if got := strings.Join(p.expanderNames(), " "); got != c.want {
			t.Errorf("%s with prices %v and %v: %s, want %s", c.chain, c.a, c.b, got, c.want)
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
		w := newMarket()
		w.p.Expander = "priority"
		for _, id := range []string{"a", "b", "c"} {
			w.group(cluster.GroupID(id), "z", 4000, 8192, 0)
		}
		w.p.Priorities = c.tiers
		if c.own != "" {
			w.g(c.own).Priority = &own
		}
		if got := fmt.Sprint(w.buyer().priorityTiers()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestOrderedCosts holds the costs of each expander, and of chains, against figures by hand.
func TestOrderedCosts(t *testing.T) {
	for _, c := range []struct {
		name, chain string
		change      func(*market)
		want        string
	}{
		{"by price", "price", func(*market) {}, "[1.3 2.3]"},
		{"a group without a price comes last", "price", func(w *market) { w.g("b").Price = 0 }, "[1.3 316.7]"},
		{"no group has a price", "price,least-nodes", func(w *market) { w.g("a").Price, w.g("b").Price = 0, 0 }, "[1 1]"},
		{"by size", "least-waste", func(w *market) { w.g("b").Price = 0 }, "[5.1 2.5]"},
		{"by number", "least-nodes", func(*market) {}, "[1 1]"},
		{"by the pods that they help, and then by price", "most-pods,price", func(*market) {}, "[1.3 2.3]"},
		{"in an order", "priority,price", func(w *market) { w.p.Priorities = []cluster.PriorityTier{{Priority: 3, Patterns: []string{"b"}}} }, "[125 2.3]"},
		{"in an order without entries", "priority,price", func(*market) {}, "[1.3 2.3]"},
		{"a machine that would strand", "price", func(w *market) {
			w.g("a").Template.Labels[zoneLabel], w.g("b").Template.Labels[zoneLabel] = "a", "b"
			spreadOver(w.waiting(1, 3000, 256), zoneLabel) // too large for b
		}, "[1.3 4.5]"},
	} {
		w := newMarket()
		w.p.Expander = c.chain
		w.group("a", "z", 4000, 8192, 1)
		w.group("b", "z", 2000, 4096, 2)
		c.change(w)
		p := w.buyer()
		cost := p.orderedCosts()
		for i := range cost {
			cost[i] = math.Round(cost[i]*10) / 10
		}
		if got := fmt.Sprint(cost); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPricesOf: a machine more counts for a quarter of the cheapest one, and what has no price has none.
func TestPricesOf(t *testing.T) {
	var groups []round.Group
	for _, price := range []float64{0.5, 0, 0.25} {
		groups = append(groups, round.Group{NodeGroup: &cluster.NodeGroup{Price: price}})
	}
	if got, want := pricesOf(groups), []float64{0.5625, 0, 0.3125}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := pricesOf(groups[1:2]); got[0] != 0 {
		t.Errorf("no group has a price, and %v", got)
	}
}

package scaleup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/purchase"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// groupOf is a group of a chain's world.
type groupOf struct {
	id      string
	cpus    int64
	gibs    int64
	price   float64
	prio    int
	webOnly bool // it does not take the class db
}

var pool = map[string]string{"pool": "any"}

// chainWorld is a round with 8 pods of the class web and so many of the class db, which take the same room.
func chainWorld(chain string, db int, groups ...groupOf) *Planner {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	size := cluster.Resources{MilliCPU: 1000, Memory: 4 << 30, Pods: 1}
	s := cluster.Snapshot{Now: now, Classes: []cluster.PodClass{{Namespace: "n", Labels: map[string]string{"app": "web"}, Requests: size}, {Namespace: "n", Labels: map[string]string{"app": "db"}, Requests: size, NodeSelector: pool}}}
	for _, g := range groups {
		a := cluster.Resources{MilliCPU: 1000 * g.cpus, Memory: g.gibs << 30, Pods: 110}
		x := cluster.NodeGroup{ID: cluster.GroupID(g.id), Max: 50, ReadAt: now, Price: g.price, Priority: &g.prio, Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a, Labels: pool}}
		if g.webOnly {
			x.Template.Labels = nil
		}
		s.Groups = append(s.Groups, x)
	}
	for i := range 8 + db {
		class := min(i/8, 1)
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("n/p-%05d", i)), UID: cluster.UID(fmt.Sprint(i)), Class: class, Created: cluster.At(now), Unschedulable: cluster.At(now),
			Owner: &cluster.Owner{Kind: "ReplicaSet", UID: cluster.UID(fmt.Sprint("rs", class))}})
	}
	w := round.New(new(round.Cache), &s, &decision.Memory{}, &decision.Policy{Expander: chain, RandomSeed: 7, FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45})
	w.Index()
	w.Account()
	w.Health()
	growth.Judge(w)
	w.Gather()
	p := New(w)
	p.buyer.Constrain()
	return p
}

// chains are all orders of one, two and three expanders.
func chains(names []string) (out []string) {
	for _, a := range names {
		out = append(out, a)
		for _, b := range names {
			if b == a {
				continue
			}
			out = append(out, a+","+b)
			for _, c := range names {
				if c != a && c != b {
					out = append(out, a+","+b+","+c)
				}
			}
		}
	}
	return out
}

// chosen is the purchase of a round in words.
func chosen(w *Planner, s *purchase.Solution) string {
	var out []string
	for g, n := range s.Grow {
		if n > 0 {
			out = append(out, fmt.Sprint(w.Groups[g].ID, "+", n))
		}
	}
	return strings.Join(out, " ")
}

// bought is what a round buys.
func bought(w *Planner) string { return chosen(w, w.buyer.Solve()) }

// TestChains: in a world with a group for each way of being better, all orders of up to three expanders choose the group that
// docs/configuration.md says.
func TestChains(t *testing.T) {
	for _, priced := range []bool{true, false} {
		var groups []groupOf
		for i := range 16 {
			size, gibs, price, prio := int64(1+i&1), int64(8), 0.2, 1
			if i&2 > 0 {
				gibs = 12
			}
			if i&4 > 0 {
				price = 0.1
			}
			if i&8 > 0 {
				prio = 5
			}
			if !priced {
				price = 0
			}
			groups = append(groups, groupOf{id: fmt.Sprintf("g%02d", (i*7)%16), cpus: 2 * size, gibs: gibs * size, price: price * float64(size), prio: prio})
		}
		slices.SortFunc(groups, func(a, b groupOf) int { return cmp.Compare(a.id, b.id) })
		figure := map[string]func(g *groupOf) float64{
			"price":       func(g *groupOf) float64 { return g.price / float64(g.cpus) },
			"priority":    func(g *groupOf) float64 { return -float64(g.prio) },
			"least-waste": func(g *groupOf) float64 { return float64(g.gibs) / float64(g.cpus) },
			"least-nodes": func(g *groupOf) float64 { return -float64(g.cpus) },
			"most-pods":   func(*groupOf) float64 { return 0 },
		}
		for _, e := range purchase.Expanders() {
			if figure[e] == nil && e != "random" { // a draw has none
				t.Fatalf("the expander %s has no figure", e)
			}
		}
		seen := map[string]bool{}
		for _, chain := range chains(purchase.Expanders()) {
			order := strings.Split(chain, ",")
			if order[0] == "least-waste" {
				order = slices.Insert(order, 0, "price")
			}
			order = append(order, "least-nodes", "least-waste") // what all leave open goes to fewer machines, then to smaller ones
			got := bought(chainWorld(chain, 0, groups...))
			if seen[got] = true; slices.Contains(order, "random") {
				continue
			}
			best := slices.MinFunc(groups, func(a, b groupOf) int {
				for _, e := range order {
					if c := cmp.Compare(figure[e](&a), figure[e](&b)); c != 0 {
						return c
					}
				}
				return cmp.Compare(a.id, b.id)
			})
			if want := fmt.Sprint(best.id, "+", 8/best.cpus); got != want {
				t.Errorf("%s (priced %v): %s, want %s: %+v", chain, priced, got, want, groups)
			}
		}
		if t.Logf("priced %v: %d purchases of all chains", priced, len(seen)); len(seen) < 5 {
			t.Error("the chains choose the same groups: the world tries nothing")
		}
	}
}

// TestMostPodsInAChain: of two groups between which the expanders before it leave it open, the one that helps the pods of
// both classes is bought; of those that it leaves open, the next expander has the choice.
func TestMostPodsInAChain(t *testing.T) {
	web := groupOf{id: "a", cpus: 2, gibs: 8, price: 0.1, prio: 1, webOnly: true}
	both := groupOf{id: "b", cpus: 2, gibs: 8, price: 0.1, prio: 1}
	dear := groupOf{id: "c", cpus: 2, gibs: 8, price: 0.2, prio: 5}
	for chain, want := range map[string]string{
		"price,most-pods":             "b+8",
		"price,most-pods,priority":    "b+8",
		"least-waste,most-pods":       "b+8",
		"price,priority,most-pods":    "b+8",
		"most-pods,price":             "b+8",
		"most-pods,priority":          "c+8",
		"priority,most-pods":          "c+8",
		"least-waste,most-pods,price": "b+8",
	} {
		if got := bought(chainWorld(chain, 8, web, both, dear)); got != want {
			t.Errorf("%s: %s, want %s", chain, got, want)
		}
	}
}

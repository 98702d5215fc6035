package purchase

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

const zoneLabel = "topology.kubernetes.io/zone"

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
		Template: cluster.Template{Spec: "m", Capacity: room, Allocatable: room, Labels: map[string]string{zoneLabel: zone, "pool": string(id)}}})
	return &k.s.Groups[len(k.s.Groups)-1]
}

func (k *market) g(id string) *cluster.NodeGroup {
	return &k.s.Groups[slices.IndexFunc(k.s.Groups, func(g cluster.NodeGroup) bool { return g.ID == cluster.GroupID(id) })]
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

// buyer plays the steps of a round before it buys.
func (k *market) buyer() *Buyer {
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
	p := New(w)
	p.Constrain()
	return p
}

func (k *market) board() *board {
	p := k.buyer()
	b := newBoard(p, p.orderedCosts(), way{}, 100_000, false)
	b.limit = 100_000
	return b
}

// fragmented is a market in which kube-scheduler puts two small pods on a machine each, so that a large one has room on none of two.
func fragmented(change func(k *market)) *market {
	k := newMarket()
	k.group("a", "z", 4000, 8192, 4)
	k.group("b", "z", 4000, 8192, 5)
	k.waiting(2, 1000, 64).Priority = 1
	k.waiting(1, 4000, 64)
	change(k)
	return k
}

// TestSolve: what is bought, by group.
func TestSolve(t *testing.T) {
	two := func(a, b float64) func(*market) {
		return func(k *market) { k.group("a", "x", 4000, 8192, a); k.group("b", "y", 2000, 4096, b) }
	}
	for name, c := range map[string]struct {
		groups, pods func(*market)
		want         string
		left         int
	}{
		"the cheaper for its room":     {two(1, 0.6), func(k *market) { k.waiting(8, 1000, 64) }, "[2 0]", 0},
		"one small machine":            {two(1, 0.4), func(k *market) { k.waiting(1, 1000, 64) }, "[0 1]", 0},
		"a rest on a small machine":    {two(1, 0.6), func(k *market) { k.waiting(5, 1000, 64) }, "[1 1]", 0},
		"too large for all":            {two(1, 0.6), func(k *market) { k.waiting(1, 5000, 64) }, "[0 0]", 1},
		"one a host":                   {two(1, 0.4), func(k *market) { apart(k.waiting(3, 100, 64), hostname) }, "[0 3]", 0},
		"one a zone":                   {two(1, 0.4), func(k *market) { apart(k.waiting(3, 100, 64), zoneLabel) }, "[1 1]", 1},
		"a machine for the scheduler":  {func(*market) {}, nil, "[3 0]", 0},
		"machines over equal zones":    {func(k *market) { k.group("a", "x", 2000, 8192, 1); k.group("b", "y", 2000, 8192, 1) }, func(k *market) { spreadOver(k.waiting(8, 1000, 64), zoneLabel) }, "[2 2]", 0},
		"zones by a key of one's own":  {func(k *market) { k.group("a", "x", 2000, 8192, 1); k.group("b", "x", 2000, 8192, 1) }, func(k *market) { spreadOver(k.waiting(8, 1000, 64), "pool") }, "[2 2]", 0},
		"headroom beside pods":         {two(1, 0.6), func(k *market) { headroom(k, 2, 1000); k.waiting(2, 1000, 64) }, "[1 0]", 0},
		"headroom alone":               {two(1, 0.4), func(k *market) { headroom(k, 2, 1000) }, "[0 1]", 0},
		"headroom that nothing takes":  {two(1, 0.4), func(k *market) { headroom(k, 1, 5000); k.waiting(1, 1000, 64) }, "[0 1]", 1},
		"headroom empties a spread":    {two(1, 9), func(k *market) { headroom(k, 1, 4000); spreadOver(k.waiting(2, 1000, 64), hostname) }, "[3 0]", 0},
		"up to the maximum":            {func(k *market) { k.group("a", "x", 1000, 8192, 1).Max = 2 }, func(k *market) { k.waiting(3, 1000, 64) }, "[2]", 1},
		"each machine takes one class": {two(1, 9), func(k *market) { apart(k.waiting(1, 100, 64), hostname); k.waiting(4, 1000, 64) }, "[2 0]", 0},
	} {
		k := newMarket()
		if c.groups(k); c.pods == nil {
			k = fragmented(func(*market) {})
		} else {
			c.pods(k)
		}
		p := k.buyer()
		s := p.Solve()
		if got := fmt.Sprint(s.Grow); got != c.want || s.Unplaced() != c.left {
			t.Errorf("%s: %s, %d left, want %s, %d", name, got, s.Unplaced(), c.want, c.left)
		}
		fresh := make([]int, len(p.Groups))
		for _, b := range s.Bins {
			if b.Fresh {
				fresh[b.Group]++
			}
		}
		if fmt.Sprint(fresh) != fmt.Sprint(s.Grow) {
			t.Errorf("%s: new machines %v, bought are %v", name, fresh, s.Grow)
		}
	}
}

// headroom keeps pieces of so many milli-CPU free.
func headroom(k *market, n int, cpu int64) {
	k.p.Headroom = append(k.p.Headroom, cluster.Headroom{Name: fmt.Sprint("spare", len(k.p.Headroom)), Count: n, Piece: cluster.PodClass{Requests: cluster.Resources{MilliCPU: cpu}}})
}

// TestReasons: what kube-scheduler has to do with a purchase.
func TestReasons(t *testing.T) {
	const less = "by size alone one machine less would do: kube-scheduler would leave 1 pod"
	for name, c := range map[string]struct {
		x    []int
		left int
		want string
	}{
		"nothing is bought":           {[]int{0, 0}, 0, `["" ""]`},
		"a machine more than by size": {[]int{3, 0}, 0, `["` + less + `" ""]`},
		"of two groups":               {[]int{2, 1}, 0, `["` + less + `" "` + less + `"]`},
		"two more than by size":       {[]int{4, 0}, 0, `["" ""]`},
		"no machine less would do":    {[]int{2, 0}, 0, `["" ""]`},
		"pods may be left":            {[]int{4, 0}, 2, `["kube-scheduler may leave 2 pods at first: they have room by size, and machines of their own are bought if it does" ""]`},
	} {
		b := fragmented(func(*market) {}).board()
		before := b.sim.Nodes()
		if got := fmt.Sprintf("%q", b.reasons(c.x, c.left)); got != c.want || b.sim.Nodes() != before {
			t.Errorf("%s: %s", name, got)
		}
	}
	b := fragmented(func(*market) {}).board()
	b.limit = -leastSteps - 1
	if got := fmt.Sprintf("%q", b.reasons([]int{3, 0}, 0)); got != `["" ""]` {
		t.Errorf("without steps: %s", got)
	}
}

// TestNextRound: the round after a purchase buys nothing, whether it remembers the purchase or not; pods that came since get a machine more.
func TestNextRound(t *testing.T) {
	for name, c := range map[string]struct {
		pods   func(*market)
		bought int
	}{
		"kube-scheduler scatters the small ones": {func(k *market) { k.waiting(2, 1000, 64).Priority = 1; k.waiting(1, 4000, 64) }, 3},
		"one a host":                             {func(k *market) { apart(k.waiting(3, 100, 64), hostname); k.waiting(2, 3950, 64) }, 5},
		"headroom":                               {func(k *market) { headroom(k, 2, 2000); k.waiting(2, 1000, 64) }, 2},
		"headroom beside a spread":               {func(k *market) { headroom(k, 1, 4000); spreadOver(k.waiting(2, 1000, 64), hostname) }, 3},
	} {
		k := newMarket()
		k.group("a", "z", 4000, 8192, 4)
		c.pods(k)
		s := k.buyer().Solve()
		if s.Bought() != c.bought {
			t.Errorf("%s: %d machines", name, s.Bought())
		}
		k.s.Groups[0].Target = s.Bought()
		if again := k.buyer().Solve(); again.Bought() > 0 {
			t.Errorf("%s: after a restart %d machines more", name, again.Bought())
		}
		k.waiting(4, 1000, 64)
		if again := k.buyer().Solve(); again.Unplaced() > 0 {
			t.Errorf("%s: %d of four pods that came since have no machine", name, again.Unplaced())
		}
	}
}

package packing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// drawnPacker is a round with nodes that have some room, and with pods of which some keep apart or are spread, and some
// may go on the nodes and on the machines of half of the groups.
func drawnPacker(r *rand.Rand) *Packer {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	zones, pools := 1+r.IntN(3), []string{"pool-a", "pool-b"}
	s := cluster.Snapshot{Now: now}
	for g := range 2 + r.IntN(6) {
		k := int64(1 + r.IntN(3))
		a := cluster.Resources{MilliCPU: 2000*k - 110, Memory: (8*k)<<30 - 500<<20, Pods: 110}
		x := cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprint("g", g)), Max: []int{1 + r.IntN(40), 1000}[r.IntN(2)], ReadAt: now, Price: 0.05 * float64(k),
			Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a, Labels: map[string]string{"topology.kubernetes.io/zone": fmt.Sprint(g % zones), pools[g%2]: "yes"}}}
		for range r.IntN(3) {
			id := cluster.InstanceID(fmt.Sprint("aws:///z/i-", len(s.Nodes)))
			x.Target++
			x.Instances = append(x.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: now.Add(-time.Hour)})
			name := cluster.NodeName(fmt.Sprint("n", len(s.Nodes)))
			s.Nodes = append(s.Nodes, &cluster.Node{Name: name, UID: cluster.UID(id), ProviderID: string(id), Created: now.Add(-time.Hour), Capacity: a, Allocatable: a, Ready: cluster.StatusTrue, ReadySince: now.Add(-time.Hour),
				Labels: map[string]string{"kubernetes.io/hostname": string(name), "topology.kubernetes.io/zone": fmt.Sprint(g % zones), pools[0]: "yes", pools[1]: "yes"}})
		}
		x.Max = max(x.Max, x.Target)
		s.Groups = append(s.Groups, x)
	}
	classes := 1 + r.IntN(12)
	for c := range classes {
		app := &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{fmt.Sprint(c), fmt.Sprint(r.IntN(classes))}}}}
		x := cluster.PodClass{Namespace: "n", Labels: map[string]string{"app": fmt.Sprint(c)}, Requests: cluster.Resources{MilliCPU: 50 + 10*r.Int64N(150), Memory: (64 + 16*r.Int64N(200)) << 20, Pods: 1}}
		switch r.IntN(4) {
		case 0:
			x.PodAntiAffinity = []cluster.PodTerm{{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"n"}, Selector: app}}
		case 1:
			x.Spread = []cluster.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1 + r.IntN(2), Selector: app}}
		}
		if r.IntN(2) == 0 {
			x.NodeSelector = map[string]string{pools[r.IntN(2)]: "yes"}
		}
		s.Classes = append(s.Classes, x)
	}
	for i := range 1 + r.IntN(150) {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("n/p-%03d", i)), UID: cluster.UID(fmt.Sprint(i)), Class: r.IntN(classes), Created: cluster.At(now), Unschedulable: cluster.At(now)})
	}
	expander := []string{"price", "most-pods", "least-waste", "random"}[r.IntN(4)]
	w := round.New(new(round.Cache), &s, &decision.Memory{}, &decision.Policy{Expander: expander, RandomSeed: 1, MaxNodesTotal: []int{0, len(s.Nodes) + r.IntN(60)}[r.IntN(2)], FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45})
	w.Index()
	w.Account()
	growth.Judge(w)
	w.Gather()
	p := New(w)
	p.Topology = topology.Compile(w)
	return p
}

// pickAnew is pick without what was found before, for the same group or for another one.
func (v *Solver) pickAnew() *option {
	var all []*option
	for _, g := range v.shortlist() {
		clear(v.options)
		if o := v.optionFor(g, v.limit(g)); o != nil {
			all = append(all, o)
		}
	}
	return v.bestOf(all)
}

// TestOptionsStand: an option that is taken from before is the one that would be found now, and so is a packing that is
// taken from another group.
func TestOptionsStand(t *testing.T) {
	const worlds = 300
	stood := 0
	for seed := range uint64(worlds) {
		w := drawnPacker(rand.New(rand.NewPCG(seed, 0x0b)))
		remembered, anew := w.NewSolver(false), w.NewSolver(false)
		for {
			for g := range remembered.options {
				stands := remembered.options[g] != nil && !remembered.done[g] && remembered.stands(remembered.options[g])
				if stands && remembered.changes > remembered.options[g].found {
					stood++
				}
			}
			a, b := remembered.pick(), anew.pickAnew()
			if a == nil || b == nil {
				if a != b {
					t.Fatalf("seed %d: an option is found one way alone", seed)
				}
				break
			}
			remembered.done[a.group], anew.done[b.group] = true, true
			remembered.applyOption(a)
			anew.applyOption(b)
			if a.group != b.group || !slices.Equal(remembered.Solution.Grow, anew.Solution.Grow) || !slices.Equal(remembered.Solution.Left, anew.Solution.Left) {
				t.Fatalf("seed %d: %v with what was remembered, %v anew", seed, remembered.Solution.Grow, anew.Solution.Grow)
			}
		}
	}
	if t.Logf("%d options stood in %d worlds", stood, worlds); stood < worlds/10 {
		t.Error("options hardly ever stand: the worlds try nothing")
	}
}

package scaleup

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
)

// burst is a round in which pods of some classes wait for machines of some groups. hosts
// gives each class so many terms of anti-affinity on hosts.
func burst(seed uint64, pods, classes, groups, hosts int) *Planner {
	r := rand.New(rand.NewPCG(seed, 0x6d))
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	s := cluster.Snapshot{Now: now}
	for g := range groups {
		k := int64(1) << (1 + g%4)
		a := cluster.Resources{MilliCPU: 1000*k - 110, Memory: (4*k)<<30 - 500<<20, Pods: 110}
		s.Groups = append(s.Groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%02d", g)), Max: 100000, ReadAt: now, Price: 0.048*float64(k) + 0.001*float64(g),
			Template: cluster.Template{Spec: "lt", Capacity: a, Allocatable: a, Labels: map[string]string{"topology.kubernetes.io/zone": fmt.Sprint(g % 3)}}})
	}
	for c := range classes {
		app := fmt.Sprint(c)
		class := cluster.PodClass{Namespace: "n", Labels: map[string]string{"app": app}, Requests: cluster.Resources{MilliCPU: 50 + 10*r.Int64N(90), Memory: (64 + 16*r.Int64N(120)) << 20, Pods: 1}}
		for h := range hosts {
			class.PodAntiAffinity = append(class.PodAntiAffinity, cluster.PodTerm{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"n"},
				Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{fmt.Sprint((c + h) % classes)}}}}})
		}
		s.Classes = append(s.Classes, class)
	}
	for i := range pods {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("n/p-%05d", i)), UID: cluster.UID(fmt.Sprint(i)), Class: i % classes, Created: cluster.At(now), Unschedulable: cluster.At(now),
			Owner: &cluster.Owner{Kind: "ReplicaSet", UID: cluster.UID(fmt.Sprint("rs", i%classes))}})
	}
	w := round.New(new(round.Cache), &s, &decision.Memory{}, &decision.Policy{Expander: "price", FreshFor: time.Minute, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45})
	w.Remember()
	w.LearnOutcomes()
	w.Index()
	w.Account()
	w.CountOrphanedUpcoming()
	w.Health()
	growth.Judge(w)
	w.Gather()
	w.HoldUnknown()
	return New(w)
}

// TestPurchaseKeepsItsBudget counts the steps of rounds that once took seconds: few pods of
// many kinds on several groups, and hundreds of classes with terms of anti-affinity. One
// binding of all pods may begin when the budget is nearly spent, and the purchase is bound a few times more for its reasons.
func TestPurchaseKeepsItsBudget(t *testing.T) {
	for _, c := range []struct {
		name                         string
		pods, classes, groups, hosts int
	}{
		{"69 pods on 6 groups", 69, 55, 6, 0},
		{"2,000 pods of 60 classes on 12 groups", 2000, 60, 12, 0},
		{"2,000 pods of 5 classes on 12 groups", 2000, 5, 12, 0},
		{"150 classes with 2 terms on hosts", 450, 150, 12, 2},
		{"10 equal groups", 200, 10, 10, 0},
		{"5,990 pods of 199 classes on 60 groups", 5990, 199, 60, 0},
		{"600 pods of 300 classes, placed by counts", 600, 300, 12, 0},
		{"3,000 classes with a term on hosts", 3000, 3000, 2, 1},
		{"30,000 pods of 300 classes", 30000, 300, 12, 0},
		{"one class on one group", 300, 1, 1, 0},
		{"one class with a term on hosts ", 30, 1, 1, 1},
	} {
		w := burst(1, c.pods, c.classes, c.groups, c.hosts)
		began := time.Now()
		w.Decide()
		t.Logf("%s: %d steps, %s", c.name, w.Spent.Of(round.SearchPart), time.Since(began).Round(time.Millisecond))
		if most := round.SearchPart.Budget(); w.Spent.Of(round.SearchPart) > most+max(240_000, 500*c.pods) {
			t.Errorf("%s: %d steps, the budget is %d", c.name, w.Spent.Of(round.SearchPart), most)
		}
		if !w.Grew {
			t.Errorf("%s: nothing is bought", c.name)
		}
	}
}

// TestNewMachinesAreBought: a solution has as many new machines of a group as it buys, also where others were tried for pods
// that no machine helps: five with anti-affinity to each other, on three zones.
func TestNewMachinesAreBought(t *testing.T) {
	for seed := range uint64(20) {
		w := burst(seed, 60, 12, 4, 0)
		w.Snapshot.Classes[0].PodAntiAffinity = []cluster.PodTerm{{TopologyKey: "topology.kubernetes.io/zone", Namespaces: []string{"n"},
			Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "app", Operator: "In", Values: []string{"0"}}}}}}
		w.buyer.Constrain()
		a := w.buyer.Solve()
		if a == nil || a.Unplaced() != 2 {
			t.Fatalf("seed %d: %+v", seed, a)
		}
		fresh := make([]int, len(w.Groups))
		for _, b := range a.Bins {
			if b.Fresh {
				fresh[b.Group]++
			}
		}
		if !slices.Equal(fresh, a.Grow) {
			t.Errorf("seed %d: new machines by group %v, bought are %v", seed, fresh, a.Grow)
		}
	}
}

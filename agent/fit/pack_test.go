package fit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestTied(t *testing.T) {
	loner := named("loner")
	for _, c := range []struct {
		name    string
		classes []cluster.PodClass
		want    []bool
	}{
		{"nobody asks", []cluster.PodClass{named("me"), loner}, []bool{false, false}},
		{"own anti-affinity", []cluster.PodClass{avoids(near(hostKey, in("app", "me"))), loner}, []bool{true, false}},
		{"anti-affinity ties who is avoided", []cluster.PodClass{avoids(near(hostKey, in("app", "db"))), named("db"), loner}, []bool{true, true, false}},
		{"anti-affinity to nobody ties nobody", []cluster.PodClass{avoids(near(hostKey, in("app", "none"))), loner}, []bool{false, false}},
		{"affinity ties who is wanted", []cluster.PodClass{wants(near(hostKey, in("app", "db"))), named("db"), loner}, []bool{true, true, false}},
		{"affinity to nobody refuses", []cluster.PodClass{wants(near(hostKey, in("app", "none"))), loner}, []bool{true, false}},
		{"spread ties who is counted", []cluster.PodClass{evenly(cluster.Spread{TopologyKey: zoneKey, MaxSkew: 1, Selector: in("app", "db")}), named("db"), loner}, []bool{true, true, false}},
		{"a claim for one ties its other users", []cluster.PodClass{mounts(cluster.Volume{Claim: "n/c", OnePod: true}), mounts(cluster.Volume{Claim: "n/c"}), loner}, []bool{true, true, false}},
		{"volumes", []cluster.PodClass{mounts(cluster.Volume{Driver: "ebs", Handle: "1"}), mounts(cluster.Volume{Affinity: zones("a")}), mounts(cluster.Volume{Claim: "n/c"})}, []bool{true, true, false}},
	} {
		s := NewState(c.classes, nil)
		for i, want := range c.want {
			if s.Constrained(i) != want {
				t.Errorf("%s: class %d: tied %v", c.name, i, !want)
			}
		}
	}
}

func TestMost(t *testing.T) {
	even := func(skew, domains int) cluster.PodClass {
		return evenly(cluster.Spread{TopologyKey: zoneKey, MaxSkew: skew, MinDomains: domains, Selector: in("app", "me")})
	}
	for _, c := range []struct {
		name  string
		class cluster.PodClass
		there map[int]int
		want  int
	}{
		{"plain", named("me"), nil, math.MaxInt32},
		{"apart on hostname", avoids(near(hostKey, in("app", "me"))), nil, 1},
		{"apart, one is there", avoids(near(hostKey, in("app", "me"))), map[int]int{a1: 1}, 0},
		{"together, the first", wants(near(hostKey, in("app", "me"))), nil, math.MaxInt32},
		{"even, the other zone is empty", even(2, 0), nil, 2},
		{"even, one below the other zone", even(2, 0), map[int]int{a1: 1, template: 4}, 5},
		{"even, too few zones", even(2, 9), map[int]int{template: 4}, 2},
		{"one claim", mounts(cluster.Volume{Claim: "n/c", OnePod: true}), nil, 1},
		{"one handle", mounts(cluster.Volume{Driver: "ebs", Handle: "1"}), nil, math.MaxInt32},
	} {
		s := NewState([]cluster.PodClass{c.class}, nil)
		for _, shape := range tableNodes() {
			s.AddNode(shape, map[string]int64{"ebs": 1})
		}
		for node, n := range c.there {
			s.Put(0, node, n)
		}
		if got := s.MaxFit(0, a1); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	// A term that selects its own pod by a namespaceSelector, as kube-scheduler holds it against a namespace with labels.
	wide := cluster.PodTerm{TopologyKey: hostKey, Selector: in("app", "me"), NamespaceSelector: &cluster.Selector{Requirements: []cluster.Requirement{req("team", "DoesNotExist")}}}
	far := NewState([]cluster.PodClass{avoids(wide)}, []cluster.Namespace{{Name: "n", Labels: map[string]string{"team": "x"}}})
	far.AddNode(tableNodes()[a1], nil)
	if got := far.MaxFit(0, 0); got != 1 {
		t.Errorf("a pod that keeps off its own, by labels that its namespace does not have: %d", got)
	}
	alone := NewState([]cluster.PodClass{even(1, 0)}, nil)
	alone.AddNode(tableNodes()[a1], nil)
	if got := alone.MaxFit(0, 0); got != math.MaxInt32 {
		t.Errorf("the only zone there is takes %d", got)
	}
}

// The minimum holds where counts leave the histogram, and the most is what placing one
// after another finds.
func TestLeastFar(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := NewState([]cluster.PodClass{evenly(cluster.Spread{TopologyKey: hostKey, MaxSkew: 1 + r.IntN(200), Selector: in("app", "me")})}, nil)
		counts := make([]int, 1+r.IntN(90))
		for range counts {
			s.AddNode(&NodeInfo{}, nil)
		}
		even := s.Terms(0)[0]
		for range 300 {
			node, n := r.IntN(len(counts)), pick(r, 1, 2, lowCounts-1, lowCounts, lowCounts+1, 300)
			if r.IntN(3) == 0 {
				n = -min(n, counts[node])
			}
			counts[node] += n
			s.Put(0, node, n)
			least := counts[0]
			for _, c := range counts {
				least = min(least, c)
			}
			if got, domains := leastOf(s, even); got != least || domains != len(counts) {
				t.Fatalf("seed %d: least %d of %d domains, want %d\n%v", seed, got, domains, least, counts)
			}
		}
		node := r.IntN(len(counts))
		want := 0
		for ; want < 2000 && s.Passes(0, node); want++ {
			s.Put(0, node, 1)
		}
		s.Put(0, node, -want)
		if got := min(s.MaxFit(0, node), 2000); got != want {
			t.Fatalf("seed %d: most %d, want %d", seed, got, want)
		}
	}
}

func TestTerms(t *testing.T) {
	me := avoids(near(hostKey, in("app", "me")), near(hostKey, in("app", "me"))) // a term that is said twice is one
	me.Spread = []cluster.Spread{{TopologyKey: zoneKey, MaxSkew: 2, MinDomains: 3, Selector: in("app", "me"), HonorTaints: true}}
	me.PodAffinity = []cluster.PodTerm{near(zoneKey, in("app", "db")), near(zoneKey, in("app", "db"))}
	s := NewState([]cluster.PodClass{me, named("db")}, nil)
	for _, shape := range tableNodes() {
		s.AddNode(shape, nil)
	}
	s.Put(0, a1, 1)
	s.Put(1, b1, 2)
	terms := s.Terms(0)
	if len(terms) != 4 || terms[0].Key != zoneKey || terms[1].Key != zoneKey || terms[2].Key != hostKey || terms[3].Key != hostKey {
		t.Fatalf("terms %+v", terms)
	}
	company := terms[1]
	if s.Count(company, s.DomainOf(company, b1)) != 2 || s.Count(company, s.DomainOf(company, a1)) != 0 || s.DomainOf(company, bare) != -1 {
		t.Error("company is counted wrongly")
	}
	if least, domains := leastOf(s, terms[0]); least != 0 || domains != 2 {
		t.Errorf("least %d of %d", least, domains)
	}
}

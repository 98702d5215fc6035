package fit

import (
	"math/rand/v2"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestEligibilityIndex: what a shape's labels are asked about by index is what it is asked about one by one.
func TestEligibilityIndex(t *testing.T) {
	indexed, takes := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0xe1))
		classes := make([]cluster.PodClass, 30)
		for i := range classes {
			classes[i] = someTied(r)
			classes[i].Spread = []cluster.Spread{{TopologyKey: pick(r, topologyKeys...), MaxSkew: 1, Selector: someSelector(r, "app"), IgnoreNodeAffinity: r.IntN(8) == 0, HonorTaints: r.IntN(4) == 0}}
			if r.IntN(2) == 0 {
				classes[i].Affinity = []cluster.NodeTerm{{Labels: requirements(someSelector(r, "rack", "topology.kubernetes.io/zone"))}, {Labels: requirements(someSelector(r, "rack"))}}[:1+r.IntN(2)]
			}
		}
		s := NewState(classes, nil)
		for range 20 {
			shape := someShape(r, pick(r, "", "n1", "n2"))
			node := s.AddNode(shape, nil)
			for e := range s.eligs {
				want := s.eligibleOn(&s.eligs[e], shape, s.shapeDomains[node*len(s.keys):])
				if want {
					takes++
				}
				if got := s.counts(node, int32(e)); got != want {
					t.Fatalf("seed %d: node %d counts for eligibility %d: %t, asked by itself %t", seed, node, e, got, want)
				}
			}
		}
		indexed += len(s.eligs) - len(s.eligIndex.Every)
	}
	if t.Logf("%d eligibilities are indexed, %d times a node counts", indexed, takes); indexed < 1000 || takes < 1000 {
		t.Error("the worlds try nothing")
	}
}

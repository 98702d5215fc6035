package labelindex_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit/labelindex"
)

// TestNodeIndex: a node that may not take a class by its labels does not pass, and few others are named.
func TestNodeIndex(t *testing.T) {
	const seed = 0x1ab
	t.Logf("seed %#x", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	labels := func() map[string]string {
		out := map[string]string{}
		for k := range 3 {
			if r.IntN(3) > 0 {
				out[fmt.Sprint("k", k)] = fmt.Sprint(r.IntN(4))
			}
		}
		return out
	}
	ruledOut := 0
	for range 200 {
		nodes := make([]fit.NodeInfo, 1+r.IntN(20))
		for n := range nodes {
			nodes[n] = fit.NodeInfo{Name: cluster.NodeName(fmt.Sprint(n)), Labels: labels()}
		}
		x := labelindex.NewNodeIndex(len(nodes), func(n int) map[string]string { return nodes[n].Labels })
		for range 10 {
			var c cluster.PodClass
			if r.IntN(2) == 0 {
				c.NodeSelector = labels()
			}
			for range r.IntN(3) {
				term := cluster.NodeTerm{}
				for range r.IntN(3) {
					term.Labels = append(term.Labels, cluster.Requirement{Key: fmt.Sprint("k", r.IntN(4)), Operator: []string{"In", "NotIn", "Exists"}[r.IntN(3)], Values: []string{fmt.Sprint(r.IntN(4)), fmt.Sprint(r.IntN(4))}})
				}
				c.Affinity = append(c.Affinity, term)
			}
			may, all := x.May(&c)
			if all && len(c.NodeSelector) > 0 {
				t.Fatalf("nobody is ruled out by %v", c.NodeSelector)
			}
			for n := range nodes {
				if all || slices.Contains(may, int32(n)) {
					continue
				}
				if ruledOut++; fit.Passes(&c, &nodes[n]) {
					t.Fatalf("node %v is ruled out and takes %+v", nodes[n].Labels, c)
				}
			}
		}
	}
	if t.Logf("%d nodes ruled out", ruledOut); ruledOut < 1000 {
		t.Error("hardly any node is ruled out: the index is of no use")
	}
}

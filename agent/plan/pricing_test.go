package plan

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestLotsAreFair draws for many seeds: every group must win about as often.
func TestLotsAreFair(t *testing.T) {
	won := map[cluster.GroupID]int{}
	const draws = 3000
	for seed := range uint64(draws) {
		s := cluster.Snapshot{Now: t0, Groups: []cluster.NodeGroup{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
		p := decision.Policy{RandomSeed: seed}
		w := newUpPlanner(newRound(new(roundCache), &s, &decision.Memory{}, &p))
		best := 0
		for g := range w.groups {
			if w.draw(g) < w.draw(best) {
				best = g
			}
		}
		won[w.groups[best].ID]++
	}
	for g, n := range won {
		if n < draws/3-150 || n > draws/3+150 {
			t.Errorf("group %s won %d of %d draws", g, n, draws)
		}
	}
}

package purchase

import (
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestLotsAreFair draws for many seeds: every group must win about as often.
func TestLotsAreFair(t *testing.T) {
	won := map[cluster.GroupID]int{}
	const draws = 3000
	for seed := range uint64(draws) {
		s := cluster.Snapshot{Groups: []cluster.NodeGroup{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
		p := decision.Policy{RandomSeed: seed}
		w := New(round.New(new(round.Cache), &s, &decision.Memory{}, &p))
		won[w.Groups[slices.Index(w.draws(), 0)].ID]++
	}
	for g, n := range won {
		if n < draws/3-150 || n > draws/3+150 {
			t.Errorf("group %s won %d of %d draws", g, n, draws)
		}
	}
}

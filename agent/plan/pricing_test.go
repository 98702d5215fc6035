package plan

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestLotsAreFair draws for many seeds: every group must win about as often.
func TestLotsAreFair(t *testing.T) {
	won := map[cluster.GroupID]int{}
	const draws = 3000
	for seed := range uint64(draws) {
		s := cluster.Snapshot{Now: t0, Groups: []cluster.NodeGroup{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
		p := Policy{RandomSeed: seed}
		w := newRound(new(Engine), &s, &Memory{}, &p)
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

func TestBoundsAreRead(t *testing.T) {
	for text, want := range map[string]int{"": 0, "nvidia.com/gpu:0:16": 1, "nvidia.com/gpu:0:16, amd.com/gpu:2:8": 2, "gpu": -1, "gpu:4:2": -1, "gpu:-1:2": -1, ":0:1": -1, "gpu:0:x": -1} {
		var b Bounds
		err := b.Decode(text)
		if (err != nil) != (want < 0) || err == nil && len(b) != want {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
}

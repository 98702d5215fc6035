package yardstick

import (
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// TestBoughtOnce asks again while what was bought for tied pods is coming: promises
// hold, and nothing more is bought. After a restart, which forgets the promises, a
// machine or two too many may be bought for mixes that were hard to pack; how many is
// logged.
func TestBoughtOnce(t *testing.T) {
	forgotten := 0
	for seed := uint64(1); seed <= 60; seed++ {
		m := Generate(seed, 60)
		if !m.Tied() {
			continue
		}
		expander := "price"
		if m.Equal {
			expander = "least-nodes"
		}
		bought, memory := plan.Decide(m.Snapshot, plan.Memory{}, policy(expander))
		next := m.Snapshot
		next.Now = next.Now.Add(10 * time.Second)
		next.Groups = slices.Clone(next.Groups)
		for i := range next.Groups {
			next.Groups[i].ReadAt = next.Now
			next.Groups[i].Target += grown(bought, next.Groups[i].ID)
		}
		again, _ := plan.Decide(next, memory, policy(expander))
		if n := grown(again, ""); n > 0 {
			t.Errorf("%s: %d machines are bought again", m, n)
		}
		restarted, _ := plan.Decide(next, plan.Memory{}, policy(expander))
		forgotten += grown(restarted, "")
	}
	t.Logf("after a restart %d machines more", forgotten)
}

// grown is how many machines a plan buys of a group; of all where the ID is empty.
func grown(p plan.Plan, id cluster.GroupID) (n int) {
	for _, a := range p.Actions {
		if g, ok := a.(plan.Grow); ok && (id == "" || g.Group == id) {
			n += g.To - g.From
		}
	}
	return n
}

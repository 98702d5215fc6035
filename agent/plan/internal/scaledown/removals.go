package scaledown

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// removals counts the nodes that this round removes, for the limits of how many are removed in
// parallel: nodes that carry the agent's mark and wait or are drained, and those that get it
// in this round. Not counted are nodes that a freeze of deletions holds, nodes that are
// terminated in this round, and interrupted nodes, which the cloud ends anyway.
type removals struct {
	empty    int // no pod is left to evict
	draining int
}

// add counts one node by its drain plan.
func (r *removals) add(c *round.DrainPlan) { *r.of(c)++ }

// of is the counter that a node with a drain plan belongs to.
func (r *removals) of(c *round.DrainPlan) *int {
	if c.Movable+c.Terminating == 0 {
		return &r.empty
	}
	return &r.draining
}

// any tells whether a node is being removed.
func (r *removals) any() bool { return r.empty+r.draining > 0 }

// full tells whether no more nodes with such a drain plan may be removed now, and the limit.
func (r *removals) full(c *round.DrainPlan, p *decision.Policy) (limit int, full bool) {
	n := r.of(c)
	limit = p.MaxDrainAtOnce
	if n == &r.empty {
		limit = p.MaxEmptyAtOnce
	}
	return limit, *n >= limit
}

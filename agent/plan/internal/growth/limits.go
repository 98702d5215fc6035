package growth

import (
	"fmt"
	"maps"
	"math"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Of is how many of n machines a group may add in this round, and what stops the rest.
func Of(w *round.State, g *round.Group, n int) decision.GrowthLimit {
	if !g.CanGrow() {
		return g.Growth
	}
	l := limitsOf(w, g, n)
	return l.inWords()
}

// Count is Of without what stops the rest.
func Count(w *round.State, g *round.Group, n int) int {
	if !g.CanGrow() {
		return g.Growth.Count
	}
	return limitsOf(w, g, n).count
}

// belowMax is how many machines a group lacks to its maximum.
func belowMax(g *round.Group) int { return g.Max - g.Size - g.Grow }

// limitsOf asks every limit of a group that is not held.
func limitsOf(w *round.State, g *round.Group, n int) limits {
	l := limits{count: n}
	l.narrow(belowMax(g), decision.RuleMax, "at its maximum of %d", int64(g.Max), "")
	l.pool(w, g)
	l.totals(w, &g.Template.Capacity)
	return l
}

// pool applies the most machines of the groups that one entry of groups.yaml has made. What the cloud could not start does
// not count: a type that is sold out leaves its place to others. It costs G.
func (l *limits) pool(w *round.State, g *round.Group) {
	if g.Pool == "" {
		return
	}
	left := g.PoolMax
	for i := range w.Groups {
		if o := &w.Groups[i]; o.Pool == g.Pool {
			left -= max(o.Members, o.Nodes+o.Upcoming) + o.Grow
		}
	}
	l.narrow(left, decision.RuleMax, "its pool is at its maximum of %d", int64(g.PoolMax), "")
}

// limits counts down how many machines are left as one limit after the other is asked. The
// limit that narrowed last is the one that is named.
type limits struct {
	count    int
	rule     string
	format   string // of the words, with the limit's value
	value    int64
	resource string // the second argument of format, where it has one
}

// narrow applies one limit that leaves so many machines. Below zero it is exceeded already,
// and is named also where another limit has left nothing.
func (l *limits) narrow(left int, rule, format string, value int64, resource string) {
	if left < l.count {
		*l = limits{max(left, 0), rule, format, value, resource}
	}
}

// inWords puts the limit that narrowed last into words.
func (l *limits) inWords() decision.GrowthLimit {
	out := decision.GrowthLimit{Count: l.count, Rule: l.rule}
	switch {
	case l.resource != "":
		out.Why = fmt.Sprintf(l.format, l.value, l.resource)
	case l.rule != "":
		out.Why = fmt.Sprintf(l.format, l.value)
	}
	return out
}

// HasTotals tells whether what other groups add counts for a group.
func HasTotals(w *round.State) bool {
	p := w.Policy
	return p.MaxNodesTotal > 0 || p.MaxCoresTotal > 0 || p.MaxMemoryTotal > 0 || len(p.GPUTotal) > 0
}

// totals applies the limits of the whole cluster to machines of one size. They count every
// node, the control plane and nodes without a group included, and every upcoming machine.
func (l *limits) totals(w *round.State, per *cluster.Resources) {
	if !HasTotals(w) {
		return
	}
	p := w.Policy
	nodes, have := expected(w)
	if p.MaxNodesTotal > 0 {
		l.narrow(p.MaxNodesTotal-nodes, decision.RuleTotals, "the cluster's limit of %d nodes is reached", int64(p.MaxNodesTotal), "")
	}
	if p.MaxCoresTotal > 0 {
		l.narrow(left(p.MaxCoresTotal*1000, have.MilliCPU, per.MilliCPU), decision.RuleTotals, "the cluster's limit of %d cores is reached", p.MaxCoresTotal, "")
	}
	if p.MaxMemoryTotal > 0 {
		l.narrow(left(p.MaxMemoryTotal<<30, have.Memory, per.Memory), decision.RuleTotals, "the cluster's limit of %d GiB is reached", p.MaxMemoryTotal, "")
	}
	for _, b := range p.GPUTotal {
		l.narrow(left(b.Max, have.Extended[b.Resource], per.Extended[b.Resource]), decision.RuleTotals, "the cluster's limit of %d %s is reached", b.Max, b.Resource)
	}
}

// left is how many machines a total leaves; below zero: it is exceeded. A machine that has
// nothing of the resource is not limited by it.
func left(limit, used, per int64) int {
	switch {
	case per <= 0:
		return math.MaxInt
	case used > limit:
		return -1
	}
	return int(min((limit-used)/per, math.MaxInt32))
}

// expected is the capacity of the cluster once every upcoming machine has come.
func expected(w *round.State) (nodes int, have cluster.Resources) {
	nodes, have = len(w.Nodes), *w.Capacity()
	if len(w.Policy.GPUTotal) > 0 {
		have.Extended = maps.Clone(have.Extended)
	}
	for i := range w.Groups {
		o := &w.Groups[i]
		more := o.Size - o.Nodes + o.Grow
		c := &o.Template.Capacity
		nodes += more
		have.MilliCPU += int64(more) * c.MilliCPU
		have.Memory += int64(more) * c.Memory
		for _, b := range w.Policy.GPUTotal {
			have.Extended[b.Resource] += int64(more) * c.Extended[b.Resource]
		}
	}
	return nodes, have
}

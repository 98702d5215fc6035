package disruption

import (
	"reflect"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Differences are the properties in which a node is not what its group would start today, as State.Drift tells them: the
// command nodes tells the same. They are worked out once a round for each group.
func (r *Round) Differences(n *round.Node) []cluster.Difference {
	g := &r.groups[n.Group]
	if !g.compared {
		g.compared = true
		for _, i := range g.members { // a node that has settled may show what the others lack, or lack it
			r.Reached(r.Nodes[i].ReadySince.Add(cluster.SettledAfter))
		}
		g.differences = r.Drift(&r.Groups[n.Group])
	}
	return g.differences[n.Instance.ID]
}

// fresh tells a node that was started from its group's present source and, where drift counts, is what its group would start. Of a node
// whose source is not told it is not known. Machines that were started from one source share its map, so that each is compared once a round.
func (r *Round) fresh(n *round.Node) bool {
	if len(n.Instance.Source) == 0 {
		return false
	}
	g, at := &r.groups[n.Group], reflect.ValueOf(n.Instance.Source).Pointer()
	out, known := g.fresh[at]
	if !known {
		out = len(n.Instance.Source.Differences(r.Groups[n.Group].Template.Source)) == 0
		round.Set(&g.fresh, at, out)
	}
	return out && (!g.drift || len(r.Differences(n)) == 0)
}

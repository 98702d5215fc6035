package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// incoming are machines of one group that are not there yet, and what pods would take of them. Consolidation tries with it whether pods fit
// on such machines beside the nodes that stay.
type incoming struct {
	w     *round.State
	st    *fit.State // nil: no pod is constrained
	shape *fit.NodeInfo
	rooms [][]int64
	nodes []int // of the state
}

// newIncoming adds n machines of a group to a state, which the caller takes back with all that is placed on them.
func newIncoming(w *round.State, st *fit.State, g *round.Group, n int) *incoming {
	m := &incoming{w: w, st: st}
	for range n {
		empty, shape := w.Template(g)
		m.shape, m.rooms = shape, append(m.rooms, slices.Clone(empty))
		if st != nil {
			m.nodes = append(m.nodes, st.AddNode(shape, g.Template.VolumeLimits))
		}
	}
	return m
}

// place places up to n pods of a class, and returns how many are left.
func (m *incoming) place(class, n int) (left int) {
	c, size := &m.w.Snapshot.Classes[class], m.w.Dimensions.Class(class)
	constrained := m.st != nil && m.st.Constrained(class)
	if m.shape == nil || !fit.Passes(c, m.shape) || m.st.UnknownDomain(class, m.shape) != "" {
		return n
	}
	for r := range m.rooms {
		most := min(binpack.MaxFit(m.rooms[r], size), n)
		if constrained {
			most = m.constrained(class, most, m.nodes[r])
		}
		binpack.Sub(m.rooms[r], size, most)
		n -= most
	}
	return n
}

// constrained places up to n pods of a constrained class on a node, and returns how many.
func (m *incoming) constrained(class, n, node int) (placed int) {
	for ; placed < n && m.st.Passes(class, node); placed++ {
		m.st.Put(class, node, 1)
	}
	return placed
}

// Package incoming has machines that a group would get, and what pods would take of them: New, then Place. Consolidation tries
// with it whether pods fit on such machines beside the nodes that stay. Small and apart: scale-down asks it. It refuses to buy, and
// to choose which pods come first.
package incoming

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Machines are machines of one group that are not there yet.
type Machines struct {
	w     *round.State
	st    *fit.State // nil: no pod is constrained
	shape *fit.NodeInfo
	rooms [][]int64
	nodes []int // of the state
}

// New adds n machines of a group to a state, which the caller takes back with all that is placed on them.
func New(w *round.State, st *fit.State, g *round.Group, n int) *Machines {
	m := &Machines{w: w, st: st}
	for range n {
		empty, shape := w.Template(g)
		m.shape, m.rooms = shape, append(m.rooms, slices.Clone(empty))
		if st != nil {
			m.nodes = append(m.nodes, st.AddNode(shape, g.Template.VolumeLimits))
		}
	}
	return m
}

// Place places up to n pods of a class, and returns how many are left.
func (m *Machines) Place(class, n int) (left int) {
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
func (m *Machines) constrained(class, n, node int) (placed int) {
	for ; placed < n && m.st.Passes(class, node); placed++ {
		m.st.Put(class, node, 1)
	}
	return placed
}

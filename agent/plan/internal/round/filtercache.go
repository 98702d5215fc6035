package round

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit/labelindex"
)

// filterCache holds the answers of the shape filters about demands and nodes.
type filterCache struct {
	gen   int
	rows  [][]int8 // by number of classIndex.shape and by node; 0: not asked yet, -1: no
	nodes []filteredNode
	index *labelindex.NodeIndex // of this round's nodes; nil: not asked yet
}

type filteredNode struct {
	node  *cluster.Node
	state NodeState
}

// refresh forgets the verdicts on nodes that look different now. all: every one, as when nodes came, went or got another name.
func (v *filterCache) refresh(w *State, all bool) {
	if all || v.gen != w.Cache.Classes.gen {
		*v = filterCache{gen: w.Cache.Classes.gen, nodes: make([]filteredNode, len(w.Nodes))}
	}
	v.index = nil
	for k := range w.Nodes {
		n, was := &w.Nodes[k], &v.nodes[k]
		alike := was.node == n.Node || was.node != nil && sameShape(was.node, n.Node)
		if !alike || was.state != n.State || n.State == StateUpcoming {
			for _, row := range v.rows {
				if row != nil {
					row[k] = 0
				}
			}
		}
		*was = filteredNode{n.Node, n.State}
	}
}

func sameShape(a, b *cluster.Node) bool {
	return a.Unschedulable == b.Unschedulable && Same(&a.Labels, &b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// OpenShape is the shape of a node. A node that the agent is emptying has the shape that it would have without the
// agent's cordon.
func (w *State) OpenShape(n *Node) fit.NodeInfo {
	shape := n.Shape
	if n.State == StateMarked {
		shape.Taints, shape.Unschedulable = lastingTaints(shape.Taints, w.Policy), false
	}
	return shape
}

// Passes remembers what the shape filters say of a class and a node.
func (w *State) Passes(class, n int) bool { return w.FiltersOf(class).Passes(n) }

// ClassFilters are the shape filters of one class.
type ClassFilters struct {
	w     *State
	class int
	known []int8 // a row of filterCache
}

// FiltersOf are the shape filters of a class, for whoever asks about many nodes.
func (w *State) FiltersOf(class int) ClassFilters {
	v := &w.Cache.filters
	shape := int(w.Cache.Classes.shape[class])
	if shape >= len(v.rows) {
		v.rows = append(v.rows, make([][]int8, shape+1-len(v.rows))...)
	}
	if v.rows[shape] == nil {
		v.rows[shape] = w.newFilterRow(class)
	}
	return ClassFilters{w, class, v.rows[shape]}
}

// newFilterRow is a row with what the labels of the nodes alone say of a class.
func (w *State) newFilterRow(class int) []int8 {
	v, row := &w.Cache.filters, make([]int8, len(w.Nodes))
	if v.index == nil {
		v.index = labelindex.NewNodeIndex(len(w.Nodes), func(n int) map[string]string { return w.Nodes[n].Shape.Labels })
	}
	if may, all := v.index.May(&w.Snapshot.Classes[class]); !all {
		for n := range row {
			if len(w.Nodes[n].Shape.InZones) == 0 { // else its labels say less than it will have
				row[n] = -1
			}
		}
		for _, n := range may {
			row[n] = 0
		}
	}
	return row
}

// May is false only where the filters are known to refuse the node; it asks none of them.
func (f ClassFilters) May(n int) bool { return f.known[n] >= 0 }

// Next is the first node from n on that the filters are not known to refuse; as many as there are nodes: none.
func (f ClassFilters) Next(n int) int {
	for n < len(f.known) && f.known[n] < 0 {
		n++
	}
	return n
}

// Passes tells whether a node passes, room and other pods aside.
func (f ClassFilters) Passes(n int) bool {
	if f.known[n] == 0 {
		f.ask(n)
	}
	return f.known[n] > 0
}

func (f ClassFilters) ask(n int) {
	f.known[n] = -1
	shape := f.w.OpenShape(&f.w.Nodes[n])
	if fit.Passes(&f.w.Snapshot.Classes[f.class], &shape) {
		f.known[n] = 1
	}
}

package round

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// filterCache are what the shape filters said of demands and nodes.
type filterCache struct {
	gen   int
	rows  [][]int8 // by number of classBook.shape and by node; 0: not asked yet, -1: no
	nodes []filteredNode
}

type filteredNode struct {
	node  *cluster.Node
	state NodeState
}

// refresh forgets the verdicts on nodes that look different now. all: every one.
func (v *filterCache) refresh(w *State, all bool) {
	if all || v.gen != w.Cache.Classes.gen || len(v.nodes) != len(w.Nodes) {
		*v = filterCache{gen: w.Cache.Classes.gen, nodes: make([]filteredNode, len(w.Nodes))}
	}
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
	return a.Name == b.Name && a.Unschedulable == b.Unschedulable && Same(&a.Labels, &b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// OpenShape is the shape of a node; of one that is being emptied as it is when it stays.
func (n *Node) OpenShape() fit.NodeInfo {
	shape := n.Shape
	if n.State == StateMarked {
		shape.Taints, shape.Unschedulable = fit.WithoutStartupTaints(shape.Taints), false
	}
	return shape
}

// Passes remembers what the shape filters say of a class and a node.
func (w *State) Passes(class, n int) bool {
	v := &w.Cache.filters
	shape := int(w.Cache.Classes.shape[class])
	if shape >= len(v.rows) {
		v.rows = append(v.rows, make([][]int8, shape+1-len(v.rows))...)
	}
	if v.rows[shape] == nil {
		v.rows[shape] = make([]int8, len(w.Nodes))
	}
	known := &v.rows[shape][n]
	if *known == 0 {
		*known = -1
		shape := w.Nodes[n].OpenShape()
		if fit.Passes(&w.Snapshot.Classes[class], &shape) {
			*known = 1
		}
	}
	return *known > 0
}

package plan

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
	state nodeState
}

// refresh forgets the verdicts on nodes that look different now. all: every one.
func (v *filterCache) refresh(w *roundState, all bool) {
	if all || v.gen != w.e.classes.gen || len(v.nodes) != len(w.nodes) {
		*v = filterCache{gen: w.e.classes.gen, nodes: make([]filteredNode, len(w.nodes))}
	}
	for k := range w.nodes {
		n, was := &w.nodes[k], &v.nodes[k]
		alike := was.node == n.Node || was.node != nil && sameShape(was.node, n.Node)
		if !alike || was.state != n.state || n.state == stateUpcoming {
			for _, row := range v.rows {
				if row != nil {
					row[k] = 0
				}
			}
		}
		*was = filteredNode{n.Node, n.state}
	}
}

func sameShape(a, b *cluster.Node) bool {
	return a.Name == b.Name && a.Unschedulable == b.Unschedulable && same(&a.Labels, &b.Labels) && slices.Equal(a.Taints, b.Taints)
}

// passes remembers what the shape filters say of a class and a node.
func (w *roundState) passes(class, n int) bool {
	v := &w.e.filters
	shape := int(w.e.classes.shape[class])
	if shape >= len(v.rows) {
		v.rows = append(v.rows, make([][]int8, shape+1-len(v.rows))...)
	}
	if v.rows[shape] == nil {
		v.rows[shape] = make([]int8, len(w.nodes))
	}
	known := &v.rows[shape][n]
	if *known == 0 {
		*known = -1
		shape := w.nodes[n].shape
		if w.nodes[n].state == stateMarked {
			shape.Taints, shape.Unschedulable = fit.WithoutStartupTaints(shape.Taints), false
		}
		if fit.Passes(&w.s.Classes[class], &shape) {
			*known = 1
		}
	}
	return *known > 0
}

package fit

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// gone is the shape of a node whose Node object is deleted: it has no label, so that no spread constraint counts it.
var gone = &NodeInfo{Name: "\x00"}

// Reshape lets a node look like another shape from now on, as a cordon does with its taints; nil: the Node object is
// gone. What changes is which spread constraints count the node (the node inclusion policies); its domains stay.
// The node holds no pods at that moment: the caller takes them away before, and puts back afterwards those that stay.
func (s *State) Reshape(node int, shape *NodeInfo) {
	if shape == nil {
		shape = gone
	}
	was := s.shapeOf[node]
	s.reshape(node, s.shapeID(shape))
	if s.logged {
		s.log = append(s.log, change{kind: changeShape, class: was, node: int32(node)})
	}
}

func (s *State) reshape(node int, shape int32) {
	s.joinAll(node, -1, false)
	s.shapeOf[node] = shape
	s.joinAll(node, 1, false)
}

// Cordoned is the shape of a node that is cordoned for its removal.
func (s *NodeInfo) Cordoned() *NodeInfo {
	out := *s
	out.Unschedulable = true
	out.Taints = append(slices.Clip(out.Taints), cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: noSchedule}, cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: noSchedule})
	return &out
}

// CountsCordoned tells whether a spread constraint of a class counts a node although it is cordoned: it ignores taints, or the
// class tolerates these. Then the node is one of its domains until the Node object is gone.
func CountsCordoned(c *cluster.PodClass, s *NodeInfo) bool {
	if len(c.Spread) == 0 {
		return false
	}
	cordoned := s.Cordoned()
	return slices.ContainsFunc(c.Spread, func(t cluster.Spread) bool { return Counted(c, &t, cordoned) })
}

// Occupied visits the spread constraints of a class: the topology key, and how many of its domains hold a pod that the
// constraint counts. It costs the constraints.
func (s *State) Occupied(class int, visit func(key string, domains int)) {
	a := s.constraintsOf(class)
	if a == nil {
		return
	}
	for i := range a.spread {
		c := &s.counters[a.spread[i].counter]
		visit(s.keys[c.key], int(s.minimums[c.minimum].nonZero))
	}
}

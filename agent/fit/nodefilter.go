package fit

import "slices"

// NodeFilter is Passes for one class and many nodes, as the State is when the NodeFilter is made: it must not
// be asked after a change. Anti-affinity that counts no pod anywhere is left out once, not looked at for each
// node. The zero value passes everywhere.
type NodeFilter struct {
	state *State
	left  constraints // what has to be looked at for each node
}

// NodeFilter costs the terms of the class.
func (s *State) NodeFilter(class int) NodeFilter {
	a := s.constraintsOf(class)
	if a == nil {
		return NodeFilter{}
	}
	f := NodeFilter{state: s, left: *a}
	f.left.anti, f.left.existing = s.counting(a.anti), s.counting(a.existing)
	if len(f.left.anti)+len(f.left.existing)+len(a.affinity)+len(a.spread)+len(s.classes[class].Volumes)+len(s.classes[class].Claims) == 0 {
		return NodeFilter{}
	}
	return f
}

// Passes tells whether F7 to F12 let one more pod of the class onto a node.
func (f *NodeFilter) Passes(node int) bool { return f.state == nil || f.state.passes(&f.left, node) }

// counting are the terms of a list that count a pod in some domain.
func (s *State) counting(list []antiAffinityConstraint) []antiAffinityConstraint {
	none := func(a antiAffinityConstraint) bool { return s.counters[a.counter].sum == 0 }
	if !slices.ContainsFunc(list, none) {
		return list
	}
	var left []antiAffinityConstraint
	for _, a := range list {
		if !none(a) {
			left = append(left, a)
		}
	}
	return left
}

package fit

import (
	"maps"
	"slices"
)

// change is one call of AddNode, Put, PutLeaving or RemoveNode, for Rollback.
type change struct {
	kind           byte
	class, node, n int32
}

const (
	changeNode byte = iota
	changePut
	changeTerminating
	changeGone // n is the shape, class the domain of the hostname
)

// Mark begins a what-if: Rollback with the same mark undoes every Add and Put
// after it. Marks nest. From the first Mark on, changes are logged.
func (s *State) Mark() int {
	s.logged = true
	return len(s.log)
}

// Rollback undoes everything since the mark, nodes included. It costs what was done
// since then, and not what the State holds.
func (s *State) Rollback(mark int) {
	s.logged = false
	for i := len(s.log) - 1; i >= mark; i-- {
		c := s.log[i]
		switch c.kind {
		case changeNode:
			s.dropNode()
		case changeGone:
			s.bringBack(c)
		default:
			s.put(int(c.class), int(c.node), -int(c.n), c.kind == changeTerminating)
		}
	}
	s.log = s.log[:mark]
	s.logged = true
}

// dropNode takes the last node away, which holds no pods any more.
func (s *State) dropNode() {
	node := len(s.shapeOf) - 1
	for g := range s.eligibleNodes {
		s.join(int32(g), node, -1, s.shapes[s.shapeOf[node]].Name == "")
	}
	k, d := len(s.keys), len(s.drivers)
	if s.hostname >= 0 {
		names := s.names[s.hostname]
		if last := len(names) - 1; last >= 0 && int32(last) == s.domains[node*k+int(s.hostname)] && names[last] == fresh {
			s.names[s.hostname] = names[:last]
		}
	}
	s.domains, s.shapeOf = s.domains[:node*k], s.shapeOf[:node]
	s.limits, s.attached = s.limits[:node*d], s.attached[:node*d]
}

// bringBack undoes RemoveNode.
func (s *State) bringBack(c change) {
	k, node := len(s.keys), int(c.node)
	s.shapeOf[node] = c.n
	copy(s.domains[node*k:node*k+k], s.shapeDomains[int(c.n)*k:int(c.n)*k+k])
	if s.hostname >= 0 {
		s.domains[node*k+int(s.hostname)] = c.class
	}
	for g := range s.eligibleNodes {
		s.join(int32(g), node, 1, false)
	}
}

// Clone returns a copy that changes by itself. Compiled constraints are shared, and the
// copy's log is empty. For a what-if that is thrown away, Mark and Rollback cost less.
func (s *State) Clone() *State {
	out := *s
	out.log, out.logged = nil, false
	s.shared, out.shared = true, true
	out.counters, out.eligibleNodes, out.minimums = slices.Clone(s.counters), slices.Clone(s.eligibleNodes), slices.Clone(s.minimums)
	var room copies
	for i := range out.counters {
		out.counters[i].count = room.clone(s.counters[i].count)
	}
	for i := range out.eligibleNodes {
		out.eligibleNodes[i].nodes = room.clone(s.eligibleNodes[i].nodes)
	}
	out.names = slices.Clone(s.names)
	for i := range out.names {
		out.names[i] = slices.Clone(out.names[i])
	}
	out.domains, out.shapeOf = slices.Clone(s.domains), slices.Clone(s.shapeOf)
	out.shapes, out.shapeDomains, out.eligible = slices.Clip(s.shapes), slices.Clip(s.shapeDomains), slices.Clip(s.eligible)
	out.shapeIDs, out.handles = maps.Clone(s.shapeIDs), maps.Clone(s.handles)
	out.claims, out.limits, out.attached = slices.Clone(s.claims), slices.Clone(s.limits), slices.Clone(s.attached)
	return &out
}

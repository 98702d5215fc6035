package fit

// change is one call of AddNode, Put, PutTerminating or Reshape, for Rollback.
type change struct {
	kind           byte
	class, node, n int32 // class is the shape before, of Reshape
}

const (
	changeNode byte = iota
	changePut
	changeTerminating
	changeShape
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
		case changeShape:
			s.reshape(int(c.node), c.class)
		default:
			s.put(int(c.class), int(c.node), -int(c.n), c.kind == changeTerminating)
			if c.kind == changePut {
				s.returnClaims(s.constraintsOf(int(c.class)), int(c.node))
			}
		}
	}
	s.log = s.log[:mark]
	s.logged = true
}

// dropNode takes the last node away, which holds no pods any more.
func (s *State) dropNode() {
	node := len(s.shapeOf) - 1
	s.joinAll(node, -1, s.shapes[s.shapeOf[node]].Name == "")
	k, d := len(s.keys), len(s.drivers)
	if s.hostname >= 0 {
		names := s.names[s.hostname]
		if last := len(names) - 1; last >= 0 && int32(last) == s.domains[node*k+int(s.hostname)] && names[last] == fresh {
			s.names[s.hostname] = names[:last]
		}
	}
	s.domains, s.shapeOf, s.has = s.domains[:node*k], s.shapeOf[:node], s.has[:node]
	s.limits, s.attached = s.limits[:node*d], s.attached[:node*d]
}

package fit

// Term is one demand of a class on the domains of a topology key. F11 and F12 read nothing of a node but the counts of its
// domains of the class's terms.
type Term struct {
	Key     string
	counter int32
}

// Terms lists the class's terms in the order in which they are judged. Terms that no
// class of the State could ever break are left out.
func (s *State) Terms(class int) (list []Term) {
	a := s.constraintsOf(class)
	if a == nil {
		return nil
	}
	add := func(counter int32) { list = append(list, Term{s.keys[s.counters[counter].key], counter}) }
	for _, ask := range a.spread {
		add(ask.counter)
	}
	for _, id := range a.affinity {
		add(id)
	}
	for _, ask := range a.anti {
		add(ask.counter)
	}
	for _, ask := range a.existing {
		add(ask.counter)
	}
	return list
}

// DomainOf is the node's domain of the term's key; -1: the node lacks the label.
func (s *State) DomainOf(t Term, node int) int {
	return int(s.domains[node*len(s.keys)+int(s.counters[t.counter].key)])
}

// Count is the number of pods that the term counts in a domain.
func (s *State) Count(t Term, domain int) int {
	return int(s.counters[t.counter].count.at(int32(domain)))
}

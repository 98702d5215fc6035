package fit

import "slices"

// Kind is how a class reads the count of a Term.
type Kind byte

// The kinds of terms. A count is the number of pods in one domain of the term's key.
const (
	// Affinity: required pod affinity. The count must be above zero; where it is zero in
	// all domains of all of the class's Affinity terms, a class with Self may be first.
	Affinity Kind = iota
	// AntiAffinity: the class's own anti-affinity. The count must be zero.
	AntiAffinity
	// ExistingAntiAffinity: anti-affinity of others, which selects the class. The count must be zero.
	ExistingAntiAffinity
	// Spread: topology spread. The count, one more where SelfMatches, must not exceed the
	// smallest count by more than MaxSkew.
	Spread
)

// Term is one demand of a class on the domains of a topology key, reduced to counts,
// for a packer that reckons with whole domains instead of single nodes. A class is
// let onto a node by F11 and F12 if and only if all of its terms are content with
// the node's domains; a node without the label contents AntiAffinity and ExistingAntiAffinity, and neither
// Affinity nor Spread.
type Term struct {
	Kind Kind
	Key  string
	// Self: a pod of the class, once placed, is counted itself. (Of Affinity: the class
	// matches all of its own terms. Of Spread: only on nodes for which Counts holds.)
	Self bool
	// SelfMatches, of Spread: the selector selects the class. It is Self but for an empty
	// selector, which selects every pod and counts none.
	SelfMatches         bool
	MaxSkew, MinDomains int // of Spread
	counter             int32
}

// Terms lists the class's terms in the order in which they are judged. Terms that no
// class of the State could ever break are left out.
func (s *State) Terms(class int) []Term {
	a := s.constraintsOf(class)
	if a == nil {
		return nil
	}
	var list []Term
	for _, ask := range a.spread {
		list = append(list, Term{Kind: Spread, Self: ask.counts, SelfMatches: ask.self > 0, MaxSkew: int(ask.maxSkew), MinDomains: int(ask.minDomains), counter: ask.counter})
	}
	for _, id := range a.affinity {
		list = append(list, Term{Kind: Affinity, Self: a.selfAll, counter: id})
	}
	for _, ask := range a.anti {
		list = append(list, Term{Kind: AntiAffinity, Self: ask.self, counter: ask.counter})
	}
	for _, ask := range a.existing {
		list = append(list, Term{Kind: ExistingAntiAffinity, Self: ask.self, counter: ask.counter})
	}
	for i := range list {
		list[i].Key = s.keys[s.counters[list[i].counter].key]
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

// Counts tells whether pods on the node are counted by an Spread term: the node has all
// of the keys, and the node inclusion policies hold. True for other kinds where the
// node has the key.
func (s *State) Counts(t Term, node int) bool {
	c := &s.counters[t.counter]
	if c.eligible < 0 {
		return s.DomainOf(t, node) >= 0
	}
	return s.counts(node, s.eligibleNodes[c.eligible].eligibility)
}

// CountedBy tells whether a term counts the pods of a class. A Spread term counts them only on the nodes for which Counts is true.
func (s *State) CountedBy(t Term, class int) bool {
	return slices.Contains(s.incrementsOf(class), t.counter)
}

// Total is the number of pods that the term counts in all domains.
func (s *State) Total(t Term) int { return int(s.counters[t.counter].sum) }

// Fewest is the global minimum that a Spread term is held against; a huge number where no node is counted.
func (s *State) Fewest(t Term) int {
	return int(s.fewest(&s.counters[t.counter], int32(t.MinDomains)))
}

package fit

import "math"

// Constrained tells whether any of F7 to F12 can refuse this class on some node, or whether
// placing it can make a class refused, itself or another. A class that is not constrained
// may be packed by shape and room alone.
func (s *State) Constrained(class int) bool { return s.binds(s.of[class]) }

func (t *tables) binds(tie int32) bool {
	a := t.constraints[tie]
	return a != nil && a.binds() || len(t.incrementsOfClass(tie)) > 0 || len(t.usesOfClass(tie)) > 0
}

func (a *constraints) binds() bool {
	return a.refused != "" || a.claims != nil || len(a.onePod)+len(a.attaches)+len(a.volumes)+len(a.spread)+len(a.affinity)+len(a.anti)+len(a.existing) > 0
}

// mostClaims bounds for how many pods of a class devices are looked for on one node.
const mostClaims = 1000

// MaxFit is how many more pods of the class, one after another, F7 to F12 let onto the
// node with all other nodes as they are; math.MaxInt32 when they set no bound.
func (s *State) MaxFit(class, node int) int {
	a := s.constraintsOf(class)
	if a == nil {
		return math.MaxInt32
	}
	if !s.Passes(class, node) {
		return 0
	}
	row := s.domains[node*len(s.keys):]
	if len(a.onePod) > 0 || excludesSiblings(s, a.anti, row) {
		return 1
	}
	most := int32(math.MaxInt32)
	if a.claims != nil {
		most = int32(s.devices.Most(s.has[node], a.claims.demand, mostClaims))
	}
	for i := range a.spread {
		most = min(most, s.mostSpread(&a.spread[i], node))
	}
	return int(most)
}

// excludesSiblings tells whether the class keeps its own siblings out of a domain of the node. Its own terms say so: a term
// of an existing pod selects the same pods as that of an incoming one.
func excludesSiblings(s *State, list []antiAffinityConstraint, row []int32) bool {
	for i := range list {
		if list[i].self && row[s.counters[list[i].counter].key] >= 0 {
			return true
		}
	}
	return false
}

// mostSpread: while the node's domain fills up, the minimum is that of the other
// domains, once the domain itself is above it.
func (s *State) mostSpread(ask *spreadConstraint, node int) int32 {
	c := &s.counters[ask.counter]
	g := &s.eligibleNodes[c.eligible]
	if !ask.counts || !s.counts(node, g.eligibility) {
		return math.MaxInt32
	}
	domain := s.domains[node*len(s.keys)+int(c.key)]
	own, others := c.count.at(domain), int32(0)
	if g.domains >= ask.minDomains {
		others = s.minimumFrom(c, s.least(c), domain)
	}
	if others == none {
		return math.MaxInt32
	}
	return ask.maxSkew + others - own
}

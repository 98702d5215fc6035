package fit

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit/labelindex"
)

// eligibility is the set of nodes that spread constraints of some classes count on.
type eligibility struct {
	keys   []int32           // all of them
	class  *cluster.PodClass // of these node affinity and tolerations
	honor  bool              // nodeAffinityPolicy
	taints bool              // nodeTaintsPolicy
	sets   []int32           // of State.eligibleNodes
}

// indexEligibilities makes the shapes of nodes ask only about what their labels may be eligible for: thousands of classes
// that are each bound to a node of their own would be asked about on thousands of nodes.
func (b *build) indexEligibilities() {
	x := &b.eligIndex
	for i := range b.eligs {
		var needs []cluster.Requirement
		if b.eligs[i].honor {
			needs = labelindex.NeededLabels(b.eligs[i].class)
		}
		if len(needs) == 0 {
			x.Every = append(x.Every, int32(i))
			continue
		}
		least := slices.MinFunc(needs, func(r, o cluster.Requirement) int { return cmp.Compare(x.Sharing(&r), x.Sharing(&o)) })
		x.Add(int32(i), least.Key, least.Values...)
	}
}

// eligibleOn follows PodTopologySpread's calPreFilterState: all keys, and the node
// inclusion policies.
func (s *State) eligibleOn(e *eligibility, shape *NodeInfo, domains []int32) bool {
	for _, k := range e.keys {
		if domains[k] < 0 {
			return false
		}
	}
	return (!e.honor || selected(e.class, shape)) && (!e.taints || toleratesAll(e.class, shape))
}

// eligibleWords is how many words of State.eligible a shape has.
func (s *State) eligibleWords() int { return (len(s.eligs) + 63) / 64 }

// addEligible works out where pods on a new shape count.
func (s *State) addEligible(shape *NodeInfo, domains []int32) {
	at := len(s.eligible)
	s.eligible = append(s.eligible, make([]uint64, s.eligibleWords())...)
	add := func(id int32) {
		if s.eligibleOn(&s.eligs[id], shape, domains) {
			s.eligible[at+int(id)/64] |= 1 << (id % 64)
		}
	}
	s.eligIndex.May(shape.Labels, add)
	for i := range shape.InZones { // what needs a zone's label
		s.eligIndex.May(shape.InZones[i].Labels, add)
	}
}

// counts tells whether pods on the node count where this eligibility is asked for.
func (s *State) counts(node int, elig int32) bool {
	return s.eligible[int(s.shapeOf[node])*s.eligibleWords()+int(elig)/64]>>(elig%64)&1 != 0
}

// joinAll counts a node in on all sets of eligible nodes that have it (n is 1), or out (-1).
func (s *State) joinAll(node int, n int32, alone bool) {
	words := s.eligibleWords()
	for i, word := range s.eligible[int(s.shapeOf[node])*words:][:words] {
		for ; word != 0; word &= word - 1 {
			for _, g := range s.eligs[i*64+bits.TrailingZeros64(word)].sets {
				s.join(g, node, n, alone)
			}
		}
	}
}

// join counts a node in on a set of eligible nodes that has it (n is 1), or out (-1). alone: it is a template's node that
// holds no pods, so that nothing is counted in its own hostname's domain.
func (s *State) join(id int32, node int, n int32, alone bool) {
	g := &s.eligibleNodes[id]
	domain := s.domains[node*len(s.keys)+int(g.key)]
	nodes := g.nodes.add(domain, n)
	switch {
	case alone && g.key == s.hostname:
		g.domains += n
	case n == 1 && nodes == 1:
		g.domains++
		for _, c := range g.counters {
			s.enter(&s.counters[c], domain)
		}
	case nodes == 0:
		g.domains--
		for _, c := range g.counters {
			s.leave(&s.counters[c], domain)
		}
	}
}

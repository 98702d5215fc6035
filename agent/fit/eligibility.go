package fit

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// eligibility is the set of nodes that spread constraints of some classes count on.
type eligibility struct {
	keys   []int32           // all of them
	class  *cluster.PodClass // of these node affinity and tolerations
	honor  bool              // nodeAffinityPolicy
	taints bool              // nodeTaintsPolicy
	sets   []int32           // of State.eligibleNodes
}

// labelIndex finds what may take a set of labels without asking what needs a value that is not among them.
type labelIndex struct {
	every   []int32 // may take any labels
	byLabel map[string]map[string][]int32
}

// add adds what takes only labels with one of these values.
func (x *labelIndex) add(id int32, key string, values ...string) {
	if x.byLabel == nil {
		x.byLabel = map[string]map[string][]int32{}
	}
	if x.byLabel[key] == nil {
		x.byLabel[key] = map[string][]int32{}
	}
	for _, v := range slices.Compact(slices.Sorted(slices.Values(values))) {
		x.byLabel[key][v] = append(x.byLabel[key][v], id)
	}
}

// may calls back for whatever may take the labels, and for some of it more than once.
func (x *labelIndex) may(labels map[string]string, call func(id int32)) {
	for _, id := range x.every {
		call(id)
	}
	for key, byValue := range x.byLabel {
		if value, has := labels[key]; has {
			for _, id := range byValue[value] {
				call(id)
			}
		}
	}
}

// indexEligibilities makes the shapes of nodes ask only about what their labels may be eligible for: thousands of classes
// that are each bound to a node of their own would be asked about on thousands of nodes.
func (b *build) indexEligibilities() {
	for i := range b.eligs {
		e := &b.eligs[i]
		switch {
		case e.honor && len(e.class.NodeSelector) > 0: // the pair that the fewest share
			key := slices.MinFunc(slices.Sorted(maps.Keys(e.class.NodeSelector)), func(x, y string) int {
				return cmp.Compare(len(b.eligIndex.byLabel[x][e.class.NodeSelector[x]]), len(b.eligIndex.byLabel[y][e.class.NodeSelector[y]]))
			})
			b.eligIndex.add(int32(i), key, e.class.NodeSelector[key])
		case e.honor && len(e.class.Affinity) > 0 && !slices.ContainsFunc(e.class.Affinity, func(t cluster.NodeTerm) bool { return firstIn(t.Labels) == nil }):
			for k := range e.class.Affinity {
				r := firstIn(e.class.Affinity[k].Labels)
				b.eligIndex.add(int32(i), r.Key, r.Values...)
			}
		default:
			b.eligIndex.every = append(b.eligIndex.every, int32(i))
		}
	}
}

// firstIn is a requirement In of the list; nil: there is none.
func firstIn(list []cluster.Requirement) *cluster.Requirement {
	for i := range list {
		if list[i].Operator == "In" {
			return &list[i]
		}
	}
	return nil
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
	s.eligIndex.may(shape.Labels, func(id int32) {
		if s.eligibleOn(&s.eligs[id], shape, domains) {
			s.eligible[at+int(id)/64] |= 1 << (id % 64)
		}
	})
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
	case n > 0 && nodes == 1:
		g.domains++
		for _, c := range g.counters {
			s.enter(&s.counters[c], domain)
		}
	case n < 0 && nodes == 0:
		g.domains--
		for _, c := range g.counters {
			s.leave(&s.counters[c], domain)
		}
	}
}

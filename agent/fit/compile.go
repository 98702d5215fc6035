package fit

import (
	"slices"
	"strconv"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit/labelindex"
)

// constraints lists the demands of one constraint class on the nodes and of the pods on them,
// compiled. A class without constraints has none.
type constraints struct {
	*volumeConstraints // never nil
	spread             []spreadConstraint
	affinity           []int32 // counters of the pods that match all terms, one per topology key
	selfAll            bool    // the class matches all of its own affinity terms
	anti               []antiAffinityConstraint
	existing           []antiAffinityConstraint // counters of the owners of anti-affinity terms that select the class
	claims             *claimConstraints        // nil: the class has none
}

// volumeConstraints lists the demands of one class on volumes. Most classes have none, and share one value.
type volumeConstraints struct {
	refused  string  // the first Volume.Refused
	onePod   []int32 // claims that no other pod may use
	attaches []int32 // handles
	volumes  []*cluster.Volume
}

type spreadConstraint struct {
	counter             int32
	maxSkew, minDomains int32
	self                int32 // 1: the selector selects the class itself
	counts              bool  // a pod of the class, once placed, is counted
}

type antiAffinityConstraint struct {
	counter int32
	self    bool // a pod of the class, once placed, keeps its siblings out
}

// tables holds the results that NewState works out once from the constraint classes; clones share it.
type tables struct {
	*constraintClasses
	keys           []string
	hostname       int32 // the key that is a template's own; -1: not used
	eligs          []eligibility
	eligIndex      labelindex.Index // of eligs
	constraints    []*constraints   // per constraint class
	incrementStart []int32          // per constraint class, into increments
	increments     []int32          // counters that a pod of the constraint class is counted by
	usesStart      []int32          // per constraint class, into uses
	uses           []int32          // claims of which some class wants to be the only user
	driverOf       []int32          // of a handle
	drivers        []string
	resources      []string // extended, for which devices may stand; sorted
}

func (t *tables) constraintsOf(class int) *constraints { return t.constraints[t.of[class]] }

func (t *tables) incrementsOf(class int) []int32 { return t.incrementsOfClass(t.of[class]) }
func (t *tables) incrementsOfClass(tie int32) []int32 {
	return t.increments[t.incrementStart[tie]:t.incrementStart[tie+1]]
}

func (t *tables) usesOf(class int) []int32 { return t.usesOfClass(t.of[class]) }
func (t *tables) usesOfClass(tie int32) []int32 {
	return t.uses[t.usesStart[tie]:t.usesStart[tie+1]]
}

// build holds the values that only the compilation needs.
type build struct {
	*tables
	s                 *State
	buf               []byte
	ids               map[string]int32 // everything that is interned, by kind and content
	matchers          []matcher
	matched           [][]int32 // per matcher: the constraint classes that it takes, as the incoming pod's term
	foreign           [][]int32 // the same as an existing pod's term
	byCounter         []counterSource
	incrementsByClass [][2]int32        // constraint class, counter; counters rise
	free              []constraints     // room for the next ones
	volumeless        volumeConstraints // of all who ask nothing
	spreads           []int32           // room for the keys of a spread
}

// counterSource tells which pods a counter counts.
type counterSource struct {
	matchers []int32 // the constraint classes that all of them take
	owners   bool    // owned are counted instead
	owned    []int32
}

func (b *build) intern(key []byte, next int) (id int32, fresh bool) {
	if id, ok := b.ids[string(key)]; ok {
		return id, false
	}
	b.ids[string(key)] = int32(next)
	return int32(next), true
}

func (b *build) key(name string) int32 {
	id, fresh := b.intern(cluster.AppendString(append(b.buf[:0], 'k'), name), len(b.keys))
	if fresh {
		b.keys = append(b.keys, name)
		if name == labelHostname {
			b.hostname = id
		}
	}
	return id
}

func (b *build) matcher(m matcher) int32 {
	b.buf = m.appendKey(append(b.buf[:0], 'm'))
	id, fresh := b.intern(b.buf, len(b.matchers))
	if fresh {
		b.matchers = append(b.matchers, m)
	}
	return id
}

// termMatcher is the matcher of a term of a class.
func (b *build) termMatcher(c *cluster.PodClass, t *cluster.PodTerm) int32 {
	m := matcher{selector: t.Selector, namespaces: t.Namespaces, wide: t.NamespaceSelector}
	if len(m.namespaces) == 0 && m.wide == nil {
		m.namespaces = []string{c.Namespace}
	}
	return b.matcher(m)
}

// counter interns a counter of the pods that all matchers take, on one set of eligible nodes.
func (b *build) counter(kind byte, matchers []int32, key, ground int32) int32 {
	b.buf = append(b.buf[:0], 'c', kind)
	b.buf = append(strconv.AppendInt(b.buf, int64(key), 10), ',')
	b.buf = append(strconv.AppendInt(b.buf, int64(ground), 10), ',')
	for _, n := range matchers {
		b.buf = append(strconv.AppendInt(b.buf, int64(n), 10), ',')
	}
	id, fresh := b.intern(b.buf, len(b.s.counters))
	if fresh {
		b.s.counters = append(b.s.counters, counter{key: key, eligible: ground, minimum: -1})
		b.byCounter = append(b.byCounter, counterSource{matchers: slices.Clone(matchers), owners: kind == countsOwners})
		if ground >= 0 {
			b.s.counters[id].minimum = int32(len(b.s.minimums))
			b.s.minimums = append(b.s.minimums, domainMinimum{})
			b.s.eligibleNodes[ground].counters = append(b.s.eligibleNodes[ground].counters, id)
		}
	}
	return id
}

// constraintsBlock is for how many constraint classes room is made at once.
const constraintsBlock = 64

// What a counter counts.
const (
	countsMatched = 'm' // pods that its matchers take
	countsOwners  = 'o' // pods that own an anti-affinity term with its matcher and key
)

// constraintsFor returns the constraints of a constraint class, to be added to.
func (b *build) constraintsFor(tie int32) *constraints {
	if b.constraints[tie] == nil {
		if len(b.free) == 0 {
			b.free = make([]constraints, min(constraintsBlock, len(b.first)))
		}
		b.constraints[tie], b.free = &b.free[0], b.free[1:]
		b.constraints[tie].volumeConstraints = &b.volumeless
	}
	return b.constraints[tie]
}

// volumesOf returns the volume constraints of a constraint class, to be added to.
func (b *build) volumesOf(tie int32) *volumeConstraints {
	a := b.constraintsFor(tie)
	if a.volumeConstraints == &b.volumeless {
		a.volumeConstraints = &volumeConstraints{}
	}
	return a.volumeConstraints
}

// terms compiles what a constraint class's classes own. The selected pods are connected later, when all
// selectors are known.
func (b *build) terms(tie int32) {
	c := b.example(tie)
	for i := range c.PodAntiAffinity {
		m, key := b.termMatcher(c, &c.PodAntiAffinity[i]), b.key(c.PodAntiAffinity[i].TopologyKey)
		a := b.constraintsFor(tie)
		counts := b.counter(countsMatched, []int32{m}, key, -1)
		if !slices.ContainsFunc(a.anti, func(x antiAffinityConstraint) bool { return x.counter == counts }) {
			a.anti = append(a.anti, antiAffinityConstraint{counter: counts})
			owns := b.counter(countsOwners, []int32{m}, key, -1)
			b.byCounter[owns].owned = append(b.byCounter[owns].owned, tie)
		}
	}
	if len(c.PodAffinity) > 0 {
		b.affinity(tie, c.PodAffinity)
	}
	if len(c.Spread) > 0 {
		b.spread(tie, c.Spread)
	}
}

// affinity: a pod counts for none of the terms unless it matches all of them.
func (b *build) affinity(tie int32, terms []cluster.PodTerm) {
	c, a := b.example(tie), b.constraintsFor(tie)
	var all []int32
	for i := range terms {
		all = append(all, b.termMatcher(c, &terms[i]))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	a.selfAll = true
	for _, m := range all {
		a.selfAll = a.selfAll && b.matchers[m].takes(c, b.known, false)
	}
	for i := range terms {
		id := b.counter(countsMatched, all, b.key(terms[i].TopologyKey), -1)
		if !slices.Contains(a.affinity, id) {
			a.affinity = append(a.affinity, id)
		}
	}
}

func (b *build) spread(tie int32, terms []cluster.Spread) {
	c, a := b.example(tie), b.constraintsFor(tie)
	keys := b.spreads[:0]
	for i := range terms {
		keys = append(keys, b.key(terms[i].TopologyKey))
	}
	keys = append(keys, keys...)
	b.spreads = keys
	slices.Sort(keys[len(terms):])
	sorted := slices.Compact(keys[len(terms):])
	a.spread = make([]spreadConstraint, 0, len(terms))
	for i := range terms {
		t, key := &terms[i], keys[i]
		g := b.eligibleNodes(key, b.eligible(eligibility{keys: sorted, class: c, honor: !t.IgnoreNodeAffinity, taints: t.HonorTaints}))
		// An empty selector selects the pod itself but counts nobody
		// (countPodsMatchSelector): so does a nil one, which selects nobody either.
		counted := t.Selector
		if counted != nil && len(counted.Requirements) == 0 {
			counted = nil
		}
		m := b.matcher(matcher{selector: counted, namespaces: []string{c.Namespace}})
		id := b.counter(countsMatched, []int32{m}, key, g)
		ask := spreadConstraint{counter: id, maxSkew: int32(t.MaxSkew), minDomains: int32(max(t.MinDomains, 1)), counts: selects(counted, c.Labels)}
		if selects(t.Selector, c.Labels) {
			ask.self = 1
		}
		a.spread = append(a.spread, ask)
	}
}

func (b *build) eligible(e eligibility) int32 {
	key := append(b.buf[:0], 'e')
	for _, k := range e.keys {
		key = append(strconv.AppendInt(key, int64(k), 10), ',')
	}
	if e.honor {
		key = cluster.AppendNodeTerms(cluster.AppendLabels(append(key, 'a'), e.class.NodeSelector), e.class.Affinity)
	}
	if e.taints {
		key = cluster.AppendTolerations(append(key, 't'), e.class.Tolerations)
	}
	b.buf = key
	id, fresh := b.intern(key, len(b.eligs))
	if fresh {
		e.keys = slices.Clone(e.keys) // they were in room that is used again
		b.eligs = append(b.eligs, e)
	}
	return id
}

func (b *build) eligibleNodes(key, elig int32) int32 {
	b.buf = strconv.AppendInt(append(strconv.AppendInt(append(b.buf[:0], 'g'), int64(key), 10), ','), int64(elig), 10)
	id, fresh := b.intern(b.buf, len(b.s.eligibleNodes))
	if fresh {
		b.s.eligibleNodes = append(b.s.eligibleNodes, eligibleNodes{key: key, eligibility: elig})
		b.eligs[elig].sets = append(b.eligs[elig].sets, id)
	}
	return id
}

package schedsim

import (
	"encoding/binary"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// view is the cluster as the scores of one class see it: the nodes with room for a pod of
// it in sets that are alike but for what the node's own room scores.
type view struct {
	class       int
	size        []int64
	reads       *reads
	constrained bool
	claims      bool // a node's set follows from its devices too
	single      bool // volumes: each node is judged by itself
	byShape     bool // a node's set follows from its shape and from what one soft constraint counts on it
	hosts       int  // that constraint, in reads.spread; -1: there is none
	terms       []fit.Term
	interFrom   int // in set.values
	facts       []fact
	where       []place // per node
	sets        []set
	live        []int32 // sets with nodes
	index       map[string]int32
	seen        int      // of Sim.touched
	first       [2]int32 // by Standing, no node of the view is before it
	free        [][]int32
}

// fact holds what the filters and scores of a class say of a shape.
type fact struct {
	known, passes, ignored bool
	taints, affinity       int64
}

// place is where a node is in a view.
type place struct {
	set   int32 // one more than its number; 0: the node has no room, or does not pass
	score int32
	at    int32 // in the bucket
	shape int32 // and Standing; with count, what the set was found by; see view.byShape
	count int32
}

// set are nodes that are alike to a class but for their own scores.
type set struct {
	key              string // of view.index
	taints, affinity int64
	ignored, last    bool    // last: its nodes stand so
	values           []int32 // per soft constraint and inter read: the domain, or the count of a hostname
	count            int
	alive            int32    // its place in view.live
	buckets          []bucket // by falling score; none is empty
}

type bucket struct {
	score int32
	nodes []int32
}

func (g *set) any() int32 { return g.buckets[0].nodes[0] }

// changesPerNode is how many changes of the nodes are looked through, by node, before all nodes are taken up anew instead.
const changesPerNode = 8

// viewOf brings the view of a class up to date. It costs the nodes that have changed since
// it was last asked for; the first time, all nodes.
func (s *Sim) viewOf(class int) *view {
	v := s.views[class]
	if v == nil {
		v = &view{class: class, size: s.cfg.Dimensions.Class(class), reads: &s.reads[class], index: make(map[string]int32), seen: len(s.touched)}
		v.interFrom = len(v.reads.spread)
		v.single = len(s.cfg.Classes[class].Volumes) > 0
		if s.cfg.State != nil && s.cfg.State.Constrained(class) {
			v.constrained, v.terms = true, s.cfg.State.Terms(class)
		}
		v.claims = v.constrained && s.cfg.State.HasClaims(class)
		v.findByShape(s.interCounters)
		v.where = make([]place, len(s.nodes))
		s.views[class], s.viewed = v, true
		for n := range s.nodes {
			s.refresh(v, n)
		}
		return v
	}
	if behind := s.touched[v.seen:]; len(behind) > changesPerNode*(len(s.nodes)+len(v.where)) {
		for n := range max(len(s.nodes), len(v.where)) {
			s.refresh(v, n)
		}
	} else {
		for i, n := range behind {
			if int(s.changed[n]) == v.seen+i { // else it has changed once more since
				s.refresh(v, int(n))
			}
		}
	}
	v.seen = len(s.touched)
	return v
}

// findByShape finds out whether the sets of nodes follow from their shapes and from one count.
func (v *view) findByShape(counters []interCounter) {
	v.hosts, v.byShape = -1, !v.claims
	for i := range v.reads.spread {
		if v.reads.spread[i].counter < 0 {
			v.byShape = v.hosts < 0
			v.hosts = i
		}
	}
	for i := range v.reads.inter {
		v.byShape = v.byShape && counters[v.reads.inter[i].counter].key >= 0
	}
	for _, t := range v.terms {
		v.byShape = v.byShape && t.Key != labelHostname
	}
}

// refresh takes a node up anew.
// It costs the terms of the class, and the scores that differ in the set.
func (s *Sim) refresh(v *view, n int) {
	s.Steps++
	for n >= len(v.where) {
		v.where = append(v.where, place{})
	}
	at := &v.where[n]
	if n >= len(s.nodes) {
		if at.set > 0 {
			v.remove(n)
		}
		return
	}
	x := &s.nodes[n]
	var f *fact
	if x.standing != Closed && binpack.Fits(x.room, v.size) && (n >= s.cfg.Nodes || s.cfg.Takes(v.class, n)) {
		f = s.factOf(v, x.shape)
	}
	if f == nil || !f.passes {
		if at.set > 0 {
			v.remove(n)
		}
		return
	}
	count := int32(0)
	if v.byShape && v.hosts >= 0 {
		count = s.spreadValue(&v.reads.spread[v.hosts], &s.shapes[x.shape], n)
	}
	id, shape := at.set-1, x.shape<<1|int32(x.standing)
	if id < 0 || !v.byShape || at.shape != shape || at.count != count {
		id = s.setOf(v, f, n, id)
	}
	score := s.ownScore(v, x)
	if at.set != id+1 || at.score != score {
		if at.set > 0 {
			v.remove(n)
		}
		v.insert(n, id, score)
	}
	at.shape, at.count = shape, count
}

func (s *Sim) factOf(v *view, shape int32) *fact {
	if int(shape) >= len(v.facts) {
		v.facts = append(v.facts, make([]fact, len(s.shapes)-len(v.facts))...)
	}
	f := &v.facts[shape]
	if f.known {
		return f
	}
	h, c := &s.shapes[shape], &s.cfg.Classes[v.class]
	*f = fact{known: true, passes: fit.Passes(c, h.info) && s.cfg.State.UnknownDomain(v.class, h.info) == "", taints: int64(fit.Unpreferred(c, h.info))}
	for i := range v.reads.affinity {
		t := &v.reads.affinity[i]
		if fit.MatchesTerm(&t.Term, h.info) {
			f.affinity += t.Weight
		}
	}
	for i := range v.reads.spread {
		soft := &v.reads.spread[i]
		missing := soft.key < 0 && !h.hostname || soft.key >= 0 && h.domains[soft.key] < 0
		f.ignored = f.ignored || v.reads.all && missing
	}
	return f
}

// setOf is the set that a node belongs to. What it is known by is all that the filters F7 to
// F12 and the scores read of the node besides its room. before is the set that it was in; -1: in none.
func (s *Sim) setOf(v *view, f *fact, n int, before int32) int32 {
	x := &s.nodes[n]
	h := &s.shapes[x.shape]
	key := s.work.key[:0]
	put := func(i int32) { key = binary.LittleEndian.AppendUint32(key, uint32(i)) }
	put(int32(f.taints))
	put(int32(f.affinity))
	for i := range v.reads.spread {
		put(s.spreadValue(&v.reads.spread[i], h, n))
	}
	for i := range v.reads.inter {
		put(s.interValue(v.reads.inter[i].counter, h, n))
	}
	for _, t := range v.terms {
		d := s.cfg.State.DomainOf(t, int(x.state))
		if t.Key == labelHostname && d >= 0 {
			d = s.cfg.State.Count(t, d)
		}
		put(int32(d))
	}
	if v.claims {
		put(int32(s.cfg.State.Devices(int(x.state))))
	}
	if v.single {
		put(int32(n))
	}
	if x.standing == Last {
		put(-1)
	}
	s.work.key = key
	if before >= 0 && v.sets[before].key == string(key) { // most nodes stay in theirs
		return before
	}
	if id, ok := v.index[string(key)]; ok {
		return id
	}
	id := int32(len(v.sets))
	g := set{key: string(key), taints: f.taints, affinity: f.affinity, ignored: f.ignored, last: x.standing == Last, values: make([]int32, 0, len(v.reads.spread)+len(v.reads.inter))}
	for i := range cap(g.values) {
		g.values = append(g.values, int32(binary.LittleEndian.Uint32(key[8+4*i:])))
	}
	v.index[g.key] = id
	v.sets = append(v.sets, g)
	return id
}

func (s *Sim) spreadValue(soft *softSpread, h *shape, n int) int32 {
	switch {
	case soft.counter >= 0:
		return h.domains[soft.key]
	case !h.hostname:
		return -1
	}
	return s.selected[soft.selection].at(n)
}

func (s *Sim) interValue(counter int32, h *shape, n int) int32 {
	if key := s.interCounters[counter].key; key >= 0 {
		return h.domains[key]
	}
	if !h.hostname {
		return 0
	}
	return s.inter[counter].perNode.at(n)
}

func (v *view) insert(n int, id, score int32) {
	g := &v.sets[id]
	tier := boolInt(g.last)
	v.first[tier] = min(v.first[tier], int32(n))
	if g.count == 0 {
		g.alive = int32(len(v.live))
		v.live = append(v.live, id)
	}
	g.count++
	b := 0
	for b < len(g.buckets) && g.buckets[b].score > score {
		b++
	}
	if b == len(g.buckets) || g.buckets[b].score != score {
		var nodes []int32
		if f := len(v.free); f > 0 {
			nodes, v.free = v.free[f-1], v.free[:f-1]
		}
		g.buckets = append(g.buckets, bucket{})
		copy(g.buckets[b+1:], g.buckets[b:])
		g.buckets[b] = bucket{score, nodes}
	}
	to := &g.buckets[b]
	v.where[n] = place{set: id + 1, score: score, at: int32(len(to.nodes))}
	to.nodes = append(to.nodes, int32(n))
}

func (v *view) remove(n int) {
	p := v.where[n]
	g := &v.sets[p.set-1]
	b := 0
	for g.buckets[b].score != p.score {
		b++
	}
	from := &g.buckets[b]
	last := from.nodes[len(from.nodes)-1]
	from.nodes[p.at] = last
	from.nodes = from.nodes[:len(from.nodes)-1]
	v.where[last].at = p.at
	v.where[n] = place{}
	if len(from.nodes) == 0 {
		v.free = append(v.free, from.nodes)
		copy(g.buckets[b:], g.buckets[b+1:])
		g.buckets = g.buckets[:len(g.buckets)-1]
	}
	if g.count--; g.count == 0 {
		moved := v.live[len(v.live)-1]
		v.live[g.alive] = moved
		v.sets[moved].alive = g.alive
		v.live = v.live[:len(v.live)-1]
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

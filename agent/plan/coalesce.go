package plan

import "slices"

// coalesceFrom is the number of classes from which on those that are equal to the packer
// are looked for: pods that differ in labels only are one load to it.
const coalesceFrom = 48

// pack answers a problem; classes that are equal to it are packed as one.
func pack(p *problem) packing {
	if len(p.loads) < coalesceFrom {
		return packDistinct(p)
	}
	m := p.coalesce()
	if len(m.loads) == len(p.loads) {
		return packDistinct(p)
	}
	q := *p
	q.coalesced, q.loads = nil, m.loads
	k := packDistinct(&q)
	return p.expand(&k, m)
}

// coalesced is what became of one list of loads: the groups that are asked in turn ask
// with the same list.
type coalesced struct {
	of    []load
	loads []load // one for all that are equal
	from  []int  // by merged load, where its own begin in flat
	flat  []int
}

// coalesce finds the loads that are equal.
func (p *problem) coalesce() *coalesced {
	if m := p.coalesced; m != nil && len(m.of) == len(p.loads) && len(p.loads) > 0 && &m.of[0] == &p.loads[0] {
		return m
	}
	s := p.ownArena()
	m := &coalesced{of: p.loads, loads: s.loads.alloc(0, len(p.loads))}
	ids := make(map[uint64]int, coalesceFrom) // of the last with this hash
	before := s.ints.alloc(0, len(p.loads))   // by merged load, the one before with the same hash; -1: there is none
	each := s.ints.alloc(0, len(p.loads))     // by merged load, of how many
	of := s.ints.alloc(len(p.loads), 0)       // by load, what it was merged to
	for i := range p.loads {
		l := &p.loads[i]
		h := l.hash()
		last, ok := ids[h]
		if !ok {
			last = -1
		}
		id := last
		for id >= 0 && !m.loads[id].same(l) {
			id = before[id]
		}
		if id < 0 {
			id = len(m.loads)
			ids[h] = id
			m.loads, before, each = append(m.loads, *l), append(before, last), append(each, 0)
			m.loads[id].count = 0
		}
		m.loads[id].count += l.count
		of[i] = id
		each[id]++
	}
	m.loads, m.from, m.flat = slices.Clone(m.loads), make([]int, len(each)), make([]int, len(of))
	at := 0
	for id, n := range each {
		m.from[id], each[id] = at, at
		at += n
	}
	for i, id := range of {
		m.flat[each[id]] = i
		each[id]++
	}
	if p.coalesced != nil {
		*p.coalesced = *m
	}
	return m
}

// hash tells loads apart that are not alike, nearly always (FNV-1a over words).
func (l *load) hash() uint64 {
	h := uint64(14695981039346656037)
	mix := func(v uint64) { h = (h ^ v) * 1099511628211 }
	for _, v := range l.size {
		mix(uint64(v))
	}
	for b, on := range l.on {
		if on {
			mix(uint64(b))
		}
	}
	mix(uint64(uint32(l.prio))<<1 | uint64(boolByte(l.fresh)))
	return h ^ h>>32
}

// same tells whether the packer may treat two loads as one.
func (l *load) same(o *load) bool {
	return l.prio == o.prio && l.fresh == o.fresh && slices.Equal(l.size, o.size) && slices.Equal(l.on, o.on)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// expand says of an answer for the merged problem which of the equal loads is where.
func (p *problem) expand(k *packing, m *coalesced) packing {
	s := p.ownArena()
	at := s.ints.clone(m.from, 0) // the first of each that is not all placed
	out := packing{bins: k.bins, open: s.lists.alloc(len(k.open), 0), left: s.ints.alloc(len(p.loads), 0), fresh: s.bins.alloc(0, len(k.fresh))}
	for i := range p.loads {
		out.left[i] = p.loads[i].count
	}
	deal := func(parts []part, t part) []part { // hands out t.n pods of a merged load
		for t.n > 0 {
			i := m.flat[at[t.load]]
			n := min(t.n, out.left[i])
			if n == 0 {
				at[t.load]++
				continue
			}
			parts = s.parts.push(parts, part{i, n})
			out.left[i] -= n
			t.n -= n
		}
		return parts
	}
	for b, parts := range k.open {
		for _, t := range parts {
			out.open[b] = deal(out.open[b], t)
		}
	}
	for _, f := range k.fresh {
		for left := f.times; left > 0; {
			e := freshBins{times: left, room: f.room, parts: s.parts.alloc(0, len(f.parts))}
			for _, t := range f.parts {
				for out.left[m.flat[at[t.load]]] == 0 {
					at[t.load]++
				}
				e.times = min(e.times, max(out.left[m.flat[at[t.load]]]/t.n, 1))
			}
			for _, t := range f.parts {
				if i := m.flat[at[t.load]]; out.left[i] >= t.n*e.times {
					e.parts = s.parts.push(e.parts, part{i, t.n})
					out.left[i] -= t.n * e.times
				} else {
					e.parts = deal(e.parts, t)
				}
			}
			left -= e.times
			if e.times < f.times {
				e.room = s.rooms.clone(f.room, 0)
			}
			out.fresh = s.bins.push(out.fresh, e)
		}
	}
	return out
}

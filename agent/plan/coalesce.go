package plan

import (
	"slices"
)

// coalesceFrom is the number of classes from which on those that are equal to the packer
// are looked for: pods that differ in labels only are one item to it.
const coalesceFrom = 48

// pack answers a problem; classes that are equal to it are packed as one.
func pack(p *problem) packing {
	if len(p.items) < coalesceFrom {
		return packDistinct(p)
	}
	m := p.coalesce()
	if len(m.items) == len(p.items) {
		return packDistinct(p)
	}
	q := *p
	q.coalesced, q.items = nil, m.items
	k := packDistinct(&q)
	return p.expand(&k, m)
}

// coalesced is what became of one list of items: the groups that are asked in turn ask
// with the same list.
type coalesced struct {
	of    []item
	items []item // one for all that are equal
	from  []int  // by merged item, where its own begin in flat
	flat  []int
}

// coalesce finds the items that are equal.
func (p *problem) coalesce() *coalesced {
	if m := p.coalesced; m != nil && len(m.of) == len(p.items) && len(p.items) > 0 && &m.of[0] == &p.items[0] {
		return m
	}
	s := p.ownArena()
	m := &coalesced{of: p.items, items: s.items.alloc(0, len(p.items))}
	ids := make(map[uint64]int, coalesceFrom) // of the last with this hash
	before := s.ints.alloc(0, len(p.items))   // by merged item, the one before with the same hash; -1: there is none
	each := s.ints.alloc(0, len(p.items))     // by merged item, of how many
	of := s.ints.alloc(len(p.items), 0)       // by item, what it was merged to
	for i := range p.items {
		l := &p.items[i]
		h := l.hash()
		last, ok := ids[h]
		if !ok {
			last = -1
		}
		id := last
		for id >= 0 && !m.items[id].same(l) {
			id = before[id]
		}
		if id < 0 {
			id = len(m.items)
			ids[h] = id
			m.items, before, each = append(m.items, *l), append(before, last), append(each, 0)
			m.items[id].count = 0
		}
		m.items[id].count += l.count
		of[i] = id
		each[id]++
	}
	m.items, m.from, m.flat = slices.Clone(m.items), make([]int, len(each)), make([]int, len(of))
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

// hash tells items apart that are not alike, nearly always (FNV-1a over words).
func (l *item) hash() uint64 {
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

// same tells whether the packer may treat two items as one.
func (l *item) same(o *item) bool {
	return l.prio == o.prio && l.fresh == o.fresh && slices.Equal(l.size, o.size) && slices.Equal(l.on, o.on)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// expand says of an answer for the merged problem which of the equal items is where.
func (p *problem) expand(k *packing, m *coalesced) packing {
	s := p.ownArena()
	at := s.ints.clone(m.from, 0) // the first of each that is not all placed
	out := packing{bins: k.bins, open: s.portionLists.alloc(len(k.open), 0), left: s.ints.alloc(len(p.items), 0), fresh: s.bins.alloc(0, len(k.fresh))}
	for i := range p.items {
		out.left[i] = p.items[i].count
	}
	deal := func(parts []portion, t portion) []portion { // hands out t.n pods of a merged item
		for t.n > 0 {
			i := m.flat[at[t.item]]
			n := min(t.n, out.left[i])
			if n == 0 {
				at[t.item]++
				continue
			}
			parts = s.portions.push(parts, portion{i, n})
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
			e := freshBins{times: left, room: f.room, portions: s.portions.alloc(0, len(f.portions))}
			for _, t := range f.portions {
				for out.left[m.flat[at[t.item]]] == 0 {
					at[t.item]++
				}
				e.times = min(e.times, max(out.left[m.flat[at[t.item]]]/t.n, 1))
			}
			for _, t := range f.portions {
				if i := m.flat[at[t.item]]; out.left[i] >= t.n*e.times {
					e.portions = s.portions.push(e.portions, portion{i, t.n})
					out.left[i] -= t.n * e.times
				} else {
					e.portions = deal(e.portions, t)
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

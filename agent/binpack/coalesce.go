package binpack

import (
	"slices"
)

// coalesceFrom is the number of classes from which on those that are equal to the packer
// are looked for: pods that differ in labels only are one item to it.
const coalesceFrom = 48

// Pack answers a problem; classes that are equal to it are packed as one.
func Pack(p *Problem) Packing {
	if len(p.Items) < coalesceFrom {
		return packDistinct(p)
	}
	m := p.coalesce()
	if len(m.items) == len(p.Items) {
		return packDistinct(p)
	}
	q := *p
	q.Coalesced, q.Items = nil, m.items
	k := packDistinct(&q)
	return p.expand(&k, m)
}

// Coalesced is what became of one list of items: the groups that are asked in turn ask
// with the same list.
type Coalesced struct {
	of    []Item
	items []Item // one for all that are equal
	from  []int  // by merged item, where its own begin in flat
	flat  []int
}

// coalesce finds the items that are equal.
func (p *Problem) coalesce() *Coalesced {
	if m := p.Coalesced; m != nil && len(m.of) == len(p.Items) && len(p.Items) > 0 && &m.of[0] == &p.Items[0] {
		return m
	}
	s := p.ownArena()
	m := &Coalesced{of: p.Items, items: s.Items.Alloc(0, len(p.Items))}
	ids := make(map[uint64]int, coalesceFrom) // of the last with this hash
	before := s.ints.Alloc(0, len(p.Items))   // by merged item, the one before with the same hash; -1: there is none
	each := s.ints.Alloc(0, len(p.Items))     // by merged item, of how many
	of := s.ints.Alloc(len(p.Items), 0)       // by item, the item that it was merged into
	for i := range p.Items {
		l := &p.Items[i]
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
			m.items[id].Count = 0
		}
		m.items[id].Count += l.Count
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
	if p.Coalesced != nil {
		*p.Coalesced = *m
	}
	return m
}

// hash tells items apart that are not alike, nearly always (FNV-1a over words).
func (l *Item) hash() uint64 {
	h := uint64(14695981039346656037)
	mix := func(v uint64) { h = (h ^ v) * 1099511628211 }
	for _, v := range l.Size {
		mix(uint64(v))
	}
	for b, on := range l.On {
		if on {
			mix(uint64(b))
		}
	}
	mix(uint64(uint32(l.Prio))<<1 | uint64(boolByte(l.Fresh)))
	return h ^ h>>32
}

// same tells whether the packer may treat two items as one.
func (l *Item) same(o *Item) bool {
	return l.Prio == o.Prio && l.Fresh == o.Fresh && slices.Equal(l.Size, o.Size) && slices.Equal(l.On, o.On)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// expand says of an answer for the merged problem which of the equal items is where.
func (p *Problem) expand(k *Packing, m *Coalesced) Packing {
	s := p.ownArena()
	at := s.ints.clone(m.from, 0) // the first of each that is not all placed
	out := Packing{Bins: k.Bins, Open: s.portionLists.Alloc(len(k.Open), 0), Left: s.ints.Alloc(len(p.Items), 0), Fresh: s.bins.Alloc(0, len(k.Fresh))}
	for i := range p.Items {
		out.Left[i] = p.Items[i].Count
	}
	deal := func(parts []Portion, t Portion) []Portion { // hands out t.n pods of a merged item
		for t.N > 0 {
			i := m.flat[at[t.Item]]
			n := min(t.N, out.Left[i])
			if n == 0 {
				at[t.Item]++
				continue
			}
			parts = s.portions.push(parts, Portion{i, n})
			out.Left[i] -= n
			t.N -= n
		}
		return parts
	}
	for b, parts := range k.Open {
		for _, t := range parts {
			out.Open[b] = deal(out.Open[b], t)
		}
	}
	for _, f := range k.Fresh {
		for left := f.Times; left > 0; {
			e := FreshBins{Times: left, Room: f.Room, Portions: s.portions.Alloc(0, len(f.Portions))}
			for _, t := range f.Portions {
				for out.Left[m.flat[at[t.Item]]] == 0 {
					at[t.Item]++
				}
				e.Times = min(e.Times, max(out.Left[m.flat[at[t.Item]]]/t.N, 1))
			}
			for _, t := range f.Portions {
				if i := m.flat[at[t.Item]]; out.Left[i] >= t.N*e.Times {
					e.Portions = s.portions.push(e.Portions, Portion{i, t.N})
					out.Left[i] -= t.N * e.Times
				} else {
					e.Portions = deal(e.Portions, t)
				}
			}
			left -= e.Times
			if e.Times < f.Times {
				e.Room = s.rooms.clone(f.Room, 0)
			}
			out.Fresh = s.bins.push(out.Fresh, e)
		}
	}
	return out
}

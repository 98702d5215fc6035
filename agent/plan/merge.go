package plan

import (
	"encoding/binary"
	"slices"
)

// mergeFrom is the number of classes from which on those that are equal to the packer
// are looked for: pods that differ in labels only are one load to it.
const mergeFrom = 48

// pack answers a problem; classes that are equal to it are packed as one.
func pack(p *problem) packing {
	if len(p.loads) < mergeFrom {
		return packEach(p)
	}
	q, members := p.merged()
	if len(q.loads) == len(p.loads) {
		return packEach(p)
	}
	k := packEach(q)
	return p.expand(&k, members)
}

// merging is what became of one list of loads: the groups that are asked in turn ask
// with the same list.
type merging struct {
	of, loads []load
	members   [][]int
}

// merged is the problem with one load for all that are equal, and of which each is made.
func (p *problem) merged() (*problem, [][]int) {
	q := *p
	q.asked = nil
	if m := p.asked; m != nil && len(m.of) == len(p.loads) && len(p.loads) > 0 && &m.of[0] == &p.loads[0] {
		q.loads = m.loads
		return &q, slices.Clone(m.members) // expand takes them apart
	}
	q.loads = make([]load, 0, mergeFrom)
	ids := make(map[string]int)
	of, each := make([]int, len(p.loads)), make([]int, 0, mergeFrom)
	var key []byte
	for i := range p.loads {
		l := &p.loads[i]
		key = key[:0]
		for _, v := range l.size {
			key = binary.AppendVarint(key, v)
		}
		key = binary.AppendVarint(key, int64(l.prio))
		for _, on := range l.on {
			key = append(key, boolByte(on))
		}
		key = append(key, boolByte(l.fresh))
		id, ok := ids[string(key)]
		if !ok {
			id = len(q.loads)
			ids[string(key)] = id
			q.loads, each = append(q.loads, *l), append(each, 0)
			q.loads[id].count = 0
		}
		q.loads[id].count += l.count
		of[i] = id
		each[id]++
	}
	flat, members := make([]int, len(of)), make([][]int, len(each))
	for id, n := range each {
		members[id], flat = flat[:0:n], flat[n:]
	}
	for i, id := range of {
		members[id] = append(members[id], i)
	}
	if p.asked != nil {
		*p.asked = merging{of: p.loads, loads: q.loads, members: slices.Clone(members)}
	}
	return &q, members
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// expand says of an answer for the merged problem which of the equal loads is where.
func (p *problem) expand(k *packing, members [][]int) packing {
	s := p.lends()
	out := packing{bins: k.bins, open: s.lists.lend(len(k.open), 0), left: s.ints.lend(len(p.loads), 0), fresh: s.bins.lend(0, len(k.fresh))}
	for i := range p.loads {
		out.left[i] = p.loads[i].count
	}
	deal := func(parts []part, t part) []part { // hands out t.n pods of a merged load
		for t.n > 0 {
			i := members[t.load][0]
			n := min(t.n, out.left[i])
			if n == 0 {
				members[t.load] = members[t.load][1:]
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
			e := freshBins{times: left, room: f.room, parts: s.parts.lend(0, len(f.parts))}
			for _, t := range f.parts {
				for i := members[t.load][0]; out.left[i] == 0; i = members[t.load][0] {
					members[t.load] = members[t.load][1:]
				}
				e.times = min(e.times, max(out.left[members[t.load][0]]/t.n, 1))
			}
			for _, t := range f.parts {
				if i := members[t.load][0]; out.left[i] >= t.n*e.times {
					e.parts = s.parts.push(e.parts, part{i, t.n})
					out.left[i] -= t.n * e.times
				} else {
					e.parts = deal(e.parts, t)
				}
			}
			left -= e.times
			if e.times < f.times {
				e.room = s.rooms.copied(f.room, 0)
			}
			out.fresh = s.bins.push(out.fresh, e)
		}
	}
	return out
}

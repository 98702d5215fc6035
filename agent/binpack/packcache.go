package binpack

import (
	"slices"
)

// cachedPacking are the packer's problems of this round and their answers. Groups of one and
// the same machine ask the same, and so do the ways that a round tries.
type cachedPacking struct {
	p Problem
	k Packing
}

const (
	packCacheSize = 16 // problems remembered
	packCacheOpen = 64 // open bins that a remembered problem may have
)

// Cache are the packings of one round.
type Cache struct {
	list []cachedPacking
	keep Arena
}

// Pack is the packer, asked once for equal problems. The limit of machines may differ as
// long as the answer places everything within it.
func (c *Cache) Pack(p *Problem) Packing {
	if len(p.Open) > packCacheOpen {
		return Pack(p)
	}
	for i := range c.list {
		if m := &c.list[i]; m.matches(p) {
			return m.k
		}
	}
	asked := *p
	asked.Open = make([][]int64, len(p.Open)) // the rooms themselves are filled later
	for i := range p.Open {
		asked.Open[i] = slices.Clone(p.Open[i])
	}
	k := Pack(p)
	if len(c.list) < packCacheSize {
		c.list = append(c.list, cachedPacking{asked, k.Copied(&c.keep)})
	}
	return k
}

func (m *cachedPacking) matches(p *Problem) bool {
	if m.p.Limit != p.Limit && (m.k.Unplaced() > 0 || m.k.Bins > min(p.Limit, m.p.Limit)) {
		return false
	}
	return (m.p.Empty == nil) == (p.Empty == nil) && slices.Equal(m.p.Empty, p.Empty) &&
		slices.EqualFunc(m.p.Open, p.Open, slices.Equal) &&
		slices.EqualFunc(m.p.Items, p.Items, func(a, b Item) bool {
			return a.Count == b.Count && a.same(&b)
		})
}

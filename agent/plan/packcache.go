package plan

import (
	"slices"
)

// cachedPacking are the packer's problems of this round and their answers. Groups of one and
// the same machine ask the same, and so do the ways that a round tries.
type cachedPacking struct {
	p problem
	k packing
}

const (
	packCacheSize = 16 // problems remembered
	packCacheOpen = 64 // open bins that a remembered problem may have
)

// packCache are the packings of one round.
type packCache struct {
	list []cachedPacking
	keep arena
}

// pack is the packer, asked once for equal problems. The limit of machines may differ as
// long as the answer places everything within it.
func (c *packCache) pack(p *problem) packing {
	if len(p.open) > packCacheOpen {
		return pack(p)
	}
	for i := range c.list {
		if m := &c.list[i]; m.matches(p) {
			return m.k
		}
	}
	asked := *p
	asked.open = make([][]int64, len(p.open)) // the rooms themselves are filled later
	for i := range p.open {
		asked.open[i] = slices.Clone(p.open[i])
	}
	k := pack(p)
	if len(c.list) < packCacheSize {
		c.list = append(c.list, cachedPacking{asked, k.copied(&c.keep)})
	}
	return k
}

func (m *cachedPacking) matches(p *problem) bool {
	if m.p.limit != p.limit && (m.k.unplaced() > 0 || m.k.bins > min(p.limit, m.p.limit)) {
		return false
	}
	return (m.p.empty == nil) == (p.empty == nil) && slices.Equal(m.p.empty, p.empty) &&
		slices.EqualFunc(m.p.open, p.open, slices.Equal) &&
		slices.EqualFunc(m.p.items, p.items, func(a, b item) bool {
			return a.count == b.count && a.same(&b)
		})
}

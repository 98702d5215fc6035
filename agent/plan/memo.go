package plan

import "slices"

// memo are the packer's questions of this round and their answers. Groups of one and
// the same machine ask the same, and so do the ways that a round tries.
type memo struct {
	p problem
	k packing
}

const (
	memos    = 16 // questions remembered
	memoOpen = 64 // open bins that a remembered question may have
)

// packed is pack, asked once for equal problems. The limit of machines may differ as
// long as the answer places everything within it.
func (w *world) packed(p *problem) packing {
	if len(p.open) > memoOpen {
		return pack(p)
	}
	for i := range w.memos {
		if m := &w.memos[i]; m.answers(p) {
			return m.k
		}
	}
	asked := *p
	asked.open = make([][]int64, len(p.open)) // the rooms themselves are filled later
	for i := range p.open {
		asked.open[i] = slices.Clone(p.open[i])
	}
	k := pack(p)
	if len(w.memos) < memos {
		w.memos = append(w.memos, memo{asked, k.copied(&w.desk.round)})
	}
	return k
}

func (m *memo) answers(p *problem) bool {
	if m.p.limit != p.limit && (m.k.unplaced() > 0 || m.k.bins > min(p.limit, m.p.limit)) {
		return false
	}
	return (m.p.empty == nil) == (p.empty == nil) && slices.Equal(m.p.empty, p.empty) &&
		slices.EqualFunc(m.p.open, p.open, slices.Equal) &&
		slices.EqualFunc(m.p.loads, p.loads, func(a, b load) bool {
			return a.count == b.count && a.alike(&b)
		})
}

package binpack

// Arena is a bump allocator for the packer's answers. A round packs the same pods many
// times and keeps one answer of many: memory that was allocated for one choice is reset
// before the next, without work for the garbage collector. Copy what outlives the trial.
type Arena struct {
	ints         slots[int]
	keys         slots[itemKey]
	rooms        slots[int64]
	heads        slots[[]int64]
	portions     slots[Portion]
	portionLists slots[[]Portion]
	bins         slots[FreshBins]
	Items        slots[Item]
}

// ownArena is the arena of a problem's answers.
func (p *Problem) ownArena() *Arena {
	if p.Arena == nil {
		p.Arena = new(Arena)
	}
	return p.Arena
}

// Reset frees everything that was allocated.
func (s *Arena) Reset() { s.resetTo(&Arena{}) }

// resetTo frees what was allocated since the arena was as before.
func (s *Arena) resetTo(before *Arena) {
	s.ints.resetTo(&before.ints)
	s.keys.resetTo(&before.keys)
	s.rooms.resetTo(&before.rooms)
	s.heads.resetTo(&before.heads)
	s.portions.resetTo(&before.portions)
	s.portionLists.resetTo(&before.portionLists)
	s.bins.resetTo(&before.bins)
	s.Items.resetTo(&before.Items)
}

// slots allocates values of one type from blocks of growing length.
type slots[T any] struct {
	blocks [][]T
	next   int // the first block that is unused
	free   []T // the rest of the block before
}

// The first block has blockMin values, each further one twice as many, up to
// blockDoublings times; more where more is allocated at once.
const (
	blockMin       = 16
	blockDoublings = 6
)

// Alloc returns n zeroes with capacity for so many more.
func (s *slots[T]) Alloc(n, more int) []T {
	for n+more > len(s.free) {
		if s.next == len(s.blocks) {
			s.blocks = append(s.blocks, make([]T, max(n+more, blockMin<<min(s.next, blockDoublings))))
		}
		s.free = s.blocks[s.next]
		s.next++
	}
	out := s.free[: n : n+more]
	s.free = s.free[n+more:]
	clear(out)
	return out
}

func (s *slots[T]) resetTo(before *slots[T]) {
	s.next, s.free = before.next, before.free
}

// clone is a copy with capacity for so many more.
func (s *slots[T]) clone(from []T, more int) []T {
	return append(s.Alloc(0, len(from)+more), from...)
}

// push is append that allocates from the arena.
func (s *slots[T]) push(to []T, x T) []T {
	if len(to) == cap(to) {
		to = s.clone(to, max(len(to), 4))
	}
	return append(to, x)
}

// pushAll is push for several.
func (s *slots[T]) pushAll(to, xs []T) []T {
	if len(to)+len(xs) > cap(to) {
		to = s.clone(to, max(len(to), len(xs)))
	}
	return append(to, xs...)
}

// Copied is a copy in another arena.
func (k *Packing) Copied(s *Arena) Packing {
	out := Packing{Bins: k.Bins, Left: s.ints.clone(k.Left, 0), Open: s.portionLists.Alloc(len(k.Open), 0), Fresh: s.bins.clone(k.Fresh, 0)}
	for b, parts := range k.Open {
		if parts != nil {
			out.Open[b] = s.portions.clone(parts, 0)
		}
	}
	for x := range out.Fresh {
		f := &out.Fresh[x]
		f.Room, f.Portions = s.rooms.clone(f.Room, 0), s.portions.clone(f.Portions, 0)
	}
	return out
}

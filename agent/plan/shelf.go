package plan

// shelf lends the packer what its answers are written on. A round packs the same pods
// many times and keeps one answer of many; what was lent for one choice is taken back
// before the next, so that the collector has nothing to do with it. Whoever keeps an
// answer longer copies it.
type shelf struct {
	ints  slab[int]
	keys  slab[loadKey]
	rooms slab[int64]
	heads slab[[]int64]
	parts slab[part]
	lists slab[[]part]
	bins  slab[freshBins]
	loads slab[load]
}

// lends is the shelf that a problem's answers are written on.
func (p *problem) lends() *shelf {
	if p.shelf == nil {
		p.shelf = new(shelf)
	}
	return p.shelf
}

// takeBack ends the use of everything that was lent.
func (s *shelf) takeBack() { s.takeBackTo(&shelf{}) }

// takeBackTo ends the use of what was lent since the shelf was as before.
func (s *shelf) takeBackTo(before *shelf) {
	s.ints.takeBackTo(&before.ints)
	s.keys.takeBackTo(&before.keys)
	s.rooms.takeBackTo(&before.rooms)
	s.heads.takeBackTo(&before.heads)
	s.parts.takeBackTo(&before.parts)
	s.lists.takeBackTo(&before.lists)
	s.bins.takeBackTo(&before.bins)
	s.loads.takeBackTo(&before.loads)
}

// wipe forgets what a shelf of which everything is taken back points to.
func (s *shelf) wipe() {
	s.heads.wipe()
	s.lists.wipe()
	s.bins.wipe()
	s.loads.wipe()
}

// slab is one kind of what is lent: boards of growing length, of which the first are
// lent already.
type slab[T any] struct {
	boards [][]T
	next   int // the first board that is whole
	used   int // the first that has been whole since wipe
	free   []T // what is left of the one before
}

// The first board has room for boardLeast, each further one for twice as much, up to
// boardGrows times; more where more is asked for at once.
const (
	boardLeast = 16
	boardGrows = 6
)

// lend returns n zeroes with room for so many more.
func (s *slab[T]) lend(n, more int) []T {
	for n+more > len(s.free) {
		if s.next == len(s.boards) {
			s.boards = append(s.boards, make([]T, max(n+more, boardLeast<<min(s.next, boardGrows))))
		}
		s.free = s.boards[s.next]
		s.next++
	}
	out := s.free[: n : n+more]
	s.free = s.free[n+more:]
	clear(out)
	return out
}

func (s *slab[T]) takeBackTo(before *slab[T]) {
	s.used = max(s.used, s.next)
	s.next, s.free = before.next, before.free
}

// wipe forgets what was written on a slab of which everything is taken back.
func (s *slab[T]) wipe() {
	for _, board := range s.boards[:s.used] {
		clear(board)
	}
	s.used = 0
}

// copied is a copy with room for so many more.
func (s *slab[T]) copied(from []T, more int) []T {
	return append(s.lend(0, len(from)+more), from...)
}

// push is append that lends what it needs.
func (s *slab[T]) push(to []T, x T) []T {
	if len(to) == cap(to) {
		to = s.copied(to, max(len(to), 4))
	}
	return append(to, x)
}

// pushAll is push for several.
func (s *slab[T]) pushAll(to, xs []T) []T {
	if len(to)+len(xs) > cap(to) {
		to = s.copied(to, max(len(to), len(xs)))
	}
	return append(to, xs...)
}

// copied is a copy on another shelf.
func (k *packing) copied(s *shelf) packing {
	out := packing{bins: k.bins, left: s.ints.copied(k.left, 0), open: s.lists.lend(len(k.open), 0), fresh: s.bins.copied(k.fresh, 0)}
	for b, parts := range k.open {
		if parts != nil {
			out.open[b] = s.parts.copied(parts, 0)
		}
	}
	for x := range out.fresh {
		f := &out.fresh[x]
		f.room, f.parts = s.rooms.copied(f.room, 0), s.parts.copied(f.parts, 0)
	}
	return out
}

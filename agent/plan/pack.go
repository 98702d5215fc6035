package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// item is one class of pods that want room.
type item struct {
	size  []int64
	on    []bool // by open bin, whether it may go there; nil: nowhere
	count int
	prio  int32
	fresh bool // whether it may go on a fresh bin
}

// goes tells whether a item may go on an open bin.
func (l *item) goes(b int) bool { return l.on != nil && l.on[b] }

// problem is one problem for the packer: put the items into the open bins first and
// into as few fresh bins as possible, never more than limit.
type problem struct {
	items     []item
	open      [][]int64 // room of each open bin
	empty     []int64   // room of a fresh bin; nil: there are none
	limit     int
	coalesced *coalesced // what the same items were merged to; nil: they are of this problem alone
	pool      *int       // steps that all packings of a round may still spend on columns; nil: enough
	arena     *arena     // see lends
}

// portion says that n pods of a item are in a bin.
type portion struct{ item, n int }

// freshBins are times fresh bins with the same content.
type freshBins struct {
	times    int
	room     []int64
	portions []portion
}

// packing is an answer. Fresh bins come in the order in which they were opened. It stands
// until the problem's arena is reset.
type packing struct {
	bins  int
	open  [][]portion
	fresh []freshBins
	left  []int // per item
}

func (k *packing) unplaced() int {
	n := 0
	for _, c := range k.left {
		n += c
	}
	return n
}

// packDistinct answers a problem. It tries a few orders of first fit decreasing and of
// filling one bin at a time, stops as soon as one reaches the lower bound, and
// otherwise searches for a better answer within a budget counted in steps, so that
// equal problems have equal answers on any machine.
func packDistinct(p *problem) packing {
	if len(p.items) == 0 {
		return packing{open: make([][]portion, len(p.open))}
	}
	bound := p.lowerBound()
	best, done := p.heuristics(bound)
	if done {
		return best
	}
	if looks := len(p.items) * max(best.bins, len(p.open)); len(p.items) > fewItems && looks > longSteps || p.coarse() && looks > coarseSteps {
		if best.unplaced() > 0 {
			return p.firstFit(p.byPriority())
		}
		return best
	}
	if k, ok := p.branchAndBound(best.bins, best.unplaced() == 0, bound, firstBranchSteps); ok && k.better(&best) {
		best = k
	}
	if p.empty != nil && best.bins > 0 && (best.bins > bound || best.unplaced() > 0) {
		k, least, ok := p.columnGeneration(&best)
		if ok && k.bins <= p.limit && k.better(&best) {
			best = k
		}
		if len(p.open) == 0 {
			bound = max(bound, least)
		} else if best.bins > bound { // what filled the open bins may have been the wrong pods
			if k, _, ok := p.columnGeneration(p.nothing()); ok && k.bins <= p.limit && k.better(&best) {
				best = k
			}
		}
	}
	if best.unplaced() == 0 && best.bins <= bound {
		return best
	}
	if k, ok := p.branchAndBound(best.bins, best.unplaced() == 0, bound, branchSteps); ok && k.better(&best) {
		return k
	}
	if best.unplaced() > 0 {
		return p.firstFit(p.byPriority())
	}
	return best
}

// heuristics tries the ways that cost little, and tells whether the answer is good enough.
func (p *problem) heuristics(bound int) (best packing, done bool) {
	enough := p.tolerance(bound)
	s := p.ownArena()
	for i := range orderings {
		before := *s
		if k := p.firstFit(p.order(i)); i == 0 || k.better(&best) {
			best = k
		} else {
			s.resetTo(&before)
		}
		if i == 0 && !(best.unplaced() == 0 && best.bins <= enough) {
			for _, slack := range fairShareSlacks {
				before := *s
				if k, ok := p.packFairShare(slack); ok && k.better(&best) {
					best = k
				} else {
					s.resetTo(&before)
				}
				if best.unplaced() == 0 && best.bins <= enough {
					break
				}
			}
		}
		if i < byPair && best.bins > bound {
			continue // nobody is to buy more than Cluster Autoscaler's rule would
		}
		if looks := len(p.items) * best.bins; best.unplaced() == 0 && (best.bins <= enough || looks > hugeSteps || p.coarse() && looks > coarseSteps) {
			return best, true
		}
	}
	for _, mode := range []int{fillLargest, fillDot} {
		if k := p.fill(mode); k.better(&best) {
			best = k
		}
		if best.unplaced() == 0 && best.bins <= enough {
			return best, true
		}
	}
	return best, false
}

// Large answers are not improved to the last machine: closeEnough is the share of the
// bound that is let go, manyLooks the size (classes by bins) from which on one machine
// is, longLooks that from which on nothing but the quick ways is tried, and hugeLooks
// that from which on the first of these has to do.
const (
	toleranceDivisor = 100
	manySteps        = 20_000
	longSteps        = 6_000
	hugeSteps        = 400_000
	coarseSteps      = 1_000 // that from which on the same holds where the round is rough
	fewItems         = 40    // classes up to which columns are cheap for any number of bins
)

// tolerance is the number of bins with which there is no point in looking on.
func (p *problem) tolerance(bound int) int {
	if len(p.items)*bound > manySteps {
		return bound + max(bound/toleranceDivisor, 1)
	}
	return bound + bound/toleranceDivisor
}

// coarse tells that the round has so many groups that which of them is taken matters
// more than the last machine of each.
func (p *problem) coarse() bool { return p.pool != nil && *p.pool <= coarsePool }

// nothing is the answer that places no pod.
func (p *problem) nothing() *packing {
	k := &packing{open: make([][]portion, len(p.open)), left: make([]int, len(p.items))}
	for i := range p.items {
		k.left[i] = p.items[i].count
	}
	return k
}

func (k *packing) better(than *packing) bool {
	if a, b := k.unplaced(), than.unplaced(); a != b {
		return a < b
	}
	return k.bins < than.bins
}

func (p *problem) start() (k packing, rooms [][]int64) {
	s := p.ownArena()
	k = packing{open: s.portionLists.alloc(len(p.open), 0), left: s.ints.alloc(len(p.items), 0)}
	anywhere := false
	for i := range p.items {
		k.left[i] = p.items[i].count
		anywhere = anywhere || len(p.items[i].on) > 0
	}
	if !anywhere {
		return k, p.open // nobody will take any of it
	}
	rooms = s.heads.alloc(len(p.open), 0)
	for i, b := range p.open {
		rooms[i] = s.rooms.clone(b, 0)
	}
	return k, rooms
}

// firstFit places whole classes by counts: equal bins are one entry with a number.
func (p *problem) firstFit(order []int) packing {
	k, rooms := p.start()
	s := p.ownArena()
	for _, i := range order {
		l := &p.items[i]
		for b := 0; b < len(l.on) && k.left[i] > 0; b++ {
			if !l.on[b] {
				continue
			}
			if n := min(k.left[i], fit.MaxFit(rooms[b], l.size)); n > 0 {
				fit.Sub(rooms[b], l.size, n)
				k.open[b] = s.portions.push(k.open[b], portion{i, n})
				k.left[i] -= n
			}
		}
		if !l.fresh || p.empty == nil {
			continue
		}
		k.pourAll(s, i, l.size)
		p.openFresh(&k, i)
	}
	return k
}

// pourAll puts what is left of a item wherever the fresh bins have room. Most bins are
// full to it, and full of what the bin before was full of: that is looked at first.
func (k *packing) pourAll(s *arena, i int, size []int64) {
	lacks, least := 0, size[0]
look:
	for b := 0; b < len(k.fresh) && k.left[i] > 0; b++ {
		room := k.fresh[b].room
		if room[lacks] < least && least > 0 {
			continue
		}
		for j, n := range size {
			if n > 0 && room[j] < n {
				lacks, least = j, n
				continue look
			}
		}
		b = k.pour(s, b, i, size)
	}
}

// pour puts what is left of a item into the equal bins at b and returns the index of
// the last entry that these bins now take. No entry shares its room or its portions with
// another one.
func (k *packing) pour(s *arena, b, i int, size []int64) int {
	src := &k.fresh[b]
	per := fit.MaxFit(src.room, size)
	if per == 0 {
		return b
	}
	per = min(per, k.left[i])
	full := min(src.times, k.left[i]/per)
	k.left[i] -= full * per
	rest := src.times - full
	if rest == 0 {
		src.put(s, i, per, size)
		return b
	}
	var room [3]freshBins
	out := append(room[:0], src.copied(s, full))
	out[0].put(s, i, per, size)
	if k.left[i] > 0 {
		out = append(out, src.copied(s, 1))
		out[1].put(s, i, k.left[i], size)
		k.left[i] = 0
		rest--
	}
	if rest > 0 {
		src.times = rest
		out = append(out, *src)
	}
	more := len(out) - 1
	for range more {
		k.fresh = s.bins.push(k.fresh, freshBins{})
	}
	copy(k.fresh[b+1+more:], k.fresh[b+1:])
	copy(k.fresh[b:], out)
	return b + more
}

// copied is an entry of its own for so many of the equal bins.
func (f *freshBins) copied(s *arena, times int) freshBins {
	return freshBins{times: times, room: s.rooms.clone(f.room, 0), portions: s.portions.clone(f.portions, 4)}
}

// put adds n pods of item i to each of the bins.
func (f *freshBins) put(s *arena, i, n int, size []int64) {
	fit.Sub(f.room, size, n)
	for at := range f.portions {
		if f.portions[at].item == i {
			f.portions[at].n += n
			return
		}
	}
	f.portions = s.portions.push(f.portions, portion{i, n})
}

// openFresh opens as many fresh bins as a item still needs and the limit allows.
func (p *problem) openFresh(k *packing, i int) {
	l := &p.items[i]
	per := fit.MaxFit(p.empty, l.size)
	if per == 0 || k.left[i] == 0 {
		return
	}
	s := p.ownArena()
	for k.left[i] > 0 && k.bins < p.limit {
		n := min(per, k.left[i])
		times := min(k.left[i]/n, p.limit-k.bins)
		e := freshBins{times: times, room: s.rooms.clone(p.empty, 0), portions: s.portions.push(nil, portion{i, n})}
		fit.Sub(e.room, l.size, n)
		k.fresh = s.bins.push(k.fresh, e)
		k.bins += times
		k.left[i] -= times * n
	}
}

const (
	fillLargest = iota
	fillDot
	fillSteps = 2_000_000 // looks at a class, for all bins of one call
)

// fill completes one bin at a time: always the class that best matches the room that
// is left. A content found for a fresh bin is used as often as the counts allow.
func (p *problem) fill(mode int) packing {
	k, rooms := p.start()
	w := p.weights()
	steps := 0
	for b := range rooms {
		k.open[b] = p.content(rooms[b], k.left, w, mode, func(l *item) bool { return l.goes(b) }, &steps)
		for _, t := range k.open[b] {
			k.left[t.item] -= t.n
		}
	}
	if p.empty == nil {
		return k
	}
	for k.bins < p.limit && steps < fillSteps {
		room := slices.Clone(p.empty)
		parts := p.content(room, k.left, w, mode, func(l *item) bool { return l.fresh }, &steps)
		if len(parts) == 0 {
			break
		}
		times := p.limit - k.bins
		for _, t := range parts {
			times = min(times, k.left[t.item]/t.n)
		}
		for _, t := range parts {
			k.left[t.item] -= times * t.n
		}
		k.fresh = append(k.fresh, freshBins{times, room, parts})
		k.bins += times
	}
	return k
}

func (p *problem) content(room []int64, left []int, w []float64, mode int, may func(*item) bool, steps *int) []portion {
	taken := make(map[int]int)
	for {
		best, score := -1, -1.0
		for i := range p.items {
			*steps++
			l := &p.items[i]
			if left[i] <= taken[i] || !may(l) || fit.MaxFit(room, l.size) == 0 {
				continue
			}
			s := 0.0
			for j, v := range l.size {
				if mode == fillDot {
					s += float64(v) * w[j] * float64(room[j]) * w[j]
				} else {
					s = max(s, float64(v)*w[j])
				}
			}
			if s > score {
				best, score = i, s
			}
		}
		if best < 0 || *steps > fillSteps {
			break
		}
		fit.Sub(room, p.items[best].size, 1)
		taken[best]++
	}
	var parts []portion
	for i := range p.items {
		if taken[i] > 0 {
			parts = append(parts, portion{i, taken[i]})
		}
	}
	return parts
}

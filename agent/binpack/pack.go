package binpack

// Item is one class of pods that want room.
type Item struct {
	Size  []int64
	On    []bool // by open bin, whether it may go there; nil: nowhere
	Count int
	Prio  int32
	Fresh bool // whether it may go on a fresh bin
}

// mayGo tells whether a item may go on an open bin.
func (l *Item) mayGo(b int) bool { return l.On != nil && l.On[b] }

// Problem is one problem for the packer: put the items into the open bins first and
// into as few fresh bins as possible, never more than limit.
type Problem struct {
	Items     []Item
	Open      [][]int64 // room of each open bin
	Empty     []int64   // room of a fresh bin; nil: there are none
	Limit     int
	Coalesced *Coalesced // what the same items were merged to; nil: they are of this problem alone
	Pool      *int       // steps that all packings of a round may still spend on columns; nil: enough
	Arena     *Arena     // see ownArena
}

// Portion says that n pods of a item are in a bin.
type Portion struct{ Item, N int }

// FreshBins are times fresh bins with the same content.
type FreshBins struct {
	Times    int
	Room     []int64
	Portions []Portion
}

// Packing is an answer. Fresh bins come in the order in which they were opened. It stands
// until the problem's arena is reset.
type Packing struct {
	Bins  int
	Open  [][]Portion
	Fresh []FreshBins
	Left  []int // per item
}

func (k *Packing) Unplaced() int {
	n := 0
	for _, c := range k.Left {
		n += c
	}
	return n
}

// packDistinct answers a problem. It tries a few orders of first fit decreasing and of
// filling one bin at a time, stops as soon as one reaches the lower bound, and
// otherwise searches for a better answer within a budget counted in steps, so that
// equal problems have equal answers on any machine.
func packDistinct(p *Problem) Packing {
	if len(p.Items) == 0 {
		return Packing{Open: make([][]Portion, len(p.Open))}
	}
	bound := p.LowerBound()
	best, done := p.heuristics(bound)
	if done {
		return best
	}
	if looks := len(p.Items) * max(best.Bins, len(p.Open)); len(p.Items) > fewItems && looks > longSteps || p.coarse() && looks > coarseSteps {
		if best.Unplaced() > 0 {
			return p.FirstFit(p.byPriority())
		}
		return best
	}
	if k, ok := p.branchAndBound(best.Bins, best.Unplaced() == 0, bound, firstBranchSteps); ok && k.better(&best) {
		best = k
	}
	if p.Empty != nil && best.Bins > 0 && (best.Bins > bound || best.Unplaced() > 0) {
		k, least, ok := p.columnGeneration(&best)
		if ok && k.Bins <= p.Limit && k.better(&best) {
			best = k
		}
		if len(p.Open) == 0 {
			bound = max(bound, least)
		} else if best.Bins > bound { // what filled the open bins may have been the wrong pods
			if k, _, ok := p.columnGeneration(p.nothing()); ok && k.Bins <= p.Limit && k.better(&best) {
				best = k
			}
		}
	}
	if best.Unplaced() == 0 && best.Bins <= bound {
		return best
	}
	if k, ok := p.branchAndBound(best.Bins, best.Unplaced() == 0, bound, branchSteps); ok && k.better(&best) {
		return k
	}
	if best.Unplaced() > 0 {
		return p.FirstFit(p.byPriority())
	}
	return best
}

// heuristics tries the ways that cost little, and tells whether the answer is good enough.
func (p *Problem) heuristics(bound int) (best Packing, done bool) {
	enough := p.tolerance(bound)
	s := p.ownArena()
	if p.Empty != nil && len(p.Items)*min(bound, p.Limit) > manyLooks {
		best = p.packBinByBin()
		return best, best.Unplaced() == 0
	}
	for i := range orderings {
		before := *s
		if k := p.FirstFit(p.Order(i)); i == 0 || k.better(&best) {
			best = k
		} else {
			s.resetTo(&before)
		}
		if i == 0 && !(best.Unplaced() == 0 && best.Bins <= enough) {
			for _, slack := range fairShareSlacks {
				before := *s
				if k, ok := p.packFairShare(slack); ok && k.better(&best) {
					best = k
				} else {
					s.resetTo(&before)
				}
				if best.Unplaced() == 0 && best.Bins <= enough {
					break
				}
			}
		}
		if i < ByPair && best.Bins > bound {
			continue // nobody is to buy more than Cluster Autoscaler's rule would
		}
		if looks := len(p.Items) * best.Bins; best.Unplaced() == 0 && (best.Bins <= enough || looks > hugeSteps || p.coarse() && looks > coarseSteps) {
			return best, true
		}
	}
	for _, mode := range []int{fillLargest, fillDot} {
		if k := p.fill(mode); k.better(&best) {
			best = k
		}
		if best.Unplaced() == 0 && best.Bins <= enough {
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
func (p *Problem) tolerance(bound int) int {
	if len(p.Items)*bound > manySteps {
		return bound + max(bound/toleranceDivisor, 1)
	}
	return bound + bound/toleranceDivisor
}

// coarse tells that the round has so many groups that which of them is taken matters
// more than the last machine of each.
func (p *Problem) coarse() bool { return p.Pool != nil && *p.Pool <= CoarsePool }

// nothing is the answer that places no pod.
func (p *Problem) nothing() *Packing {
	k := &Packing{Open: make([][]Portion, len(p.Open)), Left: make([]int, len(p.Items))}
	for i := range p.Items {
		k.Left[i] = p.Items[i].Count
	}
	return k
}

func (k *Packing) better(than *Packing) bool {
	if a, b := k.Unplaced(), than.Unplaced(); a != b {
		return a < b
	}
	return k.Bins < than.Bins
}

func (p *Problem) start() (k Packing, rooms [][]int64) {
	s := p.ownArena()
	k = Packing{Open: s.portionLists.Alloc(len(p.Open), 0), Left: s.ints.Alloc(len(p.Items), 0)}
	anywhere := false
	for i := range p.Items {
		k.Left[i] = p.Items[i].Count
		anywhere = anywhere || len(p.Items[i].On) > 0
	}
	if !anywhere {
		return k, p.Open // nobody will take any of it
	}
	rooms = s.heads.Alloc(len(p.Open), 0)
	for i, b := range p.Open {
		rooms[i] = s.rooms.clone(b, 0)
	}
	return k, rooms
}

// FirstFit places whole classes by counts: equal bins are one entry with a number.
func (p *Problem) FirstFit(order []int) Packing {
	k, rooms := p.start()
	s := p.ownArena()
	for _, i := range order {
		l := &p.Items[i]
		for b := 0; b < len(l.On) && k.Left[i] > 0; b++ {
			if !l.On[b] {
				continue
			}
			if n := min(k.Left[i], MaxFit(rooms[b], l.Size)); n > 0 {
				Sub(rooms[b], l.Size, n)
				k.Open[b] = s.portions.push(k.Open[b], Portion{i, n})
				k.Left[i] -= n
			}
		}
		if !l.Fresh || p.Empty == nil {
			continue
		}
		k.pourAll(s, i, l.Size)
		p.openFresh(&k, i)
	}
	return k
}

// pourAll puts what is left of a item wherever the fresh bins have room. Most bins are
// full to it, and full of what the bin before was full of: that is looked at first.
func (k *Packing) pourAll(s *Arena, i int, size []int64) {
	lacks, least := 0, size[0]
look:
	for b := 0; b < len(k.Fresh) && k.Left[i] > 0; b++ {
		room := k.Fresh[b].Room
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
func (k *Packing) pour(s *Arena, b, i int, size []int64) int {
	src := &k.Fresh[b]
	per := MaxFit(src.Room, size)
	if per == 0 {
		return b
	}
	per = min(per, k.Left[i])
	full := min(src.Times, k.Left[i]/per)
	k.Left[i] -= full * per
	rest := src.Times - full
	if rest == 0 {
		src.put(s, i, per, size)
		return b
	}
	var room [3]FreshBins
	out := append(room[:0], src.copied(s, full))
	out[0].put(s, i, per, size)
	if k.Left[i] > 0 {
		out = append(out, src.copied(s, 1))
		out[1].put(s, i, k.Left[i], size)
		k.Left[i] = 0
		rest--
	}
	if rest > 0 {
		src.Times = rest
		out = append(out, *src)
	}
	more := len(out) - 1
	for range more {
		k.Fresh = s.bins.push(k.Fresh, FreshBins{})
	}
	copy(k.Fresh[b+1+more:], k.Fresh[b+1:])
	copy(k.Fresh[b:], out)
	return b + more
}

// copied is an entry of its own for so many of the equal bins.
func (f *FreshBins) copied(s *Arena, times int) FreshBins {
	return FreshBins{Times: times, Room: s.rooms.clone(f.Room, 0), Portions: s.portions.clone(f.Portions, 4)}
}

// put adds n pods of item i to each of the bins.
func (f *FreshBins) put(s *Arena, i, n int, size []int64) {
	Sub(f.Room, size, n)
	for at := range f.Portions {
		if f.Portions[at].Item == i {
			f.Portions[at].N += n
			return
		}
	}
	f.Portions = s.portions.push(f.Portions, Portion{i, n})
}

// openFresh opens as many fresh bins as a item still needs and the limit allows.
func (p *Problem) openFresh(k *Packing, i int) {
	l := &p.Items[i]
	per := MaxFit(p.Empty, l.Size)
	if per == 0 || k.Left[i] == 0 {
		return
	}
	s := p.ownArena()
	for k.Left[i] > 0 && k.Bins < p.Limit {
		n := min(per, k.Left[i])
		times := min(k.Left[i]/n, p.Limit-k.Bins)
		e := FreshBins{Times: times, Room: s.rooms.clone(p.Empty, 0), Portions: s.portions.push(nil, Portion{i, n})}
		Sub(e.Room, l.Size, n)
		k.Fresh = s.bins.push(k.Fresh, e)
		k.Bins += times
		k.Left[i] -= times * n
	}
}

const (
	fillLargest = iota
	fillDot
	fillSteps   = 2_000_000 // looks at eight dimensions of a class, for all bins of one call
	fillDivisor = 8         // so many looks are a step of Problem.Pool
)

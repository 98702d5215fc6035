package binpack

import (
	"cmp"
	"slices"
)

// Problem is one problem for the packer: put the items into the open bins first and
// into as few fresh bins as possible, never more than limit.
type Problem struct {
	Items []Item
	Open  [][]int64 // room of each open bin
	Empty []int64   // room of a fresh bin; nil: there are none
	Limit int
}

// Portion says that n pods of an item are in a bin.
type Portion struct{ Item, N int }

// FreshBins are times fresh bins with the same content.
type FreshBins struct {
	Times    int
	Room     []int64
	Portions []Portion
}

// Packing is an answer. Fresh bins come in the order in which they were opened.
type Packing struct {
	Bins  int
	Open  []FilledBin // the open bins that take something
	Fresh []FreshBins
	Left  []int // per item

	filled []int32 // by open bin, one more than its place in Open; 0: it takes nothing
}

// FilledBin is an open bin with what it takes.
type FilledBin struct {
	Bin      int     // its place in Problem.Open
	Room     []int64 // that is left
	Portions []Portion
}

func (k *Packing) Unplaced() int {
	n := 0
	for _, c := range k.Left {
		n += c
	}
	return n
}

// Pack answers a problem by first fit decreasing in a few orders, and in the first of them by fair shares of the bins
// too. The first answer that comes close to the lower bound is taken: a longer search would pack more tightly, but
// kube-scheduler does not bind that tightly.
// It costs, for each of up to six packings, the items times the bins of different content.
func Pack(p *Problem) Packing {
	if len(p.Items) == 0 {
		return Packing{}
	}
	bound := p.LowerBound()
	var best Packing
	if len(p.Items)*min(bound, p.Limit) > manyLooks {
		best = p.packBinByBin()
	} else {
		best = p.tryOrders(bound)
	}
	if best.Unplaced() > 0 {
		return p.FirstFit(p.byPriority())
	}
	return best
}

// tryOrders is the best answer of all orders, or the first that is close enough to the bound.
func (p *Problem) tryOrders(bound int) (best Packing) {
	best = p.FirstFit(p.Order(ByShare))
	keep := func(k Packing) {
		if k.better(&best) {
			best = k
		}
	}
	enough, huge := p.tolerance(bound), len(p.Items)*len(p.Open) > hugeOpenLooks
	done := func() bool {
		return best.Unplaced() == 0 && best.Bins <= enough || huge || p.looks(best.Bins) > hugeLooks
	}
	for _, slack := range fairShareSlacks {
		if done() {
			break
		}
		if k, ok := p.packFairShare(slack); ok {
			keep(k)
		}
	}
	if best.Bins > bound || !done() { // no answer may have more bins than Cluster Autoscaler's order
		keep(p.FirstFit(p.Order(ByPair)))
	}
	if !done() {
		keep(p.FirstFit(p.Order(byScarcity)))
	}
	if !done() { // headroom is behind all pods, as where the model binds
		keep(p.FirstFit(p.byClassPriority()))
	}
	return best
}

// Problems of many looks are answered more coarsely: the share of the bound that is let go is one percent, and two
// percent from largeLooks on. From hugeLooks at fresh bins on, or hugeOpenLooks at open ones, the first two orders have to do,
// without fair shares.
const (
	toleranceDivisor      = 100
	largeToleranceDivisor = 50
	largeLooks            = 100_000
	hugeLooks             = 400_000
	hugeOpenLooks         = 1_000_000
	dimensionsOfLook      = 8
)

// looks is the most that one order costs.
func (p *Problem) looks(bins int) int { return Looks(len(p.Items), bins, len(p.Empty)) }

// Looks is the most that it costs to hold items against bins: a look is one item at eight dimensions of one bin.
func Looks(items, bins, dimensions int) int {
	return items * bins * max(dimensions/dimensionsOfLook, 1)
}

// tolerance is the number of bins with which there is no point in looking on.
func (p *Problem) tolerance(bound int) int {
	if p.looks(bound) > largeLooks {
		return bound + bound/largeToleranceDivisor
	}
	return bound + bound/toleranceDivisor
}

func (k *Packing) better(than *Packing) bool {
	return cmp.Or(cmp.Compare(k.Unplaced(), than.Unplaced()), cmp.Compare(k.Bins, than.Bins)) < 0
}

func (p *Problem) start() (k Packing) {
	k = Packing{Left: make([]int, len(p.Items))}
	for i := range p.Items {
		k.Left[i] = p.Items[i].Count
	}
	return k
}

// FirstFit places whole classes by counts: equal bins are one entry with a number.
func (p *Problem) FirstFit(order []int) Packing {
	k := p.start()
	for _, i := range order {
		l := &p.Items[i]
		p.pourOpen(&k, i)
		if !l.Fresh || p.Empty == nil {
			continue
		}
		k.pourAll(i, l)
		p.openFresh(&k, i)
	}
	return k
}

// pourOpen puts what is left of an item on the open bins, the first first.
func (p *Problem) pourOpen(k *Packing, i int) {
	l := &p.Items[i]
	for b := l.On.Next(0); b >= 0 && k.Left[i] > 0; b = l.On.Next(b + 1) {
		room := p.Open[b]
		if k.filled != nil && k.filled[b] > 0 {
			room = k.Open[k.filled[b]-1].Room
		}
		if n := min(k.Left[i], l.MaxFit(room)); n > 0 {
			f := k.fill(p, b)
			l.Take(f.Room, n)
			f.Portions = append(f.Portions, Portion{i, n})
			k.Left[i] -= n
		}
	}
}

// fill is an open bin as the answer has it.
func (k *Packing) fill(p *Problem, b int) *FilledBin {
	if k.filled == nil {
		k.filled = make([]int32, len(p.Open))
	}
	if k.filled[b] == 0 {
		k.Open = append(k.Open, FilledBin{Bin: b, Room: slices.Clone(p.Open[b])})
		k.filled[b] = int32(len(k.Open))
	}
	return &k.Open[k.filled[b]-1]
}

// pourAll puts what is left of an item wherever the fresh bins have room. Most bins are
// full to it, and full of what the bin before was full of: that is looked at first.
func (k *Packing) pourAll(i int, l *Item) {
	lacks, least := 0, l.Size[0]
	for b := 0; b < len(k.Fresh) && k.Left[i] > 0; b++ {
		room := k.Fresh[b].Room
		if room[lacks] < least && least > 0 {
			continue
		}
		if j := l.lacks(room); j >= 0 {
			lacks, least = j, l.Size[j]
			continue
		}
		b = k.pour(b, i, l)
	}
}

// pour puts what is left of an item into the equal bins at b, which have room for one, and returns the index of
// the last entry that these bins now take. No entry shares its room or its portions with
// another one.
func (k *Packing) pour(b, i int, l *Item) int {
	src := &k.Fresh[b]
	per := min(l.MaxFit(src.Room), k.Left[i])
	full := min(src.Times, k.Left[i]/per)
	k.Left[i] -= full * per
	rest := src.Times - full
	if rest == 0 {
		src.put(i, per, l)
		return b
	}
	var room [3]FreshBins
	out := append(room[:0], src.copied(full))
	out[0].put(i, per, l)
	if k.Left[i] > 0 {
		out = append(out, src.copied(1))
		out[1].put(i, k.Left[i], l)
		k.Left[i] = 0
		rest--
	}
	if rest > 0 {
		src.Times = rest
		out = append(out, *src)
	}
	more := len(out) - 1
	for range more {
		k.Fresh = append(k.Fresh, FreshBins{})
	}
	copy(k.Fresh[b+1+more:], k.Fresh[b+1:])
	copy(k.Fresh[b:], out)
	return b + more
}

// copied is an entry of its own for so many of the equal bins.
func (f *FreshBins) copied(times int) FreshBins {
	return FreshBins{Times: times, Room: slices.Clone(f.Room), Portions: append(make([]Portion, 0, len(f.Portions)+4), f.Portions...)}
}

// put adds n pods of item i to each of the bins.
func (f *FreshBins) put(i, n int, l *Item) {
	l.Take(f.Room, n)
	for at := range f.Portions {
		if f.Portions[at].Item == i {
			f.Portions[at].N += n
			return
		}
	}
	f.Portions = append(f.Portions, Portion{i, n})
}

// openFresh opens as many fresh bins as an item still needs and the limit allows.
func (p *Problem) openFresh(k *Packing, i int) {
	l := &p.Items[i]
	per := l.MaxFit(p.Empty)
	for per > 0 && k.Left[i] > 0 && k.Bins < p.Limit {
		n := min(per, k.Left[i])
		times := min(k.Left[i]/n, p.Limit-k.Bins)
		e := FreshBins{Times: times, Room: slices.Clone(p.Empty), Portions: []Portion{{i, n}}}
		l.Take(e.Room, n)
		k.Fresh = append(k.Fresh, e)
		k.Bins += times
		k.Left[i] -= times * n
	}
}

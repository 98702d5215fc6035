package binpack

import (
	"slices"
	"sort"
)

// First fit looks at every bin for every item. Where that is more than manyLooks, the same packing
// is made bin by bin: each takes the largest item that it has room for, and then the next. An
// item is skipped by its largest share, without a look at it, where the bin has less than that
// left; missesPerBin are the looks for nothing after which a bin is left as it is.
const (
	manyLooks    = 20_000_000
	missesPerBin = 128
)

// packBinByBin places the items on the open bins by first fit, and what is left bin by bin. It costs
// the items times the open bins where they may go, and of the fresh bins a few looks for each pod
// and bin.
func (p *Problem) packBinByBin() Packing {
	onlyOpen := *p
	onlyOpen.Empty = nil
	order := p.Order(ByShare)
	k := onlyOpen.FirstFit(order)
	lists := p.byLargestShare(order, k.Left)
	for k.Bins < p.Limit {
		bin, ok := p.fillFrom(lists, k.Left)
		if !ok {
			break
		}
		k.repeat(bin, p.Limit)
		for d := range lists {
			lists[d].drop(k.Left)
		}
	}
	return k
}

// shareList are the items whose largest share is of one dimension, by falling share.
type shareList struct {
	dimension int
	weight    float64
	items     []int
	shares    []float64
	next      []int // by place in the list: the first place from it on whose item has pods left
	at        int   // of the bin that is being filled
	touched   []int // places whose items the bin has taken
}

// byLargestShare divides the items of an order by share into lists, one for each dimension.
func (p *Problem) byLargestShare(order, left []int) []shareList {
	w := p.weights()
	lists := make([]shareList, len(w))
	for d := range lists {
		lists[d] = shareList{dimension: d, weight: w[d]}
	}
	for _, i := range order {
		l := &p.Items[i]
		if !l.Fresh || left[i] == 0 || l.MaxFit(p.Empty) == 0 {
			continue
		}
		largest, share := 0, 0.0
		for d, n := range l.Size {
			if s := float64(n) * w[d]; s > share {
				largest, share = d, s
			}
		}
		lists[largest].items = append(lists[largest].items, i)
		lists[largest].shares = append(lists[largest].shares, share)
	}
	for d := range lists {
		x := &lists[d]
		x.next = make([]int, len(x.items)+1)
		for n := range x.next {
			x.next[n] = n
		}
	}
	return lists
}

// first is the first place from one on whose item has pods left.
func (x *shareList) first(from int) int {
	to := from
	for x.next[to] != to {
		to = x.next[to]
	}
	for x.next[from] != to {
		x.next[from], from = to, x.next[from]
	}
	return to
}

// seek moves on to the next item that the room of the list's dimension lets in.
func (x *shareList) seek(room []int64) bool {
	most := float64(room[x.dimension]) * x.weight
	if x.at < len(x.items) && x.shares[x.at] > most {
		x.at += sort.Search(len(x.items)-x.at, func(n int) bool { return x.shares[x.at+n] <= most })
	}
	x.at = x.first(x.at)
	return x.at < len(x.items)
}

// drop takes out the items that the last bin took the last pods of.
func (x *shareList) drop(left []int) {
	for _, n := range x.touched {
		if left[x.items[n]] == 0 {
			x.next[n] = n + 1
		}
	}
	x.at, x.touched = 0, x.touched[:0]
}

// fillFrom is one fresh bin with the largest items that it has room for.
func (p *Problem) fillFrom(lists []shareList, left []int) (bin FreshBins, ok bool) {
	bin.Room = slices.Clone(p.Empty)
	for misses := 0; misses < missesPerBin; {
		var best *shareList
		for d := range lists {
			if x := &lists[d]; x.seek(bin.Room) && (best == nil || x.shares[x.at] > best.shares[best.at]) {
				best = x
			}
		}
		if best == nil {
			break
		}
		i := best.items[best.at]
		if n := min(p.Items[i].MaxFit(bin.Room), left[i]); n > 0 {
			p.Items[i].Take(bin.Room, n)
			bin.Portions = append(bin.Portions, Portion{i, n})
			best.touched = append(best.touched, best.at)
		} else {
			misses++
		}
		best.at++
	}
	return bin, len(bin.Portions) > 0
}

// repeat adds a fresh bin as often as its content and the limit allow.
func (k *Packing) repeat(bin FreshBins, limit int) {
	bin.Times = limit - k.Bins
	for _, t := range bin.Portions {
		bin.Times = min(bin.Times, k.Left[t.Item]/t.N)
	}
	for _, t := range bin.Portions {
		k.Left[t.Item] -= bin.Times * t.N
	}
	k.Fresh = append(k.Fresh, bin)
	k.Bins += bin.Times
}

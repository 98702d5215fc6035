package binpack

import (
	"cmp"
	"math"
	"slices"
)

// hostSpreadTries bounds the numbers of machines that one packing tries with levels, and hostSpreadLooks what these
// tries cost together, by what looks says of each.
const (
	hostSpreadTries = 12
	hostSpreadLooks = 4_000_000
)

// HostSpread says of the dimensions of spread over hosts how high the smallest count may be.
type HostSpread struct {
	Dims []int // positions in a size
	Most []int // what no machine can be raised above, because some node that is there is not; math.MaxInt: nothing holds it back
}

// PackHostSpread packs pods that are spread over hosts evenly: when every machine carries m
// of them, none may carry more than m and the skew, so that a few machines can take
// many. Every machine gets the same m pods first, and the rest is packed into what is
// left of so many machines. It costs, for each try, the items times the machines, and the pods.
func (p *Problem) PackHostSpread(lv *HostSpread, below int) (Packing, bool) {
	if lv == nil {
		return Packing{}, false
	}
	wide := *p
	wide.Empty = slices.Clone(p.Empty)
	for _, j := range lv.Dims {
		wide.Empty[j] = math.MaxInt32
	}
	n := max(wide.LowerBound(), 1)
	loads := make([]Item, len(p.Items))
	spent := 0
	for range hostSpreadTries {
		if spent += p.looks(n); n >= below || n > p.Limit || spent > hostSpreadLooks {
			break
		}
		if k, ok := p.packHostSpreadOn(lv, n, loads); ok {
			return k, true
		}
		n += max(1, n/100)
	}
	return Packing{}, false
}

// packHostSpreadOn packs into exactly n machines; items is room to work in.
func (p *Problem) packHostSpreadOn(lv *HostSpread, n int, loads []Item) (Packing, bool) {
	copy(loads, p.Items)
	rest := *p
	rest.Items, rest.Empty, rest.Limit = loads, slices.Clone(p.Empty), n
	base := make([]int, len(p.Items))
	raised := false
	for x, j := range lv.Dims {
		m, ok := rest.raiseMinimum(lv, x, j, n, base)
		if !ok {
			return Packing{}, false
		}
		raised = raised || m > 0
	}
	if !raised {
		return Packing{}, false
	}
	for i, m := range base {
		for j, v := range p.Items[i].Size {
			if !slices.Contains(lv.Dims, j) {
				rest.Empty[j] -= v * int64(m)
			}
		}
	}
	if slices.ContainsFunc(rest.Empty, func(v int64) bool { return v < 0 }) {
		return Packing{}, false
	}
	k := rest.worstFit()
	if k.Unplaced() > 0 {
		return Packing{}, false
	}
	return p.withBase(&k, base, n), true
}

// raiseMinimum finds what every machine must carry of the pods on dimension j so that n machines
// are enough for all, and takes it out of the items.
func (p *Problem) raiseMinimum(lv *HostSpread, x, j, n int, base []int) (level int, ok bool) {
	total := 0
	for i := range p.Items {
		if l := &p.Items[i]; l.Fresh && l.Size[j] > 0 {
			total += l.Count
			for _, o := range lv.Dims {
				if o != j && l.Size[o] > 0 {
					return 0, false
				}
			}
		}
	}
	skew := int(p.Empty[j])
	need := (total+n-1)/n - skew
	if need > lv.Most[x] {
		return 0, false
	}
	for level < need {
		i := slices.IndexFunc(p.Items, func(l Item) bool { return l.Fresh && l.Size[j] > 0 && l.Count >= n })
		if i < 0 {
			return 0, false
		}
		p.Items[i].Count -= n
		base[i]++
		level++
	}
	return level, true
}

// withBase puts the common content under an answer for the rest.
func (p *Problem) withBase(k *Packing, base []int, n int) Packing {
	var common []Portion
	for i, m := range base {
		if m > 0 {
			common = append(common, Portion{i, m})
		}
	}
	out := Packing{Bins: n, Open: k.Open, Left: k.Left}
	add := func(times int, parts []Portion) {
		e := FreshBins{Times: times, Room: slices.Clone(p.Empty), Portions: slices.Clone(common)}
		for _, t := range parts {
			if at := slices.IndexFunc(e.Portions, func(c Portion) bool { return c.Item == t.Item }); at >= 0 {
				e.Portions[at].N += t.N
			} else {
				e.Portions = append(e.Portions, t)
			}
		}
		for _, t := range e.Portions {
			p.Items[t.Item].Take(e.Room, t.N)
		}
		out.Fresh = append(out.Fresh, e)
	}
	for _, f := range k.Fresh {
		add(f.Times, f.Portions)
	}
	return out
}

// worstFit puts the items one by one on the machines with the most room, of as many machines as the limit allows.
// Classes that may have few pods on each machine all find room then, where first fit fills the
// first machines. It costs, for each pod that a machine takes of an item, the machines of different content.
func (p *Problem) worstFit() Packing {
	k, w := p.start(), p.weights()
	k.Bins, k.Fresh = p.Limit, append(k.Fresh, FreshBins{Times: p.Limit, Room: slices.Clone(p.Empty)})
	for _, i := range p.Order(ByShare) {
		p.pourOpen(&k, i)
		for l := &p.Items[i]; l.Fresh && k.Left[i] > 0; {
			before := k.Left[i]
			slices.SortStableFunc(k.Fresh, func(a, b FreshBins) int { return cmp.Compare(b.leastShare(w), a.leastShare(w)) })
			k.putOneEach(i, l)
			if k.Left[i] == before {
				break
			}
		}
	}
	return k
}

// putOneEach puts one pod of an item on each machine that has room, in their order, as long as pods are left.
func (k *Packing) putOneEach(i int, l *Item) {
	for b, n := 0, len(k.Fresh); b < n && k.Left[i] > 0; b++ {
		f := &k.Fresh[b]
		if !l.Fits(f.Room) {
			continue
		}
		if rest := f.Times - k.Left[i]; rest > 0 {
			more := f.copied(rest)
			f.Times -= rest
			k.Fresh = append(k.Fresh, more)
			f = &k.Fresh[b]
		}
		k.Left[i] -= f.Times
		f.put(i, 1, l)
	}
}

// leastShare is the room of cpu or memory, whichever is less, as a share of an empty bin.
func (f *FreshBins) leastShare(w []float64) float64 {
	return min(float64(f.Room[0])*w[0], float64(f.Room[1])*w[1])
}

package binpack

import (
	"math"
	"slices"
)

// hostSpreadTries bounds the numbers of machines that one packing tries with levels.
const hostSpreadTries = 12

// HostSpread says of the dimensions of spread over hosts how high the smallest count may be.
type HostSpread struct {
	Dims []int // positions in a size
	Most []int // what no machine can be raised above, because some node that is there is not; math.MaxInt: nothing holds it back
}

// PackHostSpread packs pods that are spread over hosts evenly: when every machine carries m
// of them, none may carry more than m and the skew, so that a few machines can take
// many. Every machine gets the same m pods first, and the rest is packed into what is
// left of so many machines.
func (p *Problem) PackHostSpread(lv *HostSpread, below int) (Packing, bool) {
	if lv == nil || p.Empty == nil {
		return Packing{}, false
	}
	wide := *p
	wide.Empty = slices.Clone(p.Empty)
	for _, j := range lv.Dims {
		wide.Empty[j] = math.MaxInt32
	}
	n := max(wide.LowerBound(), 1)
	var loads []Item
	for range hostSpreadTries {
		if n >= below || n > p.Limit {
			break
		}
		if loads == nil {
			loads = p.ownArena().Items.Alloc(len(p.Items), 0)
		}
		if k, ok := p.packHostSpreadOn(lv, n, loads); ok {
			return k, true
		}
		n += max(1, n/200)
	}
	return Packing{}, false
}

// packHostSpreadOn packs into exactly n machines; items is room to work in.
func (p *Problem) packHostSpreadOn(lv *HostSpread, n int, loads []Item) (Packing, bool) {
	copy(loads, p.Items)
	rest := *p
	rest.Coalesced = nil
	rest.Items, rest.Empty, rest.Limit = loads, slices.Clone(p.Empty), n
	base := p.ownArena().ints.Alloc(len(p.Items), 0)
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
	k := Pack(&rest)
	if k.Unplaced() > 0 || k.Bins > n {
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
		best := -1
		for i := range p.Items {
			if l := &p.Items[i]; l.Fresh && l.Size[j] > 0 && l.Count >= n && (best < 0 || l.Count > p.Items[best].Count) {
				best = i
			}
		}
		if best < 0 {
			return 0, false
		}
		p.Items[best].Count -= n
		base[best]++
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
			Sub(e.Room, p.Items[t.Item].Size, t.N)
		}
		out.Fresh = append(out.Fresh, e)
	}
	for _, f := range k.Fresh {
		add(f.Times, f.Portions)
	}
	if k.Bins < n {
		add(n-k.Bins, nil)
	}
	return out
}

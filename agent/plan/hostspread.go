package plan

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// hostSpreadTries bounds the numbers of machines that one packing tries with levels.
const hostSpreadTries = 12

// hostSpread says of the dimensions of spread over hosts how high the smallest count may be.
type hostSpread struct {
	axis []int // positions in a size
	most []int // what no machine can be raised above, because some node that is there is not; math.MaxInt: nothing holds it back
}

// packHostSpread packs pods that are spread over hosts evenly: when every machine carries m
// of them, none may carry more than m and the skew, so that a few machines can take
// many. Every machine gets the same m pods first, and the rest is packed into what is
// left of so many machines.
func (p *problem) packHostSpread(lv *hostSpread, below int) (packing, bool) {
	if lv == nil || p.empty == nil {
		return packing{}, false
	}
	wide := *p
	wide.empty = slices.Clone(p.empty)
	for _, j := range lv.axis {
		wide.empty[j] = math.MaxInt32
	}
	n := max(wide.lowerBound(), 1)
	var loads []item
	for range hostSpreadTries {
		if n >= below || n > p.limit {
			break
		}
		if loads == nil {
			loads = p.ownArena().items.alloc(len(p.items), 0)
		}
		if k, ok := p.packHostSpreadOn(lv, n, loads); ok {
			return k, true
		}
		n += max(1, n/200)
	}
	return packing{}, false
}

// packHostSpreadOn packs into exactly n machines; items is room to work in.
func (p *problem) packHostSpreadOn(lv *hostSpread, n int, loads []item) (packing, bool) {
	copy(loads, p.items)
	rest := *p
	rest.coalesced = nil
	rest.items, rest.empty, rest.limit = loads, slices.Clone(p.empty), n
	base := p.ownArena().ints.alloc(len(p.items), 0)
	raised := false
	for x, j := range lv.axis {
		m, ok := rest.raiseMinimum(lv, x, j, n, base)
		if !ok {
			return packing{}, false
		}
		raised = raised || m > 0
	}
	if !raised {
		return packing{}, false
	}
	for i, m := range base {
		for j, v := range p.items[i].size {
			if !slices.Contains(lv.axis, j) {
				rest.empty[j] -= v * int64(m)
			}
		}
	}
	if slices.ContainsFunc(rest.empty, func(v int64) bool { return v < 0 }) {
		return packing{}, false
	}
	k := pack(&rest)
	if k.unplaced() > 0 || k.bins > n {
		return packing{}, false
	}
	return p.withBase(&k, base, n), true
}

// raiseMinimum finds what every machine must carry of the pods on dimension j so that n machines
// are enough for all, and takes it out of the items.
func (p *problem) raiseMinimum(lv *hostSpread, x, j, n int, base []int) (level int, ok bool) {
	total := 0
	for i := range p.items {
		if l := &p.items[i]; l.fresh && l.size[j] > 0 {
			total += l.count
			for _, o := range lv.axis {
				if o != j && l.size[o] > 0 {
					return 0, false
				}
			}
		}
	}
	skew := int(p.empty[j])
	need := (total+n-1)/n - skew
	if need > lv.most[x] {
		return 0, false
	}
	for level < need {
		best := -1
		for i := range p.items {
			if l := &p.items[i]; l.fresh && l.size[j] > 0 && l.count >= n && (best < 0 || l.count > p.items[best].count) {
				best = i
			}
		}
		if best < 0 {
			return 0, false
		}
		p.items[best].count -= n
		base[best]++
		level++
	}
	return level, true
}

// withBase puts the common content under an answer for the rest.
func (p *problem) withBase(k *packing, base []int, n int) packing {
	var common []portion
	for i, m := range base {
		if m > 0 {
			common = append(common, portion{i, m})
		}
	}
	out := packing{bins: n, open: k.open, left: k.left}
	add := func(times int, parts []portion) {
		e := freshBins{times: times, room: slices.Clone(p.empty), portions: slices.Clone(common)}
		for _, t := range parts {
			if at := slices.IndexFunc(e.portions, func(c portion) bool { return c.item == t.item }); at >= 0 {
				e.portions[at].n += t.n
			} else {
				e.portions = append(e.portions, t)
			}
		}
		for _, t := range e.portions {
			fit.Sub(e.room, p.items[t.item].size, t.n)
		}
		out.fresh = append(out.fresh, e)
	}
	for _, f := range k.fresh {
		add(f.times, f.portions)
	}
	if k.bins < n {
		add(n-k.bins, nil)
	}
	return out
}

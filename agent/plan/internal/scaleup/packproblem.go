package scaleup

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// problemOf writes the wants that a filter picks as a problem over all places.
func (v *solver) problemOf(pick func(i int) int, empty []int64, limit int) (*binpack.Problem, []int) {
	p := &binpack.Problem{Empty: empty, Limit: limit, Open: make([][]int64, 0, len(v.a.bins))}
	for i := range v.a.bins {
		p.Open = append(p.Open, v.a.bins[i].room)
	}
	if len(v.on) != len(v.w.Demands) {
		v.on = slices.Grow(v.mayGoBuffer[:0], len(v.w.Demands))[:len(v.w.Demands)]
		v.mayGoBuffer = v.on
		v.asked = slices.Grow(v.asked[:0], len(v.w.Demands))[:len(v.w.Demands)]
		clear(v.asked)
		v.binDomains, v.measured = v.binDomains[:0], 0
	}
	if b := v.w.topology; b != nil {
		for i := len(v.binDomains); i < len(v.a.bins); i++ {
			v.binDomains = append(v.binDomains, b.DomainOf(v.a.bins[i].node, v.a.bins[i].group))
		}
	}
	which := make([]int, 0, len(v.w.Demands))
	p.Items = make([]binpack.Item, 0, len(v.w.Demands))
	for i := range v.w.Demands {
		k := &v.w.Demands[i]
		if n := pick(i); n > 0 && !k.PerPod {
			which = append(which, i)
			p.Items = append(p.Items, binpack.Item{Size: v.w.size(k.Class), Count: n, Prio: v.w.Snapshot.Classes[k.Class].Priority, Fresh: empty != nil, On: v.mayGo(i)})
		}
	}
	return p, which
}

// mayGo tells by place whether a demand may go there and finds room for one. It is the
// same for all groups that are asked in turn; nobody writes to it. Most pods may go
// nowhere that is there already, and that takes no room to say. It costs N + U.
func (v *solver) mayGo(i int) []bool {
	if v.asked[i] == len(v.a.bins)+1 {
		return v.on[i]
	}
	k, size := &v.w.Demands[i], v.w.size(v.w.Demands[i].Class)
	bound := k.Domain > 0 && v.w.topology != nil
	scarce := v.scarce(size)
	filters, ties := v.w.FiltersOf(k.Class), v.w.topology.NodeFilter(k.Class)
	var on []bool
	for b := range v.a.bins {
		if bound && v.binDomains[b] != k.Domain {
			continue
		}
		pl := &v.a.bins[b]
		if lacksAny(pl.room, size, scarce) {
			continue
		}
		if pl.node >= 0 && !(filters.Passes(pl.node) && ties.Passes(pl.node)) || pl.node < 0 && !(v.passes(k.Class, pl) && v.w.topology.AllowsGroup(k, pl.group)) {
			continue
		}
		if on == nil {
			on = make([]bool, len(v.a.bins))
		}
		on[b] = true
	}
	v.on[i], v.asked[i] = on, len(v.a.bins)+1
	return on
}

// lacksAny tells whether a room has too little for a size in any of some dimensions.
func lacksAny(room, size []int64, dimensions []int) bool {
	for _, d := range dimensions {
		if room[d] < size[d] {
			return true
		}
	}
	return false
}

// scarce are the dimensions of a size in which some place has too little room for one pod. A size has a dimension
// for each term on hosts of any class, and in most of them every place has room.
func (v *solver) scarce(size []int64) []int {
	if v.measured != len(v.a.bins)+1 {
		v.measureRooms(len(size))
	}
	list := v.scarceBuffer[:0]
	for d, n := range size {
		if n > 0 && n > v.leastRoom[d] {
			list = append(list, d)
		}
	}
	v.scarceBuffer = list
	return list
}

// measureRooms finds the least room of all places in each dimension. It costs the places times the dimensions.
func (v *solver) measureRooms(dimensions int) {
	v.leastRoom = slices.Grow(v.leastRoom[:0], dimensions)[:dimensions]
	for d := range v.leastRoom {
		v.leastRoom[d] = math.MaxInt64
	}
	for b := range v.a.bins {
		for d, n := range v.a.bins[b].room {
			v.leastRoom[d] = min(v.leastRoom[d], n)
		}
	}
	v.measured = len(v.a.bins) + 1
}

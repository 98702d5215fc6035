package packing

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// problemOf writes the wants that a filter picks as a problem over all places.
func (v *Solver) problemOf(pick func(i int) int, empty []int64, limit int) (*binpack.Problem, []int) {
	p := &binpack.Problem{Empty: empty, Limit: limit, Open: make([][]int64, 0, len(v.Solution.Bins))}
	for i := range v.Solution.Bins {
		p.Open = append(p.Open, v.Solution.Bins[i].Room)
	}
	if len(v.on) != len(v.w.Demands) {
		v.on = slices.Grow(v.mayGoBuffer[:0], len(v.w.Demands))[:len(v.w.Demands)]
		v.mayGoBuffer = v.on
		v.asked = slices.Grow(v.asked[:0], len(v.w.Demands))[:len(v.w.Demands)]
		clear(v.asked)
		v.binDomains, v.measured = v.binDomains[:0], 0
	}
	if b := v.w.Topology; b != nil {
		for i := len(v.binDomains); i < len(v.Solution.Bins); i++ {
			v.binDomains = append(v.binDomains, b.DomainOf(v.Solution.Bins[i].Node, v.Solution.Bins[i].Group))
		}
	}
	which := make([]int, 0, len(v.w.Demands))
	p.Items = make([]binpack.Item, 0, len(v.w.Demands))
	for i := range v.w.Demands {
		k := &v.w.Demands[i]
		if n := pick(i); n > 0 && !k.PerPod {
			which = append(which, i)
			p.Items = append(p.Items, binpack.Item{Size: v.w.Size(k.Class), Count: n, Prio: v.w.Snapshot.Classes[k.Class].Priority, Fresh: empty != nil, On: v.mayGo(i)})
		}
	}
	return p, which
}

// mayGo tells by place whether a demand may go there and finds room for one. It is the
// same for all groups that are asked in turn; nobody writes to it. Most pods may go
// nowhere that is there already, and that takes no room to say. It costs N + U.
func (v *Solver) mayGo(i int) []bool {
	if v.asked[i] == len(v.Solution.Bins)+1 {
		return v.on[i]
	}
	k, size := &v.w.Demands[i], v.w.Size(v.w.Demands[i].Class)
	bound := k.Domain > 0 && v.w.Topology != nil
	scarce := v.scarce(size)
	filters, ties := v.w.FiltersOf(k.Class), v.w.Topology.NodeFilter(k.Class)
	var on []bool
	for b := range v.Solution.Bins {
		if bound && v.binDomains[b] != k.Domain {
			continue
		}
		pl := &v.Solution.Bins[b]
		if lacksAny(pl.Room, size, scarce) {
			continue
		}
		if pl.Node >= 0 && !(filters.Passes(pl.Node) && ties.Passes(pl.Node)) || pl.Node < 0 && !(v.passes(k.Class, pl) && v.w.Topology.AllowsGroup(k, pl.Group)) {
			continue
		}
		if on == nil {
			on = make([]bool, len(v.Solution.Bins))
		}
		on[b] = true
	}
	v.on[i], v.asked[i] = on, len(v.Solution.Bins)+1
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
func (v *Solver) scarce(size []int64) []int {
	if v.measured != len(v.Solution.Bins)+1 {
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
func (v *Solver) measureRooms(dimensions int) {
	v.leastRoom = slices.Grow(v.leastRoom[:0], dimensions)[:dimensions]
	for d := range v.leastRoom {
		v.leastRoom[d] = math.MaxInt64
	}
	for b := range v.Solution.Bins {
		for d, n := range v.Solution.Bins[b].Room {
			v.leastRoom[d] = min(v.leastRoom[d], n)
		}
	}
	v.measured = len(v.Solution.Bins) + 1
}

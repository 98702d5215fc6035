package packing

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// problemOf writes those of some demands that a filter picks as a problem over all places; without items where it picks none.
// It costs these demands, and where it picks some, the new places, and mayGo for each.
func (v *Solver) problemOf(among []int, pick func(i int) int, empty []int64, limit int) (*binpack.Problem, []int) {
	p := &binpack.Problem{Empty: empty, Limit: limit}
	v.picked = v.picked[:0]
	for _, i := range among {
		if !v.w.Demands[i].PerPod && pick(i) > 0 {
			v.picked = append(v.picked, i)
		}
	}
	if len(v.picked) == 0 {
		return p, nil
	}
	for b := len(v.rooms); b < len(v.Solution.Bins); b++ {
		v.rooms = append(v.rooms, v.Solution.Bins[b].Room)
	}
	p.Open = v.rooms
	which := slices.Clone(v.picked)
	p.Items = make([]binpack.Item, len(which))
	for x, i := range which {
		class := v.w.Demands[i].Class
		l := &p.Items[x]
		*l = *v.w.item(class)
		l.Count, l.Prio, l.Fresh, l.On = pick(i), v.w.Snapshot.Classes[class].Priority, empty != nil, v.mayGo(i)
	}
	return p, which
}

// mayGo are the places where a demand may go, of those that had room for one when it was asked first. Each place is looked at
// once. It costs the places in the demand's domain, and later the machines that were bought there since.
func (v *Solver) mayGo(i int) binpack.Bins {
	k := &v.w.Demands[i]
	places := v.placesIn(k.Domain)
	if v.asked[i] == len(places) {
		return v.on[i]
	}
	item := *v.w.item(k.Class)
	item.Amounts = v.scarce(&item)
	filters, ties := v.w.FiltersOf(k.Class), v.w.Topology.NodeFilter(k.Class)
	for _, b := range places[v.asked[i]:] {
		pl := &v.Solution.Bins[b]
		switch {
		case pl.Node >= 0 && !filters.May(pl.Node) || !item.Fits(pl.Room):
		case pl.Node >= 0 && !(filters.Passes(pl.Node) && ties.Passes(pl.Node)):
		case pl.Node < 0 && !(v.passes(k.Class, pl) && v.w.Topology.AllowsGroup(k, pl.Group)):
		default:
			v.on[i].Add(b)
		}
	}
	v.asked[i] = len(places)
	return v.on[i]
}

// placesIn are the places in a domain; 0: in all. It costs the places that are new.
func (v *Solver) placesIn(domain int) []int {
	if v.places == nil {
		v.places = make([][]int, 1)
		if v.w.Topology != nil {
			v.places = make([][]int, v.w.Topology.Domains+1)
		}
	}
	for b := len(v.places[0]); b < len(v.Solution.Bins); b++ {
		v.places[0] = append(v.places[0], b)
		v.lessRoom = append(v.lessRoom, v.changes)
		if v.w.Topology != nil {
			d := v.w.Topology.DomainOf(v.Solution.Bins[b].Node, v.Solution.Bins[b].Group)
			v.places[d] = append(v.places[d], b)
		}
	}
	return v.places[domain]
}

// scarce are the dimensions of an item in which some place has too little room for one. An item can have a dimension
// for each term on hosts of any class, and in most of them every place has room.
func (v *Solver) scarce(l *binpack.Item) []binpack.Amount {
	v.measureRooms(len(l.Size))
	v.scarceBuffer = v.scarceBuffer[:0]
	for _, x := range l.Amounts {
		if x.N > v.leastRoom[x.Dimension] {
			v.scarceBuffer = append(v.scarceBuffer, x)
		}
	}
	return v.scarceBuffer
}

// measureRooms finds the least room of all places in each dimension. It costs the new places times the dimensions.
func (v *Solver) measureRooms(dimensions int) {
	for len(v.leastRoom) < dimensions {
		v.leastRoom = append(v.leastRoom, math.MaxInt64)
	}
	for ; v.measured < len(v.Solution.Bins); v.measured++ {
		v.measureRoom(v.Solution.Bins[v.measured].Room)
	}
}

func (v *Solver) measureRoom(room []int64) {
	for d, n := range room {
		v.leastRoom[d] = min(v.leastRoom[d], n)
	}
}

// tookRoom says that a place has less room than before.
func (v *Solver) tookRoom(b int) {
	v.placesIn(0)
	v.lessRoom[b] = v.changes
	if b < v.measured {
		v.measureRoom(v.Solution.Bins[b].Room)
	}
}

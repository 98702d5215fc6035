package consolidation

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// place is a node, or with -1 a machine that is not there yet, and the room that is left on it.
type place struct {
	node int
	room []int64
}

// load are n pods of a class that are to be moved.
type load struct {
	n     int
	size  []int64
	takes func(p *place) bool // as far as its shape goes
}

// certain tells whether the pods of some nodes find room wherever kube-scheduler puts each of them, and in whichever order
// they come: its scores depend on its profile, and its queue on when each pod is evicted. A pod that found no room would buy
// a machine in place of the one that went.
func (w *Search) certain(from, idle []int, to *round.Group, machines int) bool {
	var places []place
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.State == round.StateReady && (!n.Removing || slices.Contains(idle, i)) && !slices.Contains(from, i) {
			places = append(places, place{i, n.Room})
		}
	}
	for range machines {
		empty, _ := w.Template(to)
		places = append(places, place{-1, empty})
	}
	return fitAnyhow(w.loads(from, to), places, w.mover.Look)
}

// loads are the pods of some nodes by class.
func (w *Search) loads(from []int, to *round.Group) (loads []load) {
	count, order := make(map[int32]int), []int32(nil)
	for _, i := range from {
		for _, l := range w.mover.Classes(i) {
			if count[l.Class] == 0 {
				order = append(order, l.Class)
			}
			count[l.Class] += int(l.N)
		}
	}
	for _, c := range order {
		loads = append(loads, load{count[c], w.Dimensions.Class(int(c)), func(p *place) bool {
			if p.node >= 0 {
				return w.Passes(int(c), p.node)
			}
			_, shape := w.Template(to)
			return fit.Passes(&w.Snapshot.Classes[c], shape)
		}})
	}
	return loads
}

// fitAnyhow tells whether all pods fit, each class after all others, which go where they do it most harm. It costs
// the places for each pod and class where room is scarce, and the places up to enough room where it is not.
func fitAnyhow(loads []load, places []place, look func(n int) bool) bool {
	weight := func(l load) float64 { return binpack.CoreEquivalents(float64(l.size[0]), float64(l.size[1])) }
	slices.SortStableFunc(loads, func(a, b load) int { return cmp.Compare(weight(b), weight(a)) })
	for i := range loads {
		if !fitsLast(i, loads, places, look) {
			return false
		}
	}
	return true
}

// fitsLast tells whether the pods of one class fit after all others.
func fitsLast(last int, loads []load, places []place, look func(n int) bool) bool {
	l, enough := &loads[last], 0 // wherever the others go
	for i := range loads {
		enough += loads[i].n * harm(l.size, loads[i].size)
	}
	slots, open := 0, []place(nil)
	for _, p := range places {
		if n := binpack.MaxFit(p.room, l.size); n > 0 && l.takes(&p) {
			slots += n
			open = append(open, p)
		}
		if !look(1) {
			return false
		}
		if slots >= enough {
			return true
		}
	}
	others := slices.Concat(loads[:last], loads[last+1:])
	if !fitsAfter(l, others, slots, open, look) {
		return false
	}
	slices.Reverse(others) // neither order is the worst in all worlds
	return fitsAfter(l, others, slots, open, look)
}

// fitsAfter tells whether the pods of a class, for so many of which the places have room, fit after others that come in their order.
func fitsAfter(l *load, others []load, slots int, places []place, look func(n int) bool) bool {
	open := make([]place, len(places))
	for k, p := range places {
		open[k] = place{p.node, slices.Clone(p.room)}
	}
	for i := range others {
		for range others[i].n {
			if slots < l.n || !look(len(open)) {
				return false
			}
			slots -= putWorst(&others[i], l.size, open)
		}
	}
	return slots >= l.n && look(0)
}

// harm is how many pods of a size lose their room at most where one of another size comes.
func harm(size, other []int64) int {
	n := int64(0)
	for d, s := range size {
		if s > 0 {
			n = max(n, (other[d]+s-1)/s)
		}
	}
	return int(n)
}

// putWorst puts a pod where it takes most room away from pods of a size, and returns for how many: of equal places on
// the one that has most to spare, so that smaller pods do harm on the others; where it does none, on the one that has least to spare.
func putWorst(l *load, size []int64, open []place) (lost int) {
	best, key := -1, 0.0
	for k := range open {
		p := &open[k]
		before := share(p.room, size)
		if before < 1 || !binpack.Fits(p.room, l.size) || !l.takes(p) {
			continue
		}
		binpack.Sub(p.room, l.size, 1)
		after := share(p.room, size)
		binpack.Sub(p.room, l.size, -1)
		n, spare := int(before)-int(after), before-math.Floor(before)
		if n == 0 {
			spare = -spare
		}
		if v := float64(n) + spare; best < 0 || v > key {
			best, key, lost = k, v, n
		}
	}
	if best >= 0 {
		binpack.Sub(open[best].room, l.size, 1)
	}
	return lost
}

// share is how many pods of a size a room holds, with a fraction.
func share(room, size []int64) float64 {
	most := float64(math.MaxInt32)
	for d, s := range size {
		if s > 0 {
			most = min(most, float64(max(room[d], 0))/float64(s))
		}
	}
	return most
}

package consolidation

import (
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

// fitAnyhow tells whether all pods fit wherever each of them goes. For each class one place has room for all pods of all classes, or the
// places have room for as many of its pods as it has, and for as many as all others take the room of at most. The best placing may need
// less; none needs more. It costs the square of the classes, and for each class the places up to enough room.
func fitAnyhow(loads []load, places []place, look func(n int) bool) bool {
	for i := range loads {
		if !fitsLast(&loads[i], loads, places, look) {
			return false
		}
	}
	return true
}

// fitsLast tells whether the pods of one class fit wherever all others go.
func fitsLast(l *load, loads []load, places []place, look func(n int) bool) bool {
	left, all := 0, make([]int64, len(l.size))
	for k := range loads {
		left += loads[k].n * harm(l.size, loads[k].size)
		binpack.Sub(all, loads[k].size, -loads[k].n)
	}
	for k := range places {
		if !look(1) {
			return false
		}
		p := &places[k]
		if !binpack.Fits(p.room, l.size) || !l.takes(p) {
			continue
		}
		if left -= binpack.MaxFit(p.room, l.size); left <= 0 || binpack.Fits(p.room, all) {
			return true
		}
	}
	return false
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

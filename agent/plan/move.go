package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// paths are where moved pods look for room: the nodes that are Ready, by name, and for
// every kind of class how many of the first ones have none for it. Room only shrinks
// within a round, so that what was looked at once is not looked at again: all moves of
// a round together read each node once a kind.
type paths struct {
	to    []int32 // indexes into world.nodes
	first []int32 // by kind: the nodes before this place in to have no room for it
}

// moved is a number of pods of a class that found room at a place of paths.to.
type moved struct{ at, class, n int32 }

// advance is a path's first before an attempt.
type advance struct{ kind, first int32 }

// move finds room for pods on other nodes that are Ready and stay. It takes the room
// and notes who is counted on; when one pod has none, nothing is taken.
func (w *world) move(from int, loads []heldClass) (homeless cluster.PodKey, ok bool) {
	done, tried, class, placed := w.place(from, loads)
	if class >= 0 {
		w.unplace(done, tried)
		return w.nth(&w.nodes[from], class, placed), false
	}
	if name, ok := w.moveSpare(from); !ok {
		w.unplace(done, tried)
		return cluster.PodKey("headroom/" + name), false
	}
	for _, m := range done {
		n := &w.nodes[w.paths.to[m.at]]
		n.hosts = n.hosts || !n.counts
		n.counts = true
	}
	return "", true
}

// couldMove is move that takes nothing.
func (w *world) couldMove(from int, loads []heldClass) bool {
	done, tried, class, _ := w.place(from, loads)
	w.unplace(done, tried)
	return class < 0
}

// nth is the pod of a class that has no room when n of its like have some.
func (w *world) nth(from *node, class int32, n int32) cluster.PodKey {
	for _, pod := range w.movable(from) {
		if pod.Class == int(class) {
			if n == 0 {
				return pod.Key
			}
			n--
		}
	}
	return ""
}

// place takes room for loads as far as there is some: every class on the first nodes
// that have room for it. It returns what it took and the class of the first pod that
// found none, -1 when all did, with how many of that class are placed.
func (w *world) place(from int, loads []heldClass) (done []moved, tried []advance, class, placed int32) {
	if w.paths == nil {
		w.paths = w.newPaths()
	}
	for _, l := range loads {
		kind := w.e.classes.kind[l.class]
		was := w.paths.first[kind]
		left := w.placeClass(from, l, &done)
		if w.paths.first[kind] != was {
			tried = append(tried, advance{kind, was})
		}
		if left > 0 {
			return done, tried, l.class, l.n - left
		}
	}
	return done, tried, -1, 0
}

func (w *world) newPaths() *paths {
	p := &paths{first: make([]int32, len(w.e.classes.example))}
	for i := range w.nodes {
		if w.nodes[i].state == stateReady {
			p.to = append(p.to, int32(i))
		}
	}
	return p
}

// placeClass places pods of one class and returns how many are left.
func (w *world) placeClass(from int, l heldClass, done *[]moved) (left int32) {
	p, class := w.paths, int(l.class)
	size := w.space.Class(class)
	first := &p.first[w.e.classes.kind[class]]
	known := true // all nodes so far have no room
	for k := *first; int(k) < len(p.to); k++ {
		i := int(p.to[k])
		if i == from {
			known = false
			continue
		}
		d := &w.nodes[i]
		if !d.goes && fits(d.room, size) && w.passes(class, i) {
			n := min(int32(fit.Most(d.room, size)), l.n)
			fit.Take(d.room, size, int(n))
			*done = append(*done, moved{k, l.class, n})
			if l.n -= n; l.n == 0 {
				return 0
			}
		}
		if known {
			*first = k + 1
		}
	}
	return l.n
}

// fits is fit.Most(room, size) > 0 without a division.
func fits(room, size []int64) bool {
	for i, n := range size {
		if n > 0 && room[i] < n {
			return false
		}
	}
	return true
}

// unplace gives room back. A path goes back to the first node that has room for its
// kind again.
func (w *world) unplace(done []moved, tried []advance) {
	if len(done) == 0 {
		return
	}
	p := w.paths
	for _, m := range done {
		fit.Take(w.nodes[p.to[m.at]].room, w.space.Class(int(m.class)), -int(m.n))
	}
	for _, t := range tried {
		for _, m := range done {
			if m.at >= t.first && m.at < p.first[t.kind] && fits(w.nodes[p.to[m.at]].room, w.space.Class(int(w.e.classes.example[t.kind]))) {
				p.first[t.kind] = m.at
			}
		}
	}
}

// roomy lists the nodes that could take a pod of some want: on a cluster that is full
// the packing then costs what is pending and not what exists.
func (w *world) roomy() []int {
	if w.open != nil {
		return w.open
	}
	w.open = []int{}
	var kinds []int32
	for i := range w.want {
		if k := w.e.classes.kind[w.want[i].class]; !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for i := range w.nodes {
		for _, k := range kinds {
			if class := int(w.e.classes.example[k]); fits(w.nodes[i].room, w.space.Class(class)) && w.passes(class, i) {
				w.open = append(w.open, i)
				break
			}
		}
	}
	return w.open
}

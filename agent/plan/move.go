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

// advance is where a path, of a kind or of a class, was before an attempt.
type advance struct{ of, first int32 }

// attempt is what one move took, so that it can be given back.
type attempt struct {
	done      []moved
	paths     []advance // by kind
	tiedPaths []advance // by class
	mark      int       // of moveTies.state
	homeless  int32     // the class of the first pod that found no room; -1: all did
	placed    int32     // how many of that class found some
}

// move finds room for pods on other nodes that are Ready and stay. It takes the room
// and notes who is counted on; when one pod has none, nothing is taken.
func (w *world) move(from int, loads []heldClass) (homeless cluster.PodKey, ok bool) {
	a := w.place(from, loads)
	if a.homeless >= 0 {
		w.unplace(&a)
		return w.nth(&w.nodes[from], a.homeless, a.placed), false
	}
	if name, ok := w.moveSpare(from); !ok {
		w.unplace(&a)
		return cluster.PodKey("headroom/" + name), false
	}
	for _, m := range a.done {
		n := &w.nodes[w.paths.to[m.at]]
		n.hosts = n.hosts || !n.counts
		n.counts = true
	}
	return "", true
}

// couldMove is move that takes nothing.
func (w *world) couldMove(from int, loads []heldClass) bool {
	a := w.place(from, loads)
	w.unplace(&a)
	return a.homeless < 0
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
// that have room for it.
func (w *world) place(from int, loads []heldClass) attempt {
	a := attempt{homeless: -1, done: w.e.moved[:0]}
	defer func() { w.e.moved = a.done[:0] }()
	if w.paths == nil {
		w.paths = w.newPaths()
	}
	t := w.moveState()
	if t != nil {
		a.mark = t.state.Mark()
		t.lift(from, loads)
	}
	for _, l := range loads {
		var left int32
		if t != nil && t.state.Tied(int(l.class)) {
			left = w.placeTied(t, from, l, &a)
		} else {
			kind := w.e.classes.kind[l.class]
			was := w.paths.first[kind]
			left = w.placeClass(from, l, &a.done)
			if w.paths.first[kind] != was {
				a.paths = append(a.paths, advance{kind, was})
			}
		}
		if left > 0 {
			a.homeless, a.placed = l.class, l.n-left
			break
		}
	}
	return a
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
func (w *world) unplace(a *attempt) {
	p, t := w.paths, w.ties
	if t != nil {
		t.state.Rollback(a.mark)
	}
	for _, m := range a.done {
		fit.Take(w.nodes[p.to[m.at]].room, w.space.Class(int(m.class)), -int(m.n))
	}
	back := func(path *int32, was int32, size []int64) {
		for _, m := range a.done {
			if m.at >= was && m.at < *path && fits(w.nodes[p.to[m.at]].room, size) {
				*path = m.at
			}
		}
	}
	for _, v := range a.paths {
		back(&p.first[v.of], v.first, w.space.Class(int(w.e.classes.example[v.of])))
	}
	for _, v := range a.tiedPaths {
		back(&t.first[v.of], v.first, w.space.Class(int(v.of)))
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

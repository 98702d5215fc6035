package plan

import (
	"math"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// paths are where moved pods look for room: the nodes that are Ready, by name, and for
// every kind of class how far it has looked. Room only shrinks within a round, so that
// what was looked at once is not looked at again: all moves of a round together read
// each node about once a kind.
type paths struct {
	to []int32 // indexes into world.nodes
	by []path  // by kind
}

// path says that the nodes before first have no room, hole apart: it was not looked at,
// because the pods came from there. -1: there is no such node.
type path struct{ first, hole int32 }

// moved is a number of pods of a class that found room at a place of paths.to.
type moved struct{ at, class, n int32 }

// stride is where a path was before an attempt, and a class that goes on it.
type stride struct {
	path  *path
	was   path
	class int32
}

// attempt is what one move took, so that it can be given back.
type attempt struct {
	loads    []classCount
	done     []moved
	steps    []stride
	mark     int   // of moveTies.state
	homeless int32 // the class of the first pod that found no room; -1: all did
	placed   int32 // how many of that class found some
}

// move finds room for pods on other nodes that are Ready and stay. It takes the room
// and notes who is counted on; when one pod has none, nothing is taken.
func (w *roundState) move(from int, loads []classCount) (homeless cluster.PodKey, ok bool) {
	a := w.place(from, loads)
	if a.homeless >= 0 {
		w.unplace(&a)
		return w.nth(&w.nodes[from], a.homeless, a.placed), false
	}
	if name, ok := w.relocateHeadroom(from); !ok {
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
func (w *roundState) couldMove(from int, loads []classCount) bool {
	a := w.place(from, loads)
	w.unplace(&a)
	return a.homeless < 0
}

// nth is the pod of a class that has no room when n of its like have some.
func (w *roundState) nth(from *node, class int32, n int32) cluster.PodKey {
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
func (w *roundState) place(from int, loads []classCount) attempt {
	a := attempt{homeless: -1, loads: loads, done: w.e.moved[:0], steps: w.e.steps[:0]}
	defer func() { w.e.moved, w.e.steps = a.done[:0], a.steps[:0] }()
	if w.paths == nil {
		w.paths = w.newPaths()
	}
	t := w.moveState()
	if t != nil {
		a.mark = t.state.Mark()
		t.lifted = t.lifted[:0]
	}
	for _, l := range loads {
		if left := w.placeClass(t, from, l, &a); left > 0 {
			a.homeless, a.placed = l.class, l.n-left
			break
		}
	}
	return a
}

func (w *roundState) newPaths() *paths {
	p := &paths{by: make([]path, len(w.e.classes.representative))}
	for i := range p.by {
		p.by[i].hole = -1
	}
	for i := range w.nodes {
		if w.nodes[i].state == stateReady {
			p.to = append(p.to, int32(i))
		}
	}
	return p
}

// placeClass places pods of one class and returns how many are left.
func (w *roundState) placeClass(t *moveTies, from int, l classCount, a *attempt) (left int32) {
	p := &w.paths.by[w.e.classes.equivalent[l.class]]
	tied := t != nil && t.state.Tied(int(l.class))
	local := tied && t.isLocal(&w.s.Classes[l.class], int(l.class))
	if local {
		p = &t.own[l.class]
	}
	a.steps = append(a.steps, stride{p, *p, l.class})
	if tied {
		t.lift(from, l.class, a.loads)
	}
	use := func(k int32) (spent bool) {
		if !tied {
			return w.use(k, &l, a)
		}
		return w.useTied(t, k, &l, a) && (local || !w.hasRoom(k, l.class))
	}
	if p.hole >= 0 && int(w.paths.to[p.hole]) != from && use(p.hole) {
		p.hole = -1
	}
	spent := true // all nodes so far have no room
	for k := p.first; int(k) < len(w.paths.to) && l.n > 0; k++ {
		switch {
		case int(w.paths.to[k]) == from && spent && p.hole < 0:
			p.hole, p.first = k, k+1
		case int(w.paths.to[k]) == from:
			spent = false
		case !use(k):
			spent = false
		case spent:
			p.first = k + 1
		}
	}
	return l.n
}

// hasRoom tells whether one more pod of a class would fit onto a node, its ties aside.
func (w *roundState) hasRoom(k, class int32) bool {
	i := int(w.paths.to[k])
	d := &w.nodes[i]
	return !d.goes && fits(d.room, w.space.Class(int(class))) && w.passes(int(class), i)
}

// use places what it can of a class on one node, and tells whether the node has no
// room for the class any more.
func (w *roundState) use(k int32, l *classCount, a *attempt) (spent bool) {
	if !w.hasRoom(k, l.class) {
		return true
	}
	room, size := w.nodes[w.paths.to[k]].room, w.space.Class(int(l.class))
	n := min(int32(fit.Most(room, size)), l.n)
	fit.Take(room, size, int(n))
	a.done = append(a.done, moved{k, l.class, n})
	l.n -= n
	return l.n > 0
}

// fits is fit.Most(room, size) > 0 without a zone assignment.
func fits(room, size []int64) bool {
	for i, n := range size {
		if n > 0 && room[i] < n {
			return false
		}
	}
	return true
}

// unplace gives room back.
func (w *roundState) unplace(a *attempt) {
	if w.ties != nil {
		w.ties.state.Rollback(a.mark)
	}
	for _, m := range a.done {
		fit.Take(w.nodes[w.paths.to[m.at]].room, w.space.Class(int(m.class)), -int(m.n))
	}
	for _, s := range a.steps {
		w.retreat(&s, a.done)
	}
}

// retreat takes a path back to the first node that has room again; one such node may
// stay behind as its hole.
func (w *roundState) retreat(s *stride, done []moved) {
	const none = math.MaxInt32
	p, size := s.path, w.space.Class(int(s.class))
	one, two := int32(none), int32(none) // the first two nodes to look at again
	note := func(k int32) {
		switch {
		case k >= p.first || k == one || k == two:
		case k < one:
			one, two = k, one
		case k < two:
			two = k
		}
	}
	if p.hole >= 0 {
		note(p.hole)
	}
	if s.was.hole >= 0 {
		note(s.was.hole)
	}
	for _, m := range done {
		if fits(w.nodes[w.paths.to[m.at]].room, size) {
			note(m.at)
		}
	}
	p.hole = -1
	if one != none {
		p.hole = one
	}
	if two != none {
		p.first = two
	}
}

// roomy lists the nodes that could take a pod of some want: on a cluster that is full
// the packing then costs what is pending and not what exists.
func (w *roundState) roomy() []int {
	if w.open != nil {
		return w.open
	}
	w.open = []int{}
	var kinds []int32
	wanted := make([]bool, len(w.e.classes.representative))
	for i := range w.demands {
		if k := w.e.classes.equivalent[w.demands[i].class]; !wanted[k] {
			kinds, wanted[k] = append(kinds, k), true
		}
	}
	for i := range w.nodes {
		for _, k := range kinds {
			if class := int(w.e.classes.representative[k]); fits(w.nodes[i].room, w.space.Class(class)) && w.passes(class, i) {
				w.open = append(w.open, i)
				break
			}
		}
	}
	return w.open
}

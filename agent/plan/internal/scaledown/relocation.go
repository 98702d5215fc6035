package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// relocationCursors are where moved pods look for room: the nodes that are Ready, by name, and for
// every kind of class how far it has looked. Room only shrinks within a round, so that
// what was looked at once is not looked at again: all moves of a round together read
// each node about once a kind.
type relocationCursors struct {
	to []int32  // indexes into State.Nodes
	by []cursor // by kind
}

// cursor says that the nodes before first have no room, skipped apart: it was not looked at,
// because the pods came from there. -1: there is no such node.
type cursor struct{ first, skipped int32 }

// relocated is a number of pods of a class that found room at a place of relocationCursors.to.
type relocated struct{ at, class, n int32 }

// undoStep is a cursor that an attempt moved, and the class that went on it.
type undoStep struct {
	cursor *cursor
	class  int32
}

// tentative is what one move took, so that it can be given back.
type tentative struct {
	classes     []round.ClassCount
	done        []relocated
	steps       []undoStep
	mark        int   // of relocationConstraints.state
	unplaceable int32 // the class of the first pod that found no room; -1: all did
	placed      int32 // how many of that class found some
	// late are the pods that kube-scheduler can bind only when the Node object is gone: until then their topology
	// spread counts the emptied node (nodeTaintsPolicy: Ignore).
	late        []round.ClassCount
	occupied    [][]int // by late or moved class with a spread: the domains with pods before; see givesUpDomain
	constrained bool    // some class is constrained
}

// relocation is what relocate found.
type relocation struct {
	Rule, Why string             // why the node stays; empty: its pods have room elsewhere
	Lost      bool               // they have, and would give up a domain of their topology spread
	late      []round.ClassCount // as in tentative
}

// relocate finds room for pods on other nodes that are Ready and stay. It takes the room
// and notes who is counted on; when one pod has none, nothing is taken. keepDomains: no pod gives up
// a domain of its topology spread either.
// It costs relocateClass for each class on the node. All moves of a round together cost C*N where
// pods find room; a class that finds none looks at N again for each of its nodes.
func (w *Planner) relocate(from int, loads []round.ClassCount, keepDomains bool) relocation {
	n := &w.Nodes[from]
	a, r := w.judgeRelocation(from, loads, keepDomains)
	if r.Rule != "" {
		w.undoRelocation(&a)
		return r
	}
	if name, ok := w.relocateHeadroom(from); !ok {
		w.undoRelocation(&a)
		return relocation{Rule: decision.RuleNoRoom, Why: n.Facts.UnplaceableWords(cluster.PodKey("headroom/"+name), nil)}
	}
	if t := w.relocation; t != nil && len(a.late) == 0 { // what comes after it is judged without the node
		t.remove(w, from)
	}
	for _, m := range a.done {
		n := &w.Nodes[w.cursors.to[m.at]]
		n.OnlyRelocated = n.OnlyRelocated || !n.InUse
		n.InUse = true
	}
	return r
}

// Relocation is relocate that takes nothing, headroom aside.
func (w *Planner) Relocation(from int, loads []round.ClassCount, keepDomains bool) relocation {
	a, r := w.judgeRelocation(from, loads, keepDomains)
	w.undoRelocation(&a)
	return r
}

// CanRelocate tells whether the pods of a node have room elsewhere.
func (w *Planner) CanRelocate(from int, loads []round.ClassCount) bool {
	return w.Relocation(from, loads, false).Rule == ""
}

// judgeRelocation tries a relocation, and says why the pods are not moved so.
func (w *Planner) judgeRelocation(from int, loads []round.ClassCount, keepDomains bool) (tentative, relocation) {
	if len(loads) > 0 && w.spent() {
		return w.nothingMoved(), relocation{Rule: decision.RuleNoRoom}
	}
	a, n := w.tryRelocate(from, loads), &w.Nodes[from]
	if a.unplaceable >= 0 && !w.spent() && len(w.Snapshot.Classes[a.unplaceable].Spread) > 0 { // the first nodes may have been the wrong ones
		w.undoRelocation(&a)
		w.emptiestFirst = true
		a = w.tryRelocate(from, loads)
		w.emptiestFirst = false
	}
	if a.unplaceable >= 0 {
		return a, relocation{Rule: decision.RuleNoRoom, Why: n.Facts.UnplaceableWords(w.nth(n, a.unplaceable, a.placed), func() string { return w.spreadKeepsOff(n, a.unplaceable) })}
	}
	if why := w.evictedInWaves(n); why != "" {
		w.undoRelocation(&a)
		if !w.drainEnds(from, loads, false) || !w.drainEnds(from, loads, true) { // whichever nodes kube-scheduler takes
			return w.nothingMoved(), relocation{Rule: decision.RuleBlocked, Why: why}
		}
		a = w.tryRelocate(from, loads)
	}
	if why := w.domainLost(&a, n); keepDomains && why != "" {
		return a, relocation{Rule: decision.RuleNoRoom, Why: why, Lost: true}
	}
	return a, relocation{late: slices.Clone(a.late)}
}

// nth is the pod of a class that has no room when n of its like have some.
func (w *Planner) nth(from *round.Node, class int32, n int32) cluster.PodKey {
	for _, pod := range w.Movable(from) {
		if pod.Class == int(class) {
			if n == 0 {
				return pod.Key
			}
			n--
		}
	}
	return ""
}

// tryRelocate takes room for loads as far as there is some: every class on the first nodes
// that have room for it.
func (w *Planner) tryRelocate(from int, loads []round.ClassCount) tentative {
	a := tentative{unplaceable: -1, classes: loads, done: w.cache.relocated[:0], steps: w.cache.undoSteps[:0]}
	defer func() { w.cache.relocated, w.cache.undoSteps = a.done[:0], a.steps[:0] }()
	if w.cursors == nil {
		w.cursors = w.newCursors(nil)
	}
	t := w.RelocationState()
	if t != nil {
		a.mark = t.State.Mark()
		w.beginConstrained(t, []int{from}, &a)
		if a.constrained { // who has fewer nodes to choose from chooses first
			loads = slices.Clone(loads)
			slices.SortStableFunc(loads, func(x, y round.ClassCount) int {
				return boolInt(t.constrained(y.Class)) - boolInt(t.constrained(x.Class))
			})
		}
	}
	for _, l := range loads {
		switch left := w.relocateClass(t, from, l, &a); {
		case left == 0:
		case len(w.Snapshot.Classes[l.Class].Spread) > 0:
			a.late = append(a.late, round.ClassCount{Class: l.Class, N: left})
		default:
			a.unplaceable, a.placed = l.Class, l.N-left
			return a
		}
	}
	if len(a.late) == 0 {
		return a
	}
	t.remove(w, from)
	for _, l := range a.late {
		if left := w.relocateClass(t, from, l, &a); left > 0 {
			a.unplaceable = l.Class
			for _, all := range loads {
				if all.Class == l.Class {
					a.placed = all.N - left
				}
			}
			break
		}
	}
	return a
}

// beginConstrained empties nodes in the state that constrained pods are judged by. The classes are those on them.
func (w *Planner) beginConstrained(t *relocationConstraints, from []int, a *tentative) {
	a.constrained = slices.ContainsFunc(a.classes, func(l round.ClassCount) bool { return t.constrained(l.Class) })
	if !a.constrained {
		return
	}
	a.occupied = make([][]int, len(a.classes))
	for i, l := range a.classes {
		a.occupied[i] = t.occupied(int(l.Class))
	}
	for _, i := range from {
		w.looks -= constrainedLook
		t.cordon(w, i, w.DrainPlanOf(&w.Nodes[i]).Classes)
	}
}

// newCursors begins with the nodes that stay for sure; pods that go to one that is replaced would have to move again, and pods that go
// to one of unneeded, in their order, would keep it.
func (w *Planner) newCursors(unneeded []int) *relocationCursors {
	p := &relocationCursors{by: make([]cursor, len(w.Cache.Classes.Representative))}
	for i := range p.by {
		p.by[i].skipped = -1
	}
	var last []int32
	for i := range w.Nodes {
		if w.Nodes[i].State != round.StateReady {
			continue
		}
		if _, is := slices.BinarySearch(unneeded, i); is || w.Disruption.Reason(i).Rule != "" {
			last = append(last, int32(i))
			continue
		}
		p.to = append(p.to, int32(i))
	}
	p.to = append(p.to, last...)
	return p
}

// relocateClass places pods of one class and returns how many are left. It costs the nodes from
// the class's cursor on, and is paid from the looks of the round.
func (w *Planner) relocateClass(t *relocationConstraints, from int, l round.ClassCount, a *tentative) (left int32) {
	p := &w.cursors.by[w.Cache.Classes.Equivalent[l.Class]]
	tied := t.constrained(l.Class)
	local := tied && t.isLocal(&w.Snapshot.Classes[l.Class])
	if local {
		p = &t.cursors[l.Class]
	}
	a.steps = append(a.steps, undoStep{p, l.Class})
	use := func(k int32) (spent bool) {
		if !tied {
			return w.placeOnNode(k, &l, a)
		}
		return w.placeConstrained(t, k, &l, a) && (local || !w.hasRoom(k, l.Class))
	}
	if tied && w.emptiestFirst {
		return w.placeOnEmptiest(t, from, l, a)
	}
	for before := l.N + 1; 0 < l.N && l.N < before; { // a pod that found a place may let the next one onto a node that was passed by
		before = l.N
		w.pass(p, from, &l, use)
	}
	return l.N
}

// placeOnEmptiest places pods of a constrained class one by one, each on the node with most room for the class, as kube-scheduler's
// scores would rather have it. It costs the nodes for each pod.
func (w *Planner) placeOnEmptiest(t *relocationConstraints, from int, l round.ClassCount, a *tentative) (left int32) {
	for class := int(l.Class); l.N > 0; l.N-- {
		best, most := -1, -1.0
		for k, i := range w.cursors.to {
			if w.spent() {
				break
			}
			if int(i) == from || !w.hasRoom(int32(k), l.Class) {
				continue
			}
			d := &w.Nodes[i]
			free := leastAllocated(d.Room, &d.Allocatable)
			if w.looks -= constrainedLook; free > most && w.looks >= 0 && t.State.Passes(class, int(i)) {
				best, most = k, free
			}
		}
		if best < 0 {
			break
		}
		i := int(w.cursors.to[best])
		binpack.Sub(w.Nodes[i].Room, w.Dimensions.Class(class), 1)
		t.State.Put(class, i, 1)
		a.done = append(a.done, relocated{int32(best), l.Class, 1})
	}
	return l.N
}

// pass walks once over the nodes from a class's cursor on. use places what it can on one of them, and tells whether it has no room left.
func (w *Planner) pass(p *cursor, from int, l *round.ClassCount, use func(k int32) (spent bool)) {
	if p.skipped >= 0 && int(w.cursors.to[p.skipped]) != from && use(p.skipped) {
		p.skipped = -1
	}
	spent := true // all nodes so far have no room
	for k := p.first; int(k) < len(w.cursors.to) && l.N > 0 && w.looks >= 0; k++ {
		switch {
		case int(w.cursors.to[k]) == from && spent && p.skipped < 0:
			p.skipped, p.first = k, k+1
		case int(w.cursors.to[k]) == from:
			spent = false
		case !use(k):
			spent = false
		case spent:
			p.first = k + 1
		}
	}
}

// hasRoom tells whether one more pod of a class would fit onto a node, its constraints aside. It
// is one look.
func (w *Planner) hasRoom(k, class int32) bool {
	w.looks--
	i := int(w.cursors.to[k])
	d := &w.Nodes[i]
	return !d.Removing && binpack.Fits(d.Room, w.Dimensions.Class(int(class))) && w.Passes(int(class), i)
}

// placeOnNode places what it can of a class on one node, and tells whether the node has no
// room for the class any more.
func (w *Planner) placeOnNode(k int32, l *round.ClassCount, a *tentative) (spent bool) {
	if !w.hasRoom(k, l.Class) {
		return true
	}
	room, size := w.Nodes[w.cursors.to[k]].Room, w.Dimensions.Class(int(l.Class))
	n := min(int32(binpack.MaxFit(room, size)), l.N)
	binpack.Sub(room, size, int(n))
	a.done = append(a.done, relocated{k, l.Class, n})
	l.N -= n
	return l.N > 0
}

// nothingMoved is an attempt that took nothing: what moved before it stays when it is undone.
func (w *Planner) nothingMoved() tentative {
	a := tentative{unplaceable: -1}
	if w.relocation != nil {
		a.mark = w.relocation.State.Mark()
	}
	return a
}

// undoRelocation gives room back.
func (w *Planner) undoRelocation(a *tentative) {
	if w.relocation != nil {
		w.relocation.State.Rollback(a.mark)
	}
	for _, m := range a.done {
		binpack.Sub(w.Nodes[w.cursors.to[m.at]].Room, w.Dimensions.Class(int(m.class)), -int(m.n))
	}
	for _, s := range a.steps {
		w.rewind(&s, a.done)
	}
}

// rewind takes a cursor back to the first node that has room again; one such node may
// stay behind as its skipped node.
func (w *Planner) rewind(s *undoStep, done []relocated) {
	p, size := s.cursor, w.Dimensions.Class(int(s.class))
	one, two := p.first, p.first // the first two nodes to look at again; p.first: none
	note := func(k int32) {
		if k < one {
			one, two = k, one
		} else if k != one {
			two = min(two, k)
		}
	}
	if p.skipped >= 0 {
		note(p.skipped)
	}
	for _, m := range done {
		if binpack.Fits(w.Nodes[w.cursors.to[m.at]].Room, size) {
			note(m.at)
		}
	}
	p.skipped = -1
	if one < p.first {
		p.skipped = one
	}
	p.first = two
}

// relocateHeadroom finds room elsewhere for the headroom that is kept on a node. When one
// piece has none, nothing is taken and its headroom is named.
func (w *Planner) relocateHeadroom(from int) (homeless string, ok bool) {
	type step struct{ node, class, n int }
	var done []step
	for _, s := range w.Nodes[from].Headroom {
		size, left := w.Dimensions.Class(s.Class), s.Count
		for k := range w.Nodes {
			d := &w.Nodes[k]
			if w.looks--; left == 0 || w.looks < 0 {
				break
			}
			if k == from || d.State != round.StateReady || d.Removing || !w.Passes(s.Class, k) {
				continue
			}
			if n := min(binpack.MaxFit(d.Room, size), left); n > 0 {
				binpack.Sub(d.Room, size, n)
				done = append(done, step{k, s.Class, n})
				left -= n
			}
		}
		if left > 0 {
			for _, m := range done {
				binpack.Sub(w.Nodes[m.node].Room, w.Dimensions.Class(m.class), -m.n)
			}
			return w.HeadroomName(s.Class), false
		}
	}
	for _, m := range done {
		w.Nodes[m.node].KeepHeadroom(m.class, m.n)
	}
	return "", true
}

package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// relocationConstraints is what F7 to F12 say of pods that are moved: every node with what is on it,
// the moves of the round so far included.
type relocationConstraints struct {
	State   *fit.State
	local   []int8   // by class: 1: only what is on a node decides whether it may go there; -1: not so; 0: not asked yet
	cursors []cursor // by class, for local ones: as relocationCursors.by
	zones   bool     // some class keeps others out of more than its own node

	evicted []int // components whose pods are off the node that is emptied now
}

// RelocationState returns the state that moves are judged by; nil when no class asks for
// anything of other pods or of volumes.
// Once a round it costs N, the pods that run and T.
func (w *Planner) RelocationState() *relocationConstraints {
	if w.unconstrained {
		return nil
	}
	if w.relocation == nil {
		if w.unconstrained = !slices.ContainsFunc(w.Snapshot.Classes, hasConstraints); w.unconstrained {
			return nil
		}
		w.relocation = &relocationConstraints{State: w.appliedState(), local: make([]int8, len(w.Snapshot.Classes)), cursors: make([]cursor, len(w.Snapshot.Classes))}
		w.relocation.restart()
		w.relocation.zones = slices.ContainsFunc(w.Snapshot.Classes, func(c cluster.PodClass) bool { return !onlyHostname(c.PodAntiAffinity) })
	}
	return w.relocation
}

// appliedState is every node with what is on it and with the pending pods of this
// round's answer.
func (w *Planner) appliedState() *fit.State {
	if w.applied != nil {
		return w.applied
	}
	return w.NewState()
}

// hasConstraints tells a class that asks for something of other pods or of volumes.
func hasConstraints(c cluster.PodClass) bool {
	return len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes) > 0
}

func onlyHostname(terms []cluster.PodTerm) bool {
	return !slices.ContainsFunc(terms, func(t cluster.PodTerm) bool { return t.TopologyKey != "kubernetes.io/hostname" })
}

// isLocal tells whether nothing but what is on a node itself decides whether a constrained
// class may go there: anti-affinity on hosts. Then, as with room, a node that was not
// good once is not looked at again.
func (t *relocationConstraints) isLocal(c *cluster.PodClass, class int) bool {
	if t.local[class] == 0 {
		t.local[class] = -1
		if !t.zones && len(c.PodAffinity)+len(c.Spread)+len(c.Volumes) == 0 && onlyHostname(c.PodAntiAffinity) {
			t.local[class] = 1
		}
	}
	return t.local[class] > 0
}

// placeConstrained is placeOnNode for a class with constraints, which goes pod by pod. It tells whether no
// more of them may go there now.
func (w *Planner) placeConstrained(t *relocationConstraints, k int32, l *round.ClassCount, a *tentative) (spent bool) {
	i, class := int(w.cursors.to[k]), int(l.Class)
	for w.hasRoom(k, l.Class) {
		if w.looks -= constrainedLook; w.looks < 0 || !t.State.Passes(class, i) {
			return w.looks >= 0
		}
		binpack.Sub(w.Nodes[i].Room, w.Dimensions.Class(class), 1)
		t.State.Put(class, i, 1)
		a.done = append(a.done, relocated{k, l.Class, 1})
		if l.N--; l.N == 0 {
			return false
		}
	}
	return true
}

// restart lets every cursor begin anew.
func (t *relocationConstraints) restart() {
	for i := range t.cursors {
		t.cursors[i] = cursor{skipped: -1}
	}
}

// evictConstrained takes constrained pods that are to be moved off their node, as their eviction will: all
// those that can touch the chances of one class.
func (t *relocationConstraints) evictConstrained(from int, class int32, loads []round.ClassCount) {
	with := t.State.Component(int(class))
	if slices.Contains(t.evicted, with) {
		return
	}
	t.evicted = append(t.evicted, with)
	for _, l := range loads {
		if t.State.Component(int(l.Class)) == with {
			t.State.Put(int(l.Class), from, -int(l.N))
		}
	}
}

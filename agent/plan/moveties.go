package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// looksARound bounds how often one round asks where moved pods with ties to others may
// go: about a tenth of a second. Untied pods do not count.
const looksARound = 500_000

// moveTies is what F7 to F12 say of pods that are moved: every node with what is on it,
// the moves of the round so far included.
type moveTies struct {
	state *fit.State
	local []int8 // by class: 1: only what is on a node decides whether it may go there; -1: not so; 0: not asked yet
	own   []path // by class, for local ones: as paths.by
	zones bool   // some class keeps others out of more than its own node
	looks int    // left in this round

	lifted []int // components whose pods are off the node that is emptied now
}

// moveState returns the state that moves are judged by; nil when no class asks for
// anything of other pods or of volumes.
func (w *roundState) moveState() *moveTies {
	if w.asksNothing {
		return nil
	}
	if w.ties == nil {
		if w.asksNothing = !slices.ContainsFunc(w.s.Classes, asksOthers); w.asksNothing {
			return nil
		}
		w.ties = &moveTies{state: w.settledState(), local: make([]int8, len(w.s.Classes)), own: make([]path, len(w.s.Classes)), looks: looksARound}
		w.ties.restart()
		w.ties.zones = slices.ContainsFunc(w.s.Classes, func(c cluster.PodClass) bool { return !onHostname(c.PodAntiAffinity) })
	}
	return w.ties
}

// settledState is every node with what is on it and with the pending pods of this
// round's answer.
func (w *roundState) settledState() *fit.State {
	if w.topology != nil {
		return w.topology.state
	}
	return w.newState()
}

// asksOthers tells a class that asks for something of other pods or of volumes.
func asksOthers(c cluster.PodClass) bool {
	return len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes) > 0
}

func onHostname(terms []cluster.PodTerm) bool {
	return !slices.ContainsFunc(terms, func(t cluster.PodTerm) bool { return t.TopologyKey != "kubernetes.io/hostname" })
}

// isLocal tells whether nothing but what is on a node itself decides whether a constrained
// class may go there: anti-affinity on hosts. Then, as with room, a node that was not
// good once is not looked at again.
func (t *moveTies) isLocal(c *cluster.PodClass, class int) bool {
	if t.local[class] == 0 {
		t.local[class] = -1
		if !t.zones && len(c.PodAffinity)+len(c.Spread)+len(c.Volumes) == 0 && onHostname(c.PodAntiAffinity) {
			t.local[class] = 1
		}
	}
	return t.local[class] > 0
}

// useTied is world.use for a class with ties, which goes pod by pod. It tells whether no
// more of them may go there now.
func (w *roundState) useTied(t *moveTies, k int32, l *classCount, a *attempt) (spent bool) {
	i, class := int(w.paths.to[k]), int(l.class)
	for w.hasRoom(k, l.class) {
		if t.looks--; t.looks < 0 || !t.state.Passes(class, i) {
			return t.looks >= 0
		}
		fit.Take(w.nodes[i].room, w.space.Class(class), 1)
		t.state.Put(class, i, 1)
		a.done = append(a.done, moved{k, l.class, 1})
		if l.n--; l.n == 0 {
			return false
		}
	}
	return true
}

// restart lets every path begin anew.
func (t *moveTies) restart() {
	for i := range t.own {
		t.own[i] = path{hole: -1}
	}
}

// spent tells that this round has looked for enough.
func (t *moveTies) spent() bool { return t != nil && t.looks < 0 }

// lift takes constrained pods that are to be moved off their node, as their eviction will: all
// those that can touch the chances of one class.
func (t *moveTies) lift(from int, class int32, loads []classCount) {
	with := t.state.Component(int(class))
	if slices.Contains(t.lifted, with) {
		return
	}
	t.lifted = append(t.lifted, with)
	for _, l := range loads {
		if t.state.Component(int(l.class)) == with {
			t.state.Put(int(l.class), from, -int(l.n))
		}
	}
}

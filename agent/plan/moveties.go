package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// looksARound bounds how often one round asks where moved pods with ties to others may
// go: about a tenth of a second. Untied pods do not count.
const looksARound = 1_000_000

// moveTies is what F7 to F12 say of pods that are moved: every node with what is on it,
// the moves of the round so far included.
type moveTies struct {
	state *fit.State
	local []int8  // by class: 1: only what is on a node decides whether it may go there; -1: not so; 0: not asked yet
	first []int32 // by class, for local ones: as paths.first
	zones bool    // some class keeps others out of more than its own node
	looks int     // left in this round
}

// moveState returns the state that moves are judged by; nil when no class asks for
// anything of other pods or of volumes.
func (w *world) moveState() *moveTies {
	if w.asksNothing {
		return nil
	}
	if w.ties == nil {
		if w.asksNothing = !slices.ContainsFunc(w.s.Classes, asksOthers); w.asksNothing {
			return nil
		}
		w.ties = &moveTies{state: w.settledState(), local: make([]int8, len(w.s.Classes)), first: make([]int32, len(w.s.Classes)), looks: looksARound}
		w.ties.zones = slices.ContainsFunc(w.s.Classes, func(c cluster.PodClass) bool { return !onHostname(c.PodAntiAffinity) })
	}
	return w.ties
}

// settledState is every node with what is on it and with the pending pods of this
// round's answer.
func (w *world) settledState() *fit.State {
	if w.bonds != nil {
		return w.bonds.state
	}
	return w.newState(w.s.Classes)
}

// asksOthers tells a class that asks for something of other pods or of volumes.
func asksOthers(c cluster.PodClass) bool {
	return len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes) > 0
}

func onHostname(terms []cluster.PodTerm) bool {
	return !slices.ContainsFunc(terms, func(t cluster.PodTerm) bool { return t.TopologyKey != "kubernetes.io/hostname" })
}

// isLocal tells whether nothing but what is on a node itself decides whether a tied
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

// placeTied places pods of a tied class one by one and returns how many are left.
func (w *world) placeTied(t *moveTies, from int, l heldClass, a *attempt) (left int32) {
	p, class := w.paths, int(l.class)
	size := w.space.Class(class)
	local := t.isLocal(&w.s.Classes[class], class)
	known := local
	k := int32(0)
	if local {
		k = t.first[class]
		a.tiedPaths = append(a.tiedPaths, advance{l.class, k})
	}
	for ; int(k) < len(p.to) && t.looks > 0; k++ {
		i := int(p.to[k])
		if i == from {
			known = false
			continue
		}
		d := &w.nodes[i]
		for !d.goes && fits(d.room, size) && w.passes(class, i) && t.allows(class, i) {
			fit.Take(d.room, size, 1)
			t.state.Put(class, i, 1)
			a.done = append(a.done, moved{k, l.class, 1})
			if l.n--; l.n == 0 {
				return 0
			}
		}
		if known {
			t.first[class] = k + 1
		}
	}
	return l.n
}

func (t *moveTies) allows(class, node int) bool {
	t.looks--
	return t.state.Passes(class, node)
}

// lift takes the tied pods that are to be moved off their node, as their eviction will.
func (t *moveTies) lift(from int, loads []heldClass) {
	for _, l := range loads {
		if t.state.Tied(int(l.class)) {
			t.state.Put(int(l.class), from, -int(l.n))
		}
	}
}

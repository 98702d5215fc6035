package scaledown

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// attempt is what one move took of the board, so that it can be given back.
type attempt struct {
	mark        schedsim.Mark
	classes     []round.ClassCount
	unplaceable int32 // the class of the first pod that found no room; -1: all did
	placed      int32 // how many of that class found some
	// late are the pods that kube-scheduler can bind only when the Node object is gone: until then their topology
	// spread counts the emptied node (nodeTaintsPolicy: Ignore).
	late     []round.ClassCount
	occupied [][]int // by class: the domains of its topology spread with pods before; see givesUpDomain
}

// relocation is what relocate found.
type relocation struct {
	Rule, Why string             // why the node stays; empty: its pods have room elsewhere
	Lost      bool               // they have, and would give up a domain of their topology spread
	late      []round.ClassCount // as in attempt
}

// relocate finds room for pods on other nodes that are Ready and stay. It takes the room
// and notes who is counted on; when one pod has none, nothing is taken. keepDomains: no pod gives up
// a domain of its topology spread either. It costs place for each class on the node.
func (w *Planner) relocate(from int, loads []round.ClassCount, keepDomains bool) relocation {
	a, r := w.judgeRelocation(from, loads, keepDomains)
	if r.Rule != "" {
		w.board.Rollback(a.mark)
		return r
	}
	moved := w.board.Placed(a.mark)
	if name, ok := w.relocateHeadroom(from); !ok {
		w.board.Rollback(a.mark)
		return relocation{Rule: decision.RuleNoRoom, Why: w.Nodes[from].Facts.UnplaceableWords(cluster.PodKey("headroom/"+name), nil)}
	}
	if len(a.late) == 0 { // what comes after it is judged without the node
		w.remove(from)
	}
	for _, m := range moved {
		n := &w.Nodes[m.Node]
		n.OnlyRelocated = n.OnlyRelocated || !n.InUse
		n.InUse = true
	}
	return r
}

// Relocation is relocate that takes nothing, headroom aside.
func (w *Planner) Relocation(from int, loads []round.ClassCount, keepDomains bool) relocation {
	a, r := w.judgeRelocation(from, loads, keepDomains)
	w.board.Rollback(a.mark)
	return r
}

// CanRelocate tells whether the pods of a node have room elsewhere.
func (w *Planner) CanRelocate(from int, loads []round.ClassCount) bool {
	return w.Relocation(from, loads, false).Rule == ""
}

// judgeRelocation tries a relocation, and says why the pods are not moved so.
func (w *Planner) judgeRelocation(from int, loads []round.ClassCount, keepDomains bool) (attempt, relocation) {
	n := &w.Nodes[from]
	a := w.tryRelocate(from, loads, false)
	if a.unplaceable >= 0 && !w.spent() && len(w.Snapshot.Classes[a.unplaceable].Spread) > 0 { // the first nodes may have been the wrong ones
		w.board.Rollback(a.mark)
		a = w.tryRelocate(from, loads, true)
	}
	if a.unplaceable >= 0 {
		return a, relocation{Rule: decision.RuleNoRoom, Why: n.Facts.UnplaceableWords(w.nth(n, a.unplaceable, a.placed), func() string { return w.spreadKeepsOff(n, a.unplaceable) })}
	}
	if why := w.evictedInWaves(n); why != "" {
		w.board.Rollback(a.mark)
		if !w.drainEnds(from, loads, false) || !w.drainEnds(from, loads, true) { // whichever nodes kube-scheduler takes
			return a, relocation{Rule: decision.RuleBlocked, Why: why}
		}
		a = w.tryRelocate(from, loads, false)
	}
	if why := w.domainLost(&a, n); keepDomains && why != "" {
		return a, relocation{Rule: decision.RuleNoRoom, Why: why, Lost: true}
	}
	return a, relocation{late: a.late}
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

// beginMove begins an attempt to move the pods of classes off nodes, which are emptied. Who has fewer nodes to choose from chooses first.
func (w *Planner) beginMove(classes []round.ClassCount) attempt {
	b := w.onBoard()
	a := attempt{unplaceable: -1, mark: b.Mark(), classes: classes}
	if slices.ContainsFunc(classes, func(l round.ClassCount) bool { return b.constrained(l.Class) }) {
		a.classes = slices.Clone(classes)
		slices.SortStableFunc(a.classes, func(x, y round.ClassCount) int {
			return boolInt(b.constrained(y.Class)) - boolInt(b.constrained(x.Class))
		})
		for _, l := range a.classes {
			a.occupied = append(a.occupied, b.occupied(int(l.Class)))
		}
	}
	return a
}

// tryRelocate takes room for loads as far as there is some.
func (w *Planner) tryRelocate(from int, loads []round.ClassCount, emptiest bool) attempt {
	a := w.beginMove(loads)
	w.empty(from, loads)
	for _, l := range a.classes {
		switch left := w.place(l.Class, l.N, emptiest); {
		case left == 0:
		case len(w.Snapshot.Classes[l.Class].Spread) > 0:
			a.late = append(a.late, round.ClassCount{Class: l.Class, N: left})
		default:
			a.unplaceable, a.placed = l.Class, l.N-left
			return a
		}
	}
	if len(a.late) > 0 {
		w.remove(from)
	}
	for _, l := range a.late {
		if left := w.place(l.Class, l.N, emptiest); left > 0 {
			at := slices.IndexFunc(a.classes, func(all round.ClassCount) bool { return all.Class == l.Class })
			a.unplaceable, a.placed = l.Class, a.classes[at].N-left
			break
		}
	}
	return a
}

// relocateHeadroom finds room elsewhere for the headroom that is kept on an emptied node. When one
// piece has none, its headroom is named.
func (w *Planner) relocateHeadroom(from int) (homeless string, ok bool) {
	m := w.board.Mark()
	for _, s := range w.Nodes[from].Headroom {
		if w.place(int32(s.Class), int32(s.Count), false) > 0 {
			return w.HeadroomName(s.Class), false
		}
	}
	for _, p := range w.board.Placed(m) {
		w.Nodes[p.Node].KeepHeadroom(p.Class, p.Count)
	}
	return "", true
}

// givesUpDomain says which domain a class would lose whose node is emptied: occupied are the domains with pods
// before, by constraint. Hosts come and go with the number of machines, and minDomains says how many have to
// stay; zones and their like are redundancy that somebody asked for.
func (b *board) givesUpDomain(class int, occupied []int) (why string) {
	i := 0
	b.state.Occupied(class, func(key string, domains int) {
		if key != labelHostname && domains < occupied[i] && why == "" {
			why = fmt.Sprintf("its topology spread over %s has pods in %d domains and would have them in %d", key, occupied[i], domains)
		}
		i++
	})
	return why
}

const labelHostname = "kubernetes.io/hostname"

// occupied are the domains that hold pods of a class's spread constraints.
func (b *board) occupied(class int) (domains []int) {
	b.state.Occupied(class, func(_ string, n int) { domains = append(domains, n) })
	return domains
}

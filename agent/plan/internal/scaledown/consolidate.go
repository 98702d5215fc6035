package scaledown

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/consolidation"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Consolidate looks for nodes that fewer or cheaper machines can replace.
func (w *Planner) Consolidate() {
	w.looks = budget.Consolidation.Budget()
	consolidation.New(w.State, w.Disruption, w).Decide()
	w.tellConsolidation()
}

// Removable tells a node that may go as far as it and its pods are concerned. Pods that are constrained to other pods, to a
// place or to a volume keep their node here.
func (w *Planner) Removable(i int) bool {
	n := &w.Nodes[i]
	c := Candidate{Node: i}
	if rule, _ := w.notRemovable(n, &c); rule != "" && rule != decision.RuleBusy {
		return false
	}
	if rule, _ := w.DeletionsFrozen(&w.Groups[n.Group]); rule != "" {
		return false
	}
	plan := w.DrainPlanOf(n)
	return len(plan.Blocked)+len(plan.Completing)+plan.Terminating == 0 && !slices.ContainsFunc(plan.Classes, func(l round.ClassCount) bool { return w.anchored(int(l.Class)) })
}

// Moved is how many pods of a node a drain would evict.
func (w *Planner) Moved(i int) int { return w.podsToDrain(&w.Nodes[i]).Movable }

// LooksSpent tells that the part that is at work has no looks left.
func (w *Planner) LooksSpent() bool { return w.spent() }

// Settled tells that no node goes now, and that scale-down did not fail a short time ago. A machine that has just come holds
// nothing up: its pods are young, and where it came to save money the agent may have forgotten that in a restart.
func (w *Planner) Settled() bool {
	rule, _ := w.Cooldown()
	return (rule == "" || rule == decision.RuleCooldown) && !w.removals.any()
}

// Fit tells whether the pods of some nodes have room on the others and on so many machines of a group, and which nodes get some of
// them that nothing has needed so far. It costs N, C, podsFit and fitAsScheduled.
func (w *Planner) Fit(from []int, to *round.Group, machines int) (idle []int, ok bool) {
	w.looks -= len(w.Nodes) + len(w.Cache.Classes.Representative)
	var unneeded []int // nodes that would go otherwise: here they stay
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Removing && n.State == round.StateReady {
			n.Removing, unneeded = false, append(unneeded, i)
		}
	}
	w.cursors = w.newCursors(unneeded)
	used, ok := w.podsFit(from, to, machines)
	ok = ok && w.fitAsScheduled(from, to, machines)
	for _, i := range unneeded {
		if w.Nodes[i].Removing = true; used[i] {
			idle = append(idle, i)
		}
	}
	return idle, ok
}

// anchored tells a pod whose place depends on more than its node.
func (w *Planner) anchored(class int) bool {
	c, t := &w.Snapshot.Classes[class], w.RelocationState()
	return t != nil && t.State.Constrained(class) || len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes)+len(c.NotUnderstood) > 0
}

// podsFit tells whether the pods of some nodes have room on the others and on so many
// machines of a group; pods with inter-pod constraints only on the others. It takes
// nothing, and tells which nodes it used.
// It costs N + C, and relocateClass for each class on the nodes.
func (w *Planner) podsFit(from []int, to *round.Group, machines int) (used map[int]bool, ok bool) {
	if w.cursors == nil {
		w.cursors = w.newCursors(nil)
	}
	rooms := make([][]int64, machines)
	var shape *fit.NodeInfo
	for i := range rooms {
		var empty []int64
		empty, shape = w.Template(to)
		rooms[i] = slices.Clone(empty)
	}
	a := tentative{unplaceable: -1}
	t := w.RelocationState()
	if t != nil {
		a.mark = t.State.Mark()
	}
	for _, i := range from {
		w.Nodes[i].Removing = true
	}
	defer func() {
		for _, i := range from {
			w.Nodes[i].Removing = false
		}
		w.undoRelocation(&a)
		// Nodes that went in this simulation were passed by for good.
		w.cursors = nil
		if t != nil {
			t.restart()
		}
	}()
	for _, i := range from {
		a.classes = w.DrainPlanOf(&w.Nodes[i]).Classes
		for _, l := range a.classes {
			left := int(w.relocateClass(t, i, l, &a))
			if left > 0 && (shape == nil || t != nil && t.State.Constrained(int(l.Class)) || !fit.Passes(&w.Snapshot.Classes[l.Class], shape)) {
				return nil, false // a constrained pod on a machine that does not exist is not judged here
			}
			for r := range rooms {
				size := w.Dimensions.Class(int(l.Class))
				n := min(binpack.MaxFit(rooms[r], size), left)
				binpack.Sub(rooms[r], size, n)
				left -= n
			}
			if left > 0 {
				return nil, false
			}
		}
	}
	used = make(map[int]bool, len(a.done))
	for _, m := range a.done {
		used[int(w.cursors.to[m.at])] = true
	}
	return used, true
}

// fitAsScheduled tells whether the pods of some nodes also find room where each of them goes to the emptiest node that takes it, as
// kube-scheduler's scores would rather have it: first fit fills gaps that kube-scheduler leaves open, and a pod may
// come to where another one was to go. The order in which they come is not known, nor all that the scores read, so that each class is the
// last one once, and the pods before it go to where it would fit. It costs the nodes for each pod and class, ends when the looks are
// spent, and takes nothing.
func (w *Planner) fitAsScheduled(from []int, to *round.Group, machines int) bool {
	var loads []round.ClassCount
	for _, i := range from {
		for _, l := range w.DrainPlanOf(&w.Nodes[i]).Classes {
			if k := slices.IndexFunc(loads, func(o round.ClassCount) bool { return o.Class == l.Class }); k >= 0 {
				loads[k].N += l.N
			} else {
				loads = append(loads, l)
			}
		}
	}
	weight := func(l round.ClassCount) float64 {
		size := w.Dimensions.Class(int(l.Class))
		return binpack.CoreEquivalents(float64(size[0]), float64(size[1]))
	}
	slices.SortStableFunc(loads, func(a, b round.ClassCount) int { return cmp.Compare(weight(a), weight(b)) })
	places := w.placesBeside(from, to, machines)
	for last := range loads {
		if !w.fitInOrder(slices.Concat(loads[:last], loads[last+1:], loads[last:last+1]), places, to) {
			return false
		}
	}
	return true
}

// place is a node, or with -1 a machine that is not there yet, and the room that is left on it.
type place struct {
	node int
	room []int64
	of   *cluster.Resources // what it offers
}

// placesBeside are the nodes that stay when some go, and machines of a group that come. Their room is that of the nodes.
func (w *Planner) placesBeside(from []int, to *round.Group, machines int) (places []place) {
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.State == round.StateReady && !n.Removing && !slices.Contains(from, i) {
			places = append(places, place{i, n.Room, &n.Allocatable})
		}
	}
	for range machines {
		empty, _ := w.Template(to)
		places = append(places, place{-1, slices.Clone(empty), &to.Template.Allocatable})
	}
	return places
}

// fitInOrder puts pods one after the other on the emptiest place that takes them, and that still takes one of the last class where
// there is such; false: one finds none. It gives the room back.
func (w *Planner) fitInOrder(loads []round.ClassCount, places []place, to *round.Group) bool {
	type put struct {
		on   *place
		size []int64
	}
	var done []put
	defer func() {
		for _, d := range done {
			binpack.Sub(d.on.room, d.size, -1)
		}
	}()
	last := w.Dimensions.Class(int(loads[len(loads)-1].Class))
	for _, l := range loads {
		size := w.Dimensions.Class(int(l.Class))
		for range l.N {
			p := w.emptiest(places, int(l.Class), last, to)
			if p == nil || w.spent() {
				return false
			}
			binpack.Sub(p.room, size, 1)
			done = append(done, put{p, size})
		}
	}
	return true
}

// emptiest is the place with most room left that takes a pod of a class, of those first that have room for another size; nil: none
// does.
func (w *Planner) emptiest(places []place, class int, other []int64, to *round.Group) (best *place) {
	most, size := 0.0, w.Dimensions.Class(class)
	for k := range places {
		p := &places[k]
		w.looks--
		free := leastAllocated(p.room, p.of)
		if binpack.Fits(p.room, other) {
			free += 2 // more than any node's
		}
		if best != nil && free <= most || !binpack.Fits(p.room, size) {
			continue
		}
		if p.node >= 0 && w.Passes(class, p.node) || p.node < 0 && w.machineTakes(class, to) {
			best, most = p, free
		}
	}
	return best
}

func (w *Planner) machineTakes(class int, to *round.Group) bool {
	_, shape := w.Template(to)
	return fit.Passes(&w.Snapshot.Classes[class], shape)
}

package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/certain"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/sureplaces"
)

// mostUncertain is how many nodes are refused in a round because their pods may not all have room. The next ones wait unasked.
const mostUncertain = 10

// noteRooms notes what room nodes have before pods are moved to them. It costs N.
func (w *Planner) noteRooms() {
	w.before = w.cache.rooms[:0]
	for i := range w.Nodes {
		w.before = append(w.before, w.Nodes[i].Room...)
	}
	w.cache.rooms = w.before
}

// Certain tells whether the pods of some nodes find room on the others and on so many machines of a group, wherever kube-scheduler puts
// each of them, and whatever they ask of each other. Of the nodes that go otherwise idle stay. It costs N, certain.Fits, and where
// pods are constrained the pods that run, once a round.
func (w *Planner) Certain(from, idle []int, to *round.Group, machines int) bool {
	goes := func(i int) bool { return w.Nodes[i].Removing && !slices.Contains(idle, i) }
	q := w.newQuestion(from, to, machines, func(i int) bool { return !goes(i) })
	if t := w.RelocationState(); t == nil || !slices.ContainsFunc(q.classes, t.State.Constrained) {
		return w.fitsAnywhere(q)
	}
	if w.settled == nil {
		w.settled = w.NewState()
	}
	if w.relatedPodsWait(q) {
		return false
	}
	m := sureplaces.Begin(w.settled, w.Snapshot.Classes, len(w.Nodes))
	defer m.End()
	for i := range w.Nodes {
		switch n := &w.Nodes[i]; {
		case len(from) == 1 && from[0] == i:
			m.Leaves(i, n.Pods, n.Shape.Cordoned())
		case slices.Contains(from, i), goes(i), w.BeingRemoved(n): // cordoned or not
			m.Leaves(i, n.Pods, &n.Shape)
		}
	}
	if machines > 0 {
		_, shape := w.Template(to)
		m.Come(shape, to.Template.VolumeLimits, machines)
	}
	return m.Constrain(q.loads, q.classes, q.nodes, w.Look) && w.fitsAnywhere(q)
}

// relatedPodsWait tells whether kube-scheduler has still to place a pod that the question's pods may be constrained by.
func (w *Planner) relatedPodsWait(q *question) bool {
	st := w.settled
	return slices.ContainsFunc(w.Unbound.Waiting, func(x round.UnboundPod) bool {
		c := st.Component(int(x.Class))
		return c >= 0 && slices.ContainsFunc(q.classes, func(class int) bool { return st.Component(class) == c })
	})
}

// noteGoing notes a node that is being removed: no place any more.
func (w *Planner) noteGoing(node int) {
	w.going = append(w.going, node)
	if w.podsToDrain(&w.Nodes[node]).Movable > 0 {
		w.moving++
	}
}

// uncertain says why a node waits while others are emptied: the pods of all of them may not find room wherever kube-scheduler puts each of
// them. First fit (see relocate) is one way that these may go. It alone decides on the first node, which might
// wait for ever otherwise, and on nodes that are replaced or were asked to go. What pods ask of each other it does not judge. It costs
// N, and certain.Fits.
func (w *Planner) uncertain(c *Candidate) string {
	if w.moving == 0 || c.requested || c.replaced() {
		return ""
	}
	if w.refused < mostUncertain && w.fitsAnywhere(w.newQuestion(append(slices.Clone(w.going), c.Node), nil, 0, func(int) bool { return true })) {
		return ""
	}
	w.refused++
	return "nodes are being emptied now, and beside their pods those of this one may not all find room: that depends on where kube-scheduler puts each of them"
}

// question is whether the pods of some nodes find room: loads of one class each, on nodes, and then on machines that come.
type question struct {
	loads   []certain.Load
	classes []int
	nodes   []int
	rooms   [][]int64
}

// newQuestion asks about the other nodes that stay, as they were before the round moved any pod, and about so many machines of a group.
func (w *Planner) newQuestion(from []int, to *round.Group, machines int, stays func(node int) bool) *question {
	q := &question{}
	w.addLoads(q, from, to)
	for i, size := 0, w.Dimensions.Len(); i < len(w.Nodes) && len(q.loads) > 0; i++ {
		if w.Nodes[i].State == round.StateReady && !slices.Contains(from, i) && stays(i) {
			q.nodes, q.rooms = append(q.nodes, i), append(q.rooms, w.before[i*size:(i+1)*size])
		}
	}
	for range machines {
		empty, _ := w.Template(to)
		q.rooms = append(q.rooms, empty)
	}
	return q
}

// fitsAnywhere tells whether the pods find room wherever kube-scheduler puts each of them.
func (w *Planner) fitsAnywhere(q *question) bool {
	return len(q.loads) == 0 || w.Look(len(w.Nodes)) && certain.Fits(q.loads, q.rooms, w.Look)
}

// addLoads adds the pods of some nodes by class.
func (w *Planner) addLoads(q *question, from []int, to *round.Group) {
	count := make(map[int]int)
	for _, i := range from {
		for _, l := range w.DrainPlanOf(&w.Nodes[i]).Classes {
			if count[int(l.Class)] == 0 {
				q.classes = append(q.classes, int(l.Class))
			}
			count[int(l.Class)] += int(l.N)
		}
	}
	for _, c := range q.classes {
		q.loads = append(q.loads, certain.Load{N: count[c], Size: w.Dimensions.Class(c), Takes: func(place int) bool {
			if place < len(q.nodes) {
				return w.Passes(c, q.nodes[place])
			}
			_, shape := w.Template(to)
			return fit.Passes(&w.Snapshot.Classes[c], shape)
		}})
	}
}

package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/certain"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
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
// each of them. Of the nodes that go otherwise idle stay. It costs N, and certain.Fits.
func (w *Planner) Certain(from, idle []int, to *round.Group, machines int) bool {
	return w.fitAnywhere(from, to, machines, func(i int) bool { return !w.Nodes[i].Removing || slices.Contains(idle, i) })
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
// wait for ever otherwise, and on nodes that are replaced or were asked to go. It costs N, and certain.Fits.
func (w *Planner) uncertain(c *Candidate) string {
	if w.moving == 0 || c.requested || c.replaced() {
		return ""
	}
	if w.refused < mostUncertain && w.fitAnywhere(append(slices.Clone(w.going), c.Node), nil, 0, func(int) bool { return true }) {
		return ""
	}
	w.refused++
	return "nodes are being emptied now, and beside their pods those of this one may not all find room: that depends on where kube-scheduler puts each of them"
}

// fitAnywhere tells whether the pods of some nodes find room wherever kube-scheduler puts each of them: on the other nodes that stay,
// as they were before the round moved any pod, and on so many machines of a group. What pods ask of each other it does not judge.
func (w *Planner) fitAnywhere(from []int, to *round.Group, machines int, stays func(node int) bool) bool {
	var nodes []int
	loads := w.loads(from, to, &nodes)
	if len(loads) == 0 {
		return true
	}
	var rooms [][]int64
	for i, size := 0, w.Dimensions.Len(); i < len(w.Nodes); i++ {
		if w.Nodes[i].State == round.StateReady && !slices.Contains(from, i) && stays(i) {
			nodes, rooms = append(nodes, i), append(rooms, w.before[i*size:(i+1)*size])
		}
	}
	for range machines {
		empty, _ := w.Template(to)
		rooms = append(rooms, empty)
	}
	return w.Look(len(w.Nodes)) && certain.Fits(loads, rooms, w.Look)
}

// loads are the pods of some nodes by class. Places beyond the nodes are machines of a group.
func (w *Planner) loads(from []int, to *round.Group, nodes *[]int) (loads []certain.Load) {
	count, order := make(map[int32]int), []int32(nil)
	for _, i := range from {
		for _, l := range w.DrainPlanOf(&w.Nodes[i]).Classes {
			if count[l.Class] == 0 {
				order = append(order, l.Class)
			}
			count[l.Class] += int(l.N)
		}
	}
	for _, c := range order {
		loads = append(loads, certain.Load{N: count[c], Size: w.Dimensions.Class(int(c)), Takes: func(place int) bool {
			if place < len(*nodes) {
				return w.Passes(int(c), (*nodes)[place])
			}
			_, shape := w.Template(to)
			return fit.Passes(&w.Snapshot.Classes[c], shape)
		}})
	}
	return loads
}

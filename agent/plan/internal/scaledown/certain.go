package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// mostUncertain is how many nodes are refused in a round because their pods may not all have room. The next ones wait unasked.
const mostUncertain = 10

// Certain tells whether the pods of some nodes find room on the others and on so many machines of a group, wherever kube-scheduler puts
// each of them. Of the nodes that go otherwise idle stay. What pods ask of each other was asked of one placement (see podsFit), and no pod
// that they may be constrained by may wait for a place. It costs N, and fitsWherever.
//
// A proof for constrained pods as well (251 lines) let 68 nodes go in place of 88, at 1.05 times the bill, and no drain or purchase was
// wrong without it: TestConsolidationLoop, constrained, seeds 3 to 18.
func (w *Planner) Certain(from, idle []int, to *round.Group, machines int) bool {
	q := w.newQuestion(from, to, machines, func(i int) bool { return !w.Nodes[i].Removing || slices.Contains(idle, i) })
	return !w.relatedPodsWait(q) && w.fitsAnywhere(q)
}

// relatedPodsWait tells whether kube-scheduler has still to place a pod that the question's pods may be constrained by.
func (w *Planner) relatedPodsWait(q *question) bool {
	st := w.onBoard().state
	return st != nil && slices.ContainsFunc(w.Unbound.Waiting, func(x round.UnboundPod) bool {
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
// N, and fitsWherever.
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
	loads   []load
	classes []int
	nodes   []int
	rooms   [][]int64
}

// newQuestion asks about the other nodes that stay, as they were before the round moved any pod, and about so many machines of a group.
func (w *Planner) newQuestion(from []int, to *round.Group, machines int, stays func(node int) bool) *question {
	q := &question{}
	w.addLoads(q, from, to)
	for i := 0; i < len(w.Nodes) && len(q.loads) > 0; i++ {
		if w.Nodes[i].State == round.StateReady && !slices.Contains(from, i) && stays(i) {
			q.nodes, q.rooms = append(q.nodes, i), append(q.rooms, w.Nodes[i].Room)
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
	return len(q.loads) == 0 || w.Look(len(w.Nodes)) && fitsWherever(q.loads, q.rooms, w.Look)
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
		q.loads = append(q.loads, load{N: count[c], Size: w.Dimensions.Class(c), Takes: func(place int) bool {
			if place < len(q.nodes) {
				return w.Passes(c, q.nodes[place])
			}
			_, shape := w.Template(to)
			return fit.Passes(&w.Snapshot.Classes[c], shape)
		}})
	}
}

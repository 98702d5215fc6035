package scaledown

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// board is the cluster as pods that are moved find it: every node, with the moves of the round so far and the pods of this round's
// scale-up. Open are the nodes that are Ready; those that are replaced come last, because pods that go there would have to move again.
type board struct {
	*schedsim.Sim
	state  *fit.State            // the Sim's; nil: no class asks for anything of other pods or of volumes
	shapes map[int]*fit.NodeInfo // of nodes, as they are when they are cordoned
}

// onBoard is the board of the round. Once a round it costs N and C, and where a class is constrained the pods that run and T.
func (w *Planner) onBoard() *board {
	if w.board != nil {
		return w.board
	}
	b := &board{shapes: make(map[int]*fit.NodeInfo)}
	if slices.ContainsFunc(w.Snapshot.Classes, hasConstraints) {
		if b.state = w.applied; b.state == nil {
			b.state = w.NewState()
		}
	}
	b.Sim = schedsim.New(schedsim.Config{Classes: w.Snapshot.Classes, Namespaces: w.Snapshot.Namespaces, Dimensions: w.Dimensions, State: b.state, Takes: w.Passes, Nodes: len(w.Nodes)})
	for i := range w.Nodes {
		n := &w.Nodes[i]
		b.AddNode(schedsim.Node{Info: &n.Shape, Allocatable: n.Allocatable, Room: n.Room, Known: true, InState: i})
		switch {
		case n.State != round.StateReady || n.Removing:
			b.Stand(i, schedsim.Closed)
		case w.Disruption.Reason(i).Rule != "":
			b.Stand(i, schedsim.Last)
		}
	}
	w.board = b
	return b
}

// hasConstraints tells a class that asks for something of other pods or of volumes.
func hasConstraints(c cluster.PodClass) bool {
	return len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread)+len(c.Volumes)+len(c.Claims) > 0
}

// constrained tells whether the place of a class depends on what other pods and volumes are where.
func (b *board) constrained(class int32) bool {
	return b.state != nil && b.state.Constrained(int(class))
}

// place puts up to n pods of a class on nodes that are open, and returns how many are left: on the first that take any, or where the class
// is constrained on the emptiest, as kube-scheduler's scores would rather have it. It is paid from the looks of the round.
func (w *Planner) place(class, n int32, emptiest bool) (left int32) {
	if w.spent() {
		return n
	}
	b, kinds := w.onBoard(), &w.Cache.Classes
	return n - w.paid(func() int {
		switch {
		case !b.constrained(class):
			return b.Pack(int(kinds.Representative[kinds.Equivalent[class]]), int(n))
		case emptiest:
			return b.Bind(int(class), int(n))
		}
		return b.Pack(int(class), int(n))
	})
}

// paid takes what it costs to put pods on the board from the looks of the round.
func (w *Planner) paid(put func() int) int32 {
	before := w.board.Steps
	w.board.Limit = before + w.looks + 1
	n := put()
	w.looks -= w.board.Steps - before
	return int32(n)
}

// empty makes of a node what its drain does: no pod goes there any more, the pods of the drain plan are evicted, and kube-scheduler sees
// the taint. A spread constraint that honours taints does not count the node any more; one that ignores them counts it, with the pods
// that stay, until the Node object is gone (see remove). It costs the pods of the node.
func (w *Planner) empty(from int, loads []round.ClassCount) {
	b, n := w.onBoard(), &w.Nodes[from]
	b.Stand(from, schedsim.Closed)
	if b.state == nil {
		return
	}
	for _, l := range loads {
		b.state.Put(int(l.Class), from, -int(l.N))
	}
	if !w.BeingRemoved(n) {
		if b.shapes[from] == nil {
			b.shapes[from] = n.Shape.Cordoned()
		}
		w.reshape(from, b.shapes[from])
		w.putRest(n, from, 1)
	}
}

// remove takes an emptied node away as its Node object goes, with the pods that stay on it.
func (w *Planner) remove(from int) {
	if b := w.onBoard(); b.state != nil && !w.BeingRemoved(&w.Nodes[from]) {
		w.reshape(from, nil)
	}
}

// reshape takes the pods off a node that its drain leaves alone, and lets it look like another one.
func (w *Planner) reshape(from int, shape *fit.NodeInfo) {
	w.putRest(&w.Nodes[from], from, -1)
	w.board.state.Reshape(from, shape)
}

// putRest puts the pods of a node that its drain does not move, times so often.
func (w *Planner) putRest(n *round.Node, at, times int) {
	for i := range n.Pods {
		switch pod := &n.Pods[i]; {
		case pod.Finished:
		case !pod.Deleting.IsZero():
			w.board.state.PutTerminating(pod.Class, at, times)
		case w.Ignored(pod) || w.Expendable(pod) || completes(pod):
			w.board.state.Put(pod.Class, at, times)
		}
	}
}

package round

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Node is a Node and what the round knows about it.
type Node struct {
	*cluster.Node
	Facts         *nodeFacts
	Group         int // index into State.Groups, -1: none of ours
	Instance      *cluster.Instance
	Room          []int64 // what is left, of the dimensions of State.Dimensions
	State         NodeState
	Shape         fit.NodeInfo
	Limits        map[string]int64 // of volumes by CSI driver
	InUse         bool             // a pending pod or a moved pod counts on it
	OnlyRelocated bool             // only moved pods do
	Headroom      []HeadroomPieces // headroom that is kept free on it
	Removing      bool             // it is on its way out, or would be: no destination
	Original      *cluster.Node    // with the pods that releaseInterrupted took off it; nil: it is not interrupted
}

// NodeState says what a node is good for.
type NodeState int

const (
	StateOut      NodeState = iota // not Ready, or on its way out: no room for anybody
	StateReady                     // the scheduler may place pods now
	StateUpcoming                  // registered, and will soon be Ready and what its group's nodes are
	StateMarked                    // carries our mark
)

func (w *State) indexNodes() {
	t := &w.Cache.instances
	w.Identity, w.ByName = t.id, t.byName
	w.Cache.Nodes = slices.Grow(w.Cache.Nodes[:0], len(t.order))[:len(t.order)]
	w.Nodes = w.Cache.Nodes
	dimensions := w.Dimensions.Len()
	w.Cache.rooms = slices.Grow(w.Cache.rooms[:0], len(w.Nodes)*dimensions)[:len(w.Nodes)*dimensions]
	for k, i := range t.order {
		n := &w.Nodes[k]
		*n = Node{Node: w.Snapshot.Nodes[i], Facts: w.Cache.Facts[i], Group: int(t.group[k]), Instance: t.inst[k], Original: w.interruptedNodes[k], Room: w.Cache.rooms[k*dimensions : (k+1)*dimensions : (k+1)*dimensions]}
		n.State, n.Limits = w.stateOf(n), n.VolumeLimits
		n.Shape = fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable, Devices: n.Devices, Extended: n.Allocatable.Extended}
		if n.State == StateUpcoming {
			soon := w.starting(n)
			n.Shape, n.Limits = soon.Shape, soon.VolumeLimits
			w.Dimensions.Capacity(n.Room, soon.Allocatable)
			w.takeHeld(n.Facts, n.Room)
		} else {
			copy(n.Room, n.Facts.room)
		}
	}
}

func (w *State) stateOf(n *Node) NodeState {
	if n.Instance != nil {
		switch n.Instance.Phase {
		case cluster.PhaseStopped, cluster.PhaseDeleting, cluster.PhaseGone, cluster.PhaseFailed:
			return StateOut
		}
		if _, told := w.Next.Deleted[n.Instance.ID]; told {
			return StateOut
		}
	}
	if n.Deleting {
		return StateOut
	}
	if n.Facts.ToBeDeleted {
		if n.Facts.CordonedByUs && n.Group >= 0 { // without an instance there is nothing to take back
			return StateMarked
		}
		return StateOut
	}
	switch {
	case n.Ready == cluster.StatusTrue && !w.isStarting(n):
		return StateReady
	case n.Ready == cluster.StatusTrue:
		return StateUpcoming
	case n.Group >= 0 && !w.Reached(n.Created.Add(w.Startup(n))) && !n.Unschedulable && !w.silent(n):
		return StateUpcoming
	}
	return StateOut
}

// silentFor is how long a kubelet may be silent, from when the node controller noticed,
// until its young node no longer counts as starting: a reboot takes less.
const silentFor = time.Minute

// silent tells a node whose kubelet is not heard any more from one that is starting:
// a kubelet that starts says "not Ready" itself, Unknown is said for it.
func (w *State) silent(n *Node) bool {
	if n.Ready != cluster.StatusUnknown || n.ReadySince.IsZero() {
		return false
	}
	until := n.ReadySince.Add(silentFor)
	w.WakeAt(until)
	return w.Reached(until)
}

func Taint(n *cluster.Node, key string) (cluster.Taint, bool) {
	for _, t := range n.Taints {
		if t.Key == key {
			return t, true
		}
	}
	return cluster.Taint{}, false
}

func ToBeDeleted(n *cluster.Node) bool { _, ok := Taint(n, cluster.TaintToBeDeleted); return ok }

func CordonedByUs(n *cluster.Node) bool {
	_, ok := n.Annotations[cluster.AnnotationCordoned]
	return ok
}

// Takes tells whether a group's machines let a class on by their shape. Classes that ask the same of one share the answer.
func (w *State) Takes(class, g int, shape *fit.NodeInfo) bool {
	rows, kind := &w.takes, int(w.Cache.Classes.shape[class])
	if kind >= len(*rows) {
		*rows = append(*rows, make([][]int8, kind+1-len(*rows))...)
	}
	if (*rows)[kind] == nil {
		(*rows)[kind] = make([]int8, len(w.Groups))
	}
	known := &(*rows)[kind][g]
	if *known == 0 {
		*known = -1
		if fit.Passes(&w.Snapshot.Classes[class], shape) {
			*known = 1
		}
	}
	return *known > 0
}

// OptedOut says which annotation keeps a node.
func OptedOut(n *cluster.Node) string {
	for _, key := range []string{cluster.AnnotationNoScaleDown, cluster.AnnotationKeep, cluster.AnnotationDoNotDisrupt} {
		if v, ok := n.Annotations[key]; ok && v != "false" {
			if _, err := time.ParseDuration(v); err == nil && key == cluster.AnnotationDoNotDisrupt {
				continue // for a time: see OptOutNow of scaledown
			}
			return "annotated " + key
		}
	}
	return ""
}

// NodeRefuses says why a node does not take one more pod of a class, as far as its own
// shape and room go; an empty rule means that it does.
func (w *State) NodeRefuses(i, class int) (rule, why string) {
	n := &w.Nodes[i]
	switch n.State {
	case StateOut:
		return w.whyOut(n)
	case StateMarked:
		return decision.RuleDraining, "node(s) are being drained by the agent"
	}
	if rule, words := fit.Refused(&w.Snapshot.Classes[class], &n.Shape); rule != "" {
		return rule, words
	}
	if rule, words := w.Dimensions.Insufficient(n.Room, w.Dimensions.Class(class)); rule != "" {
		return rule, words
	}
	if n.State == StateUpcoming {
		return "", "it could, once it has started"
	}
	return "", "it could"
}

// whyOut says why a node has room for no pod.
func (w *State) whyOut(n *Node) (rule, why string) {
	switch {
	case n.Deleting:
		return decision.RuleNotOurs, "node(s) are being deleted"
	case n.Facts.ToBeDeleted && !n.Facts.CordonedByUs:
		return decision.RuleNotOurs, "node(s) are marked for deletion by somebody else"
	case n.Ready != cluster.StatusTrue:
		return decision.RuleUnready, "node(s) were not ready"
	}
	return decision.RuleInstance, "node(s) whose instance is on its way out"
}

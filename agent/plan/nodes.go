package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// node is a Node and what the round knows about it.
type node struct {
	*cluster.Node
	f             *nodeFacts
	group         int // index into roundState.groups, -1: none of ours
	inst          *cluster.Instance
	room          []int64 // what is left, of the axes of roundState.space
	state         nodeState
	shape         fit.NodeInfo
	inUse         bool             // a pending pod or a moved pod counts on it
	onlyRelocated bool             // only moved pods do
	headroom      []headroomPieces // headroom that is kept free on it
	removing      bool             // it is on its way out, or would be: no destination
	original      *cluster.Node    // with the pods that releaseInterrupted took off it; nil: it is not interrupted
}

// nodeState says what a node is good for.
type nodeState int

const (
	stateOut      nodeState = iota // not Ready, or on its way out: no room for anybody
	stateReady                     // the scheduler may place pods now
	stateUpcoming                  // registered, and will be Ready soon
	stateMarked                    // carries our mark
)

func (w *roundState) indexNodes() {
	t := &w.e.instances
	w.id, w.byName = t.id, t.byName
	w.e.nodes = slices.Grow(w.e.nodes[:0], len(t.order))[:len(t.order)]
	w.nodes = w.e.nodes
	axes := w.space.Len()
	w.e.rooms = slices.Grow(w.e.rooms[:0], len(w.nodes)*axes)[:len(w.nodes)*axes]
	for k, i := range t.order {
		n := &w.nodes[k]
		*n = node{Node: w.s.Nodes[i], f: w.e.facts[i], group: int(t.group[k]), inst: t.inst[k], original: w.interruptedNodes[k], room: w.e.rooms[k*axes : (k+1)*axes : (k+1)*axes]}
		n.state = w.stateOf(n)
		n.shape = fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable}
		if n.state == stateUpcoming {
			w.space.Capacity(n.room, w.become(n))
			w.takeHeld(n.f, n.room)
		} else {
			copy(n.room, n.f.room)
		}
	}
}

// become makes a registered node that is not Ready yet look as it soon will: without
// the taints of its start and those that its template does not promise (a controller
// may take them off; when they are still there at Ready, the template learns them, and
// a machine that is bought in between would carry them too), with what the template promises where the kubelet has not
// reported it yet (a device plugin's resource comes last).
func (w *roundState) become(n *node) cluster.Resources {
	n.shape.Taints, n.shape.Unschedulable = fit.WithoutStartupTaints(n.Taints), false
	alloc := n.Allocatable
	if n.group < 0 || w.groups[n.group].Template.Unknown != "" {
		return alloc
	}
	t := &w.groups[n.group].Template
	n.shape.Taints = slices.DeleteFunc(slices.Clone(n.shape.Taints), func(x cluster.Taint) bool { return !slices.Contains(t.Taints, x) })
	labels := make(map[string]string, len(t.Labels)+len(n.Labels))
	for _, from := range []map[string]string{t.Labels, n.Labels} {
		for k, v := range from {
			labels[k] = v
		}
	}
	n.shape.Labels = labels
	if alloc.MilliCPU == 0 || alloc.Memory == 0 || alloc.Pods == 0 {
		return t.Allocatable
	}
	alloc.Extended = make(map[string]int64, len(t.Allocatable.Extended))
	for _, from := range []map[string]int64{t.Allocatable.Extended, n.Allocatable.Extended} {
		for k, v := range from {
			alloc.Extended[k] = max(alloc.Extended[k], v)
		}
	}
	return alloc
}

func (w *roundState) stateOf(n *node) nodeState {
	if n.inst != nil {
		switch n.inst.Phase {
		case cluster.PhaseStopped, cluster.PhaseDeleting, cluster.PhaseGone, cluster.PhaseFailed:
			return stateOut
		}
		if _, told := w.out.Deleted[n.inst.ID]; told {
			return stateOut
		}
	}
	if n.Deleting {
		return stateOut
	}
	if n.f.toBeDeleted {
		if n.f.cordonedByUs && n.group >= 0 { // without an instance there is nothing to take back
			return stateMarked
		}
		return stateOut
	}
	starting := n.Ready != cluster.StatusTrue || n.f.starting || w.lacks(n)
	if !starting {
		return stateReady
	}
	if n.group >= 0 && !w.reached(n.Created.Add(w.startup(n))) && !n.Unschedulable && !w.silent(n) {
		return stateUpcoming
	}
	if n.Ready != cluster.StatusTrue {
		return stateOut
	}
	return stateReady
}

// silentFor is how long a kubelet may be silent, from when the node controller noticed,
// until its young node no longer counts as starting: a reboot takes less.
const silentFor = time.Minute

// silent tells a node whose kubelet is not heard any more from one that is starting:
// a kubelet that starts says "not Ready" itself, Unknown is said for it.
func (w *roundState) silent(n *node) bool {
	if n.Ready != cluster.StatusUnknown || n.ReadySince.IsZero() {
		return false
	}
	until := n.ReadySince.Add(silentFor)
	w.wakeAt(until)
	return w.reached(until)
}

// startingTaint tells a taint that a young node loses by itself. Pressure and
// deletion taints are not of that kind.
func startingTaint(t cluster.Taint) bool {
	return fit.Startup(t) && t.Effect != "PreferNoSchedule" &&
		t.Key != cluster.TaintToBeDeleted && !strings.HasSuffix(t.Key, "-pressure") && t.Key != "node.cloudprovider.kubernetes.io/shutdown"
}

// lacks tells that the template promises a resource that the node does not report
// yet, as a GPU's device plugin does late (kubernetes/autoscaler#3164).
func (w *roundState) lacks(n *node) bool {
	if n.group < 0 || w.groups[n.group].Template.Unknown != "" {
		return false
	}
	for name, v := range w.groups[n.group].Template.Allocatable.Extended {
		if v > 0 && n.Allocatable.Extended[name] == 0 {
			return true
		}
	}
	return false
}

func taint(n *cluster.Node, key string) (cluster.Taint, bool) {
	for _, t := range n.Taints {
		if t.Key == key {
			return t, true
		}
	}
	return cluster.Taint{}, false
}

func toBeDeleted(n *cluster.Node) bool { _, ok := taint(n, cluster.TaintToBeDeleted); return ok }

func cordonedByUs(n *cluster.Node) bool {
	_, ok := n.Annotations[cluster.AnnotationCordoned]
	return ok
}

// takes tells whether a group's machines let a class on by their shape. Most classes
// ask nothing of a shape, and that is one answer for all of them.
func (w *roundState) takes(class, g int, shape *fit.NodeInfo) bool {
	c := &w.s.Classes[class]
	if len(c.NodeSelector)+len(c.Tolerations)+len(c.NotUnderstood) > 0 || c.Affinity != nil || c.NodeName != "" {
		return fit.Passes(c, shape)
	}
	known := &w.groups[g].anyone
	if *known == 0 {
		*known = -1
		if fit.Passes(c, shape) {
			*known = 1
		}
	}
	return *known > 0
}

// optedOut says which annotation keeps a node.
func optedOut(n *cluster.Node) string {
	for _, key := range []string{cluster.AnnotationNoScaleDown, cluster.AnnotationKeep, annotationDoNotDisrupt} {
		if v, ok := n.Annotations[key]; ok && v != "false" {
			if _, err := time.ParseDuration(v); err == nil && key == annotationDoNotDisrupt {
				continue // for a time: see optOutNow
			}
			return "annotated " + key
		}
	}
	return ""
}

const annotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"

// nodesWithRoom lists the nodes that could take a pod of some want: on a cluster that is full
// the packing then costs what is pending and not what exists.
func (w *roundState) nodesWithRoom() []int {
	if w.roomyNodes != nil {
		return w.roomyNodes
	}
	w.roomyNodes = []int{}
	var kinds []int32
	wanted := make([]bool, len(w.e.classes.representative))
	for i := range w.demands {
		if k := w.e.classes.equivalent[w.demands[i].class]; !wanted[k] {
			kinds, wanted[k] = append(kinds, k), true
		}
	}
	for i := range w.nodes {
		for _, k := range kinds {
			if class := int(w.e.classes.representative[k]); fit.Fits(w.nodes[i].room, w.space.Class(class)) && w.passes(class, i) {
				w.roomyNodes = append(w.roomyNodes, i)
				break
			}
		}
	}
	return w.roomyNodes
}

// nodeRefuses says why a node does not take one more pod of a class, as far as its own
// shape and room go; an empty rule means that it does.
func (w *roundState) nodeRefuses(i, class int) (rule, why string) {
	n := &w.nodes[i]
	switch n.state {
	case stateOut:
		return w.whyOut(n)
	case stateMarked:
		return decision.RuleDraining, "node(s) are being drained by the agent"
	}
	if rule, words := fit.Refused(&w.s.Classes[class], &n.shape); rule != "" {
		return rule, words
	}
	if rule, words := w.space.Insufficient(n.room, w.space.Class(class)); rule != "" {
		return rule, words
	}
	if n.state == stateUpcoming {
		return "", "it could, once it is Ready"
	}
	return "", "it could"
}

// whyOut says why a node has room for nobody.
func (w *roundState) whyOut(n *node) (rule, why string) {
	switch {
	case n.Deleting:
		return decision.RuleNotOurs, "node(s) are being deleted"
	case toBeDeleted(n.Node):
		return decision.RuleNotOurs, "node(s) are marked for deletion by somebody else"
	case n.Ready != cluster.StatusTrue:
		return decision.RuleUnready, "node(s) were not ready"
	}
	return decision.RuleInstance, "node(s) whose instance is on its way out"
}

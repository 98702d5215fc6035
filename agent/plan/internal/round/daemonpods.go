package round

import (
	"iter"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Daemon tells a pod that goes with its node: of a DaemonSet, or of another controller that says the same of it.
func Daemon(pod *cluster.Pod) bool {
	return pod.Owner != nil && pod.Owner.Kind == "DaemonSet" || pod.Wishes != nil && pod.Wishes.Daemon
}

// holdDaemons says of the pods that belong to one node, and that kube-scheduler has not placed there, what keeps them off it.
func (w *State) holdDaemons() {
	for _, i := range w.Unbound.nominated {
		if pod := &w.Snapshot.Pods[i]; Daemon(pod) && pod.Deleting.IsZero() && !pod.Gated && !pod.Mirror && pod.Judged() {
			w.HeldWhy("pod", string(pod.Key), decision.RuleOwnNode, w.ownNodeWords(pod))
		}
	}
}

// ownNodeWords says what keeps a pod off the node that it was made for. The room that is kept for it there is its own.
func (w *State) ownNodeWords(pod *cluster.Pod) string {
	class := &w.Snapshot.Classes[pod.Class]
	name := MeantFor(class)
	k, ok := w.ByName[name]
	switch {
	case name == "":
		return "it belongs to one node and does not name it: kubectl describe pod has the scheduler's reason"
	case !ok:
		return "there is no node " + string(name) + ", for which it was made"
	}
	n := &w.Nodes[k]
	if _, words := fit.Refused(class, &n.Shape); words != "" {
		return "node " + string(name) + ", for which it was made, does not take it: " + words
	}
	room := slices.Clone(n.Room)
	for d := range w.Snapshot.DaemonSets {
		if ds := &w.Snapshot.DaemonSets[d]; pod.Owner != nil && ds.UID == pod.Owner.UID && slices.Contains(n.Shape.Daemons, ds.Class) {
			binpack.Sub(room, w.Shares().Vector(n.Group, d, w.Dimensions), -1)
		}
	}
	if _, words := w.Dimensions.Insufficient(room, w.Dimensions.Class(pod.Class)); words != "" {
		return "node " + string(name) + ", for which it was made, has no room for it: " + words
	}
	return "node " + string(name) + ", for which it was made, has room for it: kubectl describe pod has the scheduler's reason"
}

// daemonPod is a pod of a DaemonSet as package daemons reads it. A pod without a controller is of none, whatever it says of itself.
func daemonPod(pod *cluster.Pod) (p DaemonPod, ok bool) {
	if pod.Finished || pod.Owner == nil || !Daemon(pod) {
		return p, false
	}
	return DaemonPod{Owner: pod.Owner.UID, Class: int32(pod.Class)}, true
}

// Shares returns the room that DaemonSets take of the machines of each group.
func (w *State) Shares() *DaemonShares {
	if w.shares == nil {
		w.matchInstances()
		ids := make([]cluster.GroupID, len(w.Groups))
		for g := range w.Groups {
			ids[g] = w.Groups[g].ID
		}
		w.shares = collectDaemons(w.Snapshot, ids, w.Memory.DaemonPods, w.daemonPods)
	}
	return w.shares
}

// daemonPods yields the pods of DaemonSets, those that wait for their node included, each with
// the group of its node. Before Index it costs all pods, later the DaemonSets' alone.
func (w *State) daemonPods(yield func(int, DaemonPod) bool) {
	t, indexed := &w.Cache.instances, w.Nodes != nil
	for k, i := range t.order {
		if indexed {
			for _, p := range w.Nodes[k].Facts.daemons {
				yield(int(t.group[k]), p)
			}
			continue
		}
		for _, pod := range w.Snapshot.Nodes[i].Pods {
			if p, ok := daemonPod(&pod); ok {
				yield(int(t.group[k]), p)
			}
		}
	}
	for i := range w.Snapshot.Pods {
		if p, ok := daemonPod(&w.Snapshot.Pods[i]); ok {
			g := -1
			if k, ok := t.byName[MeantFor(&w.Snapshot.Classes[p.Class])]; ok {
				g = int(t.group[k])
			}
			yield(g, p)
		}
	}
}

// daemonsOn yields the DaemonSets that put a pod on a node of this shape, by their index.
func (w *State) daemonsOn(shape *fit.NodeInfo) iter.Seq[int] {
	return func(yield func(int) bool) {
		for d := range w.Snapshot.DaemonSets {
			if fit.DaemonRunsOn(&w.Snapshot.Classes[w.Snapshot.DaemonSets[d].Class], shape) && !yield(d) {
				return
			}
		}
	}
}

// reserveDaemons takes the room of the DaemonSet pods that a node does not have yet, and counts
// them as there. It costs nodes times DaemonSets.
func (w *State) reserveDaemons() {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		n.Shape.Daemons = nil
		for d := range w.Snapshot.DaemonSets {
			ds := &w.Snapshot.DaemonSets[d]
			here := slices.ContainsFunc(n.Facts.daemons, func(p DaemonPod) bool { return p.Owner == ds.UID })
			if !here && fit.DaemonRunsOn(&w.Snapshot.Classes[ds.Class], &n.Shape) {
				binpack.Sub(n.Room, w.Shares().Vector(n.Group, d, w.Dimensions), 1)
				n.Shape.Daemons = append(n.Shape.Daemons, ds.Class)
			}
		}
	}
}

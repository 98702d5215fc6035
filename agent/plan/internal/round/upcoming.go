package round

import (
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// CountOrphanedUpcoming counts the machines that are upcoming and of which the memory does not say which pods they were bought for.
func (w *State) CountOrphanedUpcoming() {
	joined := make([]int, len(w.Groups)) // machines that are Nodes and that kube-scheduler cannot use yet
	for k := range w.Nodes {
		if n := &w.Nodes[k]; n.State == StateUpcoming && w.unusable(n) {
			joined[n.Group]++
		}
	}
	for i := range w.Groups {
		g := &w.Groups[i]
		n := max(g.Upcoming-g.replaced, 0) + joined[i]
		if n == 0 {
			continue
		}
		if was, ok := w.Memory.OrphanedUpcoming[g.ID]; ok {
			n = min(n, was)
		} else if _, ours := w.Next.Resized[g.ID]; ours || w.hasReservation(g.ID) {
			continue
		}
		Set(&w.Next.OrphanedUpcoming, g.ID, n)
	}
}

// hasReservation tells whether anything was reserved to a pod on a group's machines.
func (w *State) hasReservation(id cluster.GroupID) bool {
	return slices.ContainsFunc(w.Memory.Reservations, func(p decision.Reservation) bool { return p.Group == id })
}

// JustReady lists the nodes that kube-scheduler may not have looked at since it could use them.
func (w *State) JustReady() (out []int) {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if since := w.UsableSince(n); n.State == StateReady && !w.Reached(since.Add(SchedulerRetry)) {
			out = append(out, i)
		}
	}
	return out
}

// SchedulerRetry is how long kube-scheduler may take to look again at a pod that had no
// place, once a node has become Ready: it backs off for 10 s at most
// (podMaxBackoffSeconds).
const SchedulerRetry = 10 * time.Second

// NewNodes lists the nodes that are upcoming or have just become Ready.
func (w *State) NewNodes() []int {
	nodes := w.JustReady()
	for i := range w.Nodes {
		if w.Nodes[i].State == StateUpcoming {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// ReservedTo is the group that an earlier round counted a pod on; empty: none.
func (w *State) ReservedTo(key cluster.PodKey) cluster.GroupID {
	if w.reservedGroup == nil {
		w.reservedGroup = w.Memory.Reservations.ByPod()
	}
	return w.reservedGroup[key]
}

// MissingPodsKey is the key of reservations to pods that a controller has still to make.
func MissingPodsKey(g cluster.GroupID, owner cluster.UID) string {
	return string(g) + " " + string(owner)
}

// MissingPodsOwner is the controller of such a key. A group's name may have blanks.
func MissingPodsOwner(key string) cluster.UID {
	return cluster.UID(key[strings.LastIndexByte(key, ' ')+1:])
}

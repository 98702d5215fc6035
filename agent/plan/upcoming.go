package plan

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// countOrphanedUpcoming counts the machines that are upcoming and that nobody remembers having asked for.
func (w *roundState) countOrphanedUpcoming() {
	var joined []int // by group: machines that are Nodes and not Ready yet
	for k := range w.nodes {
		if n := &w.nodes[k]; n.group >= 0 && n.state == stateUpcoming {
			if joined == nil {
				joined = make([]int, len(w.groups))
			}
			joined[n.group]++
		}
	}
	for i := range w.groups {
		g := &w.groups[i]
		n := max(g.upcoming-g.replaced, 0)
		if joined != nil {
			n += joined[i]
		}
		if n == 0 {
			continue
		}
		if was, ok := w.in.OrphanedUpcoming[g.ID]; ok {
			n = min(n, was)
		} else if _, ours := w.out.Resized[g.ID]; ours || w.hasReservation(g.ID) {
			continue
		}
		set(&w.out.OrphanedUpcoming, g.ID, n)
	}
}

// hasReservation tells whether anything was reserved to a pod on a group's machines.
func (w *roundState) hasReservation(id cluster.GroupID) bool {
	return slices.ContainsFunc(w.in.Reservations, func(p decision.Reservation) bool { return p.Group == id })
}

// justReady lists the nodes that kube-scheduler may not have looked at since they became
// Ready.
func (w *roundState) justReady() (out []int) {
	for i := range w.nodes {
		if n := &w.nodes[i]; n.state == stateReady && !n.ReadySince.IsZero() && !w.reached(n.ReadySince.Add(schedulerRetry)) {
			out = append(out, i)
		}
	}
	return out
}

// schedulerRetry is how long kube-scheduler may take to look again at a pod that had no
// place, once a node has become Ready: it backs off for 10 s at most
// (podMaxBackoffSeconds).
const schedulerRetry = 10 * time.Second

// hasReservations tells that an earlier round counted on machines for pods that still want room,
// or that are still to be made, and that these machines are upcoming or have just come. Any
// other reservation says nothing about this round, and the next one does not know it any more:
// both have to decide alike. Found by fuzzing.
func (w *roundState) hasReservations() bool {
	if len(w.in.Reservations)+len(w.in.ReservedMissing) == 0 {
		return false
	}
	if w.reservationsStand == nil {
		any := w.anyReservationStands()
		w.reservationsStand = &any
	}
	return *w.reservationsStand
}

// anyReservationStands works reserved out.
func (w *roundState) anyReservationStands() bool {
	arriving := w.upcomingGroups()
	if len(arriving) == 0 {
		return false
	}
	for i := range w.demands {
		k := &w.demands[i]
		for _, id := range arriving {
			if w.in.ReservedMissing[missingPodsKey(id, k.owner)] > 0 {
				return true
			}
		}
		for _, key := range k.keys {
			if slices.Contains(arriving, w.reservedTo(key)) {
				return true
			}
		}
	}
	return false
}

// upcomingGroups are the groups of which a machine is upcoming, or has just become Ready.
func (w *roundState) upcomingGroups() (out []cluster.GroupID) {
	nodes := w.justReady()
	for i := range w.nodes {
		if w.nodes[i].state == stateUpcoming {
			nodes = append(nodes, i)
		}
	}
	for g := range w.groups {
		if w.groups[g].upcoming+w.groups[g].grow > 0 || slices.ContainsFunc(nodes, func(n int) bool { return w.nodes[n].group == g }) {
			out = append(out, w.groups[g].ID)
		}
	}
	return out
}

// reservedTo is the group that an earlier round counted a pod on; empty: none.
func (w *roundState) reservedTo(key cluster.PodKey) cluster.GroupID {
	if w.reservedGroup == nil {
		if len(w.in.Reservations) == 0 {
			return ""
		}
		w.reservedGroup = w.in.Reservations.ByPod()
	}
	return w.reservedGroup[key]
}

// missingPodsKey is the key of reservations to pods that a controller has still to make.
func missingPodsKey(g cluster.GroupID, owner cluster.UID) string {
	return string(g) + " " + string(owner)
}

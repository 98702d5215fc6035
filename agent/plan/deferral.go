package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Where pods are constrained to each other there are many legal ways to place them, and what is
// left over depends on the way. Machines are bought for one of them; who then asks anew
// what fits on these machines, without knowing the way, may find a worse one and buy
// again. Reservations remember the way while machines are upcoming. In two cases nothing does,
// and constrained pods wait: after a restart without memory, until what is upcoming is there; and
// when machines have just become Ready, until kube-scheduler has had its turn.

// deferDemands lets pods wait where an answer that would buy for them is not to be trusted, and
// tells whether any has to: after a restart all of them, since what constrained pods do not take
// is there for others; and with the constrained ones those that had reserved a machine, which
// another way of placing the constrained ones could take from them.
func (w *upPlanner) deferDemands() (any bool) {
	forgot, ready := len(w.out.OrphanedUpcoming) > 0, w.justReady()
	if !forgot && len(ready) == 0 {
		return false
	}
	var judged []cluster.Moment
	if !forgot {
		judged = w.lastJudged()
	}
	for i := range w.demands {
		k := &w.demands[i]
		switch {
		case !k.buys:
		case forgot:
			k.deferral = "machines are coming and it is not remembered for whom (a restart, or somebody else asked for them): while pods wait that depend on where others are, nothing is bought before these machines are there"
			k.buys, any = false, true
		case k.headroom == "" && w.topology.constrained[k.class]:
			any = w.deferDemand(k, ready, judged) || any
		}
	}
	for i := 0; any && !forgot && i < len(w.demands); i++ {
		k := &w.demands[i]
		if k.buys && k.headroom == "" && slices.ContainsFunc(k.keys, func(key cluster.PodKey) bool { return w.reservedTo(key) != "" }) {
			w.deferDemand(k, ready, judged)
		}
	}
	return any
}

// deferDemand lets the pods of a demand wait for the scheduler's turn, where they have to.
func (w *upPlanner) deferDemand(k *demand, ready []int, judged []cluster.Moment) bool {
	n, due := w.deferredUntil(k.class, ready, judged)
	if n < 0 {
		return false
	}
	w.wakeAt(due)
	k.deferral = fmt.Sprintf("node %s has just become Ready: the scheduler's turn is until %s", w.nodes[n].Name, stamp(due))
	k.buys = false
	return true
}

// deferredUntil finds the node that a class waits for: it would take a pod as far as its labels,
// its taints and its room go, and none of the class's pods has been judged since it is
// Ready. The last of them counts; -1: there is none.
func (w *upPlanner) deferredUntil(class int, ready []int, judged []cluster.Moment) (node int, due time.Time) {
	node = -1
	for _, i := range ready {
		n := &w.nodes[i]
		if !n.ReadySince.After(judged[class].Time()) || fit.MaxFit(n.room, w.space.Class(class)) == 0 || !fit.Passes(&w.s.Classes[class], &n.shape) {
			continue
		}
		if at := n.ReadySince.Add(schedulerRetry); node < 0 || at.After(due) || at.Equal(due) && n.Name < w.nodes[node].Name {
			node, due = i, at
		}
	}
	return node, due
}

// lastJudged is by class when kube-scheduler last found no place for one of its pods.
func (w *upPlanner) lastJudged() []cluster.Moment {
	last := make([]cluster.Moment, len(w.s.Classes))
	for i := range w.s.Pods {
		if pod := &w.s.Pods[i]; pod.Node == "" {
			last[pod.Class] = max(last[pod.Class], pod.Unschedulable)
		}
	}
	return last
}

// keepDeferredReservations lets pods that wait keep what they had reserved.
func (w *upPlanner) keepDeferredReservations(k *demand) {
	for _, p := range w.in.Reservations {
		var kept []cluster.PodKey
		for _, key := range k.keys {
			if w.reservedTo(key) == p.Group {
				kept = append(kept, key)
			}
		}
		if len(kept) > 0 && !slices.ContainsFunc(w.out.Reservations, func(o decision.Reservation) bool { return o.Group == p.Group && slices.Contains(o.Pods, kept[0]) }) {
			w.out.Reservations = append(w.out.Reservations, decision.Reservation{Group: p.Group, Pods: kept})
		}
	}
}

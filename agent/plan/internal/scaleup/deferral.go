package scaleup

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Where pods are constrained to each other there are many legal ways to place them, and what is
// left over depends on the way. Machines are bought for one of them; who then asks anew
// what fits on these machines, without knowing the way, may find a worse one and buy
// again. Reservations remember the way while machines are upcoming. In two cases nothing does,
// and constrained pods wait: after a restart without memory, until what is upcoming is there; and
// when machines have just become Ready, until kube-scheduler has had its turn.

// deferDemands lets pods wait where a solution that would buy for them is not to be trusted, and
// tells whether any has to: after a restart all of them, since what constrained pods do not take
// is there for others; and with the constrained ones those that had reserved a machine, which
// another way of placing the constrained ones could take from them.
func (w *Planner) deferDemands() (any bool) {
	forgot, ready := len(w.Next.OrphanedUpcoming) > 0, w.JustReady()
	if !forgot && len(ready) == 0 {
		return false
	}
	var judged []cluster.Moment
	if !forgot {
		judged = w.lastJudged()
	}
	for i := range w.Demands {
		k := &w.Demands[i]
		switch {
		case !k.Buys:
		case forgot:
			k.Deferral = "machines are coming, and the agent does not know for which pods (it was restarted, or somebody else asked for them): because pending pods depend on where other pods run, it buys no machine before these have become Ready"
			k.Buys, any = false, true
		case k.Headroom == "" && w.buyer.Constrained(k.Class):
			any = w.deferDemand(k, ready, judged) || any
		}
	}
	for i := 0; any && !forgot && i < len(w.Demands); i++ {
		k := &w.Demands[i]
		if k.Buys && k.Headroom == "" && slices.ContainsFunc(k.Keys, func(key cluster.PodKey) bool { return w.ReservedTo(key) != "" }) {
			w.deferDemand(k, ready, judged)
		}
	}
	return any
}

// deferDemand lets the pods of a demand wait for the scheduler's turn, where they have to.
func (w *Planner) deferDemand(k *round.Demand, ready []int, judged []cluster.Moment) bool {
	n, due := w.deferredUntil(k.Class, ready, judged)
	if n < 0 {
		return false
	}
	w.WakeAt(due)
	k.Deferral = fmt.Sprintf("node %s has just become usable: the agent buys no machine for the pod before kube-scheduler has tried it there, at the latest until %s", w.Nodes[n].Name, round.Stamp(due))
	k.Buys = false
	return true
}

// deferredUntil finds the node that a class waits for: it would take a pod as far as its labels,
// its taints and its room go, and none of the class's pods has been judged since it is
// Ready. The last of them counts; -1: there is none.
func (w *Planner) deferredUntil(class int, ready []int, judged []cluster.Moment) (node int, due time.Time) {
	node = -1
	for _, i := range ready {
		n := &w.Nodes[i]
		if !w.UsableSince(n).After(judged[class].Time()) || binpack.MaxFit(n.Room, w.Dimensions.Class(class)) == 0 || !fit.Passes(&w.Snapshot.Classes[class], &n.Shape) {
			continue
		}
		if at := w.UsableSince(n).Add(round.SchedulerRetry); node < 0 || at.After(due) || at.Equal(due) && n.Name < w.Nodes[node].Name {
			node, due = i, at
		}
	}
	return node, due
}

// lastJudged is by class when kube-scheduler last found no place for one of its pods.
func (w *Planner) lastJudged() []cluster.Moment {
	last := make([]cluster.Moment, len(w.Snapshot.Classes))
	for i := range w.Snapshot.Pods {
		if pod := &w.Snapshot.Pods[i]; pod.Node == "" {
			last[pod.Class] = max(last[pod.Class], pod.Unschedulable)
		}
	}
	return last
}

// keepDeferredReservations lets pods that wait keep what they had reserved.
func (w *Planner) keepDeferredReservations(k *round.Demand) {
	kept := map[cluster.GroupID][]cluster.PodKey{}
	for _, key := range k.Keys {
		if g := w.ReservedTo(key); g != "" {
			kept[g] = append(kept[g], key)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(kept)) {
		w.Next.Reservations = append(w.Next.Reservations, decision.Reservation{Group: g, Pods: kept[g]})
	}
}

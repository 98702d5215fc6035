package scaleup

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// overtakers are pods that were made after the order of a burst and run on machines of it.
type overtakers struct {
	joined bool // there is such a machine
	pods   int
	newest time.Time
}

// overtaken are the groups that waiting pods were counted on and of which a machine of the burst is a Node, with the later
// pods that run on it; counted are the classes of those waiting pods. Where machines come fast,
// kube-scheduler binds new pods at once and looks again at those that the machines were ordered
// for only once it has backed off. Then these lack the room that the new pods lacked before, also
// while kube-scheduler has not bound all of the new pods yet, and no machine is missing. nil: a
// machine of a group that pods count on is missing or may be, so that all that lack room because
// of it are bought for at once.
func overtaken(w *round.State, counted map[int]bool) map[cluster.GroupID]*overtakers {
	groups := make(map[cluster.GroupID]*overtakers)
	for _, r := range w.Memory.Reservations {
		groups[r.Group] = new(overtakers)
	}
	lost := make([]int, len(w.Groups))
	since := w.Memory.BurstOrdered.Truncate(time.Second).Add(-round.SchedulerRetry)
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Group < 0 || n.ReadySince.Before(since) { // it is older than the burst
			continue
		}
		if n.State != round.StateReady && n.State != round.StateUpcoming {
			lost[n.Group]++
		}
		if o := groups[w.Groups[n.Group].ID]; o != nil {
			o.joined = true
			o.add(n.Pods, w.Memory.BurstOrdered, counted)
		}
	}
	for id, o := range groups {
		g, known := w.ByID[id]
		if !known || !complete(w, g, lost[g]) {
			return nil
		}
		if !o.joined {
			delete(groups, id)
		}
	}
	return groups
}

// complete tells whether all machines that were last ordered of a group are there or coming.
func complete(w *round.State, g, lost int) bool {
	ordered, ok := w.Next.Resized[w.Groups[g].ID]
	return ok && w.Groups[g].Nodes-lost+w.Groups[g].Upcoming >= ordered.To
}

// add counts the pods that were made after an order. The API's stamps have whole seconds. A pod with the stamp of the
// order's second was made after the order, unless the order counted on pods of its class.
func (o *overtakers) add(pods []cluster.Pod, order time.Time, counted map[int]bool) {
	for i := range pods {
		p := &pods[i]
		made := p.Created.Time()
		before := made.Before(order.Truncate(time.Second)) || !made.After(order) && counted[p.Class]
		if !before && !p.Mirror && !round.Daemon(p) {
			o.pods++
			o.newest = round.Later(o.newest, made)
		}
	}
}

package burst

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

// overtaken are the groups on whose machines such pods run, or will: kube-scheduler has not bound
// all that it puts there while the first of them are Nodes. Where machines come fast,
// kube-scheduler binds new pods at once and looks again at those that the machines were ordered
// for only once it has backed off. Then these lack the room that the new pods lacked before,
// and no machine is missing. nil: a machine of a group that pods count on is missing or may be,
// so that all that lack room because of it are bought for at once.
func overtaken(w *round.State) map[cluster.GroupID]*overtakers {
	groups := make(map[cluster.GroupID]*overtakers)
	for _, r := range w.Memory.Reservations {
		groups[r.Group] = new(overtakers)
	}
	counted := countedClasses(w)
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

// countedClasses are those of pods that wait for a machine that an order counted them on.
func countedClasses(w *round.State) map[int]bool {
	classes := map[int]bool{}
	for _, x := range w.Unbound.Waiting {
		if pod := &w.Snapshot.Pods[x.Pod]; w.ReservedTo(pod.Key) != "" {
			classes[pod.Class] = true
		}
	}
	return classes
}

// add counts the pods that were made after order. The API's stamps have whole seconds: of the
// pods of its second, those of a class that it counted on were made before it.
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

package round

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Demand is one class of pods that want room.
type Demand struct {
	Class        int
	Keys         []cluster.PodKey // sorted
	Expected     int              // pods that do not exist yet
	Owner        cluster.UID      // the controller that makes them, where any has pods still to make or was reserved room for such
	Headroom     string           // the headroom that these pieces are of; empty: they are pods
	Deferral     string           // why nothing is bought for them in this round though they want it; buys is false then
	DeferralRule string           // the rule of Deferral; empty: U26
	Buys         bool             // whether a machine may be bought for them; else only room that is there is looked for
}

func (k *Demand) Count() int { return len(k.Keys) + k.Expected }

// Name is that of the first pod, or of who stands for pods that do not exist.
func (k *Demand) Name() string {
	if len(k.Keys) == 0 {
		return string(k.Owner)
	}
	return string(k.Keys[0])
}

// classDemand are the pods of one class: those that buy, and those that only keep the room
// that they may need.
type classDemand struct {
	buys, waits int32 // one more than the index into State.Demands; 0: there are none
	verdict     bool  // one of them is Unschedulable
	count       int   // pods
	// unjudged are the pods that kube-scheduler should have judged by now, first is the first of them by name.
	unjudged int
	first    *cluster.Pod
}

// unboundPods are the pods without a node as the Snapshot lists them, by their index there. A
// burst is tens of thousands of them, so they are walked through as seldom as can be.
type unboundPods struct {
	Waiting   []UnboundPod  // those that want room
	nominated []int32       // those that wait for no machine; some for the node that preemption makes room on
	Sorted    bool          // Waiting is in the order of names
	byClass   []classDemand // by class
}

// UnboundPod is a pod that waits, and its class.
type UnboundPod struct{ Pod, Class int32 }

// indexUnbound reads the pods without a node.
func (w *State) indexUnbound() {
	w.Unbound = unboundPods{Waiting: make([]UnboundPod, 0, len(w.Snapshot.Pods)), byClass: make([]classDemand, len(w.Snapshot.Classes))}
	for i := range w.Snapshot.Pods {
		pod := &w.Snapshot.Pods[i]
		switch {
		case IsPending(pod):
			w.Unbound.Waiting = append(w.Unbound.Waiting, UnboundPod{int32(i), int32(pod.Class)})
			b := &w.Unbound.byClass[pod.Class]
			b.verdict = b.verdict || !pod.Unschedulable.IsZero()
			b.count++
		case pod.Node == "" && !pod.Finished:
			w.Unbound.nominated = append(w.Unbound.nominated, int32(i))
		}
	}
	w.Unbound.Sorted = slices.IsSortedFunc(w.Unbound.Waiting, func(a, b UnboundPod) int {
		return cmp.Compare(w.Snapshot.Pods[a.Pod].Key, w.Snapshot.Pods[b.Pod].Key)
	})
}

// IsPending tells a pod that waits for a place and that a machine could help.
func IsPending(pod *cluster.Pod) bool { return pod.Nominated == "" && waits(pod) }

// waits tells a pod that waits for a place, or for the one that it is nominated to.
func waits(pod *cluster.Pod) bool {
	return pod.Node == "" && pod.Deleting.IsZero() && !pod.Finished && !pod.Gated && !pod.Mirror && !Daemon(pod)
}

// Gather collects the pending pods by class: those that the scheduler called
// Unschedulable, their siblings that it has not judged yet and those that a
// controller has still to make, so that a burst is one decision. Pods that it has
// not judged and that have no such sibling only keep the room that they may need.
func (w *State) Gather() {
	for _, x := range w.Unbound.Waiting {
		w.gatherPod(&w.Unbound.byClass[x.Class], &w.Snapshot.Pods[x.Pod])
	}
	w.holdNominated()
	w.holdDaemons()
	w.holdUnjudged()
	w.gatherMissing(w.Unbound.byClass)
	if !w.Unbound.Sorted {
		for i := range w.Demands {
			slices.Sort(w.Demands[i].Keys)
		}
	}
	w.demandHeadroom()
	w.sortDemands()
}

// sortDemands brings the demands in the order of priority, size and name.
func (w *State) sortDemands() {
	order := make([]*Demand, len(w.Demands)) // a Demand is large: each is moved once
	for i := range w.Demands {
		order[i] = &w.Demands[i]
	}
	rows, rank := w.Snapshot.Classes, w.Cache.Classes.Rank
	slices.SortFunc(order, func(a, b *Demand) int {
		return cmp.Or(cmp.Compare(rows[b.Class].Priority, rows[a.Class].Priority), cmp.Compare(rank[a.Class], rank[b.Class]), cmp.Compare(a.Name(), b.Name()))
	})
	sorted := make([]Demand, 0, len(order))
	for _, k := range order {
		sorted = append(sorted, *k)
	}
	w.Demands = sorted
}

// gatherMissing adds the pods that controllers with an Unschedulable pod have still to
// make; of these pods the youngest, and of one second the first by name, says which class they
// are of: an admission webhook may have changed what it writes. So no two classes are of the
// same controller. Found by drawing worlds.
func (w *State) gatherMissing(by []classDemand) {
	if len(w.Snapshot.Controllers)+len(w.Memory.ReservedMissing) == 0 {
		return
	}
	stuck := make(map[cluster.UID]*cluster.Pod)
	for _, x := range w.Unbound.Waiting {
		if pod := &w.Snapshot.Pods[x.Pod]; pod.Owner != nil && !pod.Unschedulable.IsZero() {
			if best := stuck[pod.Owner.UID]; best == nil || cmp.Or(cmp.Compare(pod.Created, best.Created), cmp.Compare(best.Key, pod.Key)) > 0 {
				stuck[pod.Owner.UID] = pod
			}
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(stuck)) {
		if at := by[stuck[owner].Class].buys; at > 0 && w.Demands[at-1].Owner == "" {
			w.Demands[at-1].Owner = owner
		}
	}
	for i := range w.Snapshot.Controllers {
		c := &w.Snapshot.Controllers[i]
		if pod := stuck[c.Owner.UID]; pod != nil && by[pod.Class].buys > 0 {
			w.Demands[by[pod.Class].buys-1].Expected += c.Missing
		}
	}
}

// gatherPod adds one pod to its class.
func (w *State) gatherPod(b *classDemand, pod *cluster.Pod) {
	buys := b.verdict
	class := &w.Snapshot.Classes[pod.Class]
	if w.Expendable(pod) {
		w.Held("pod", string(pod.Key), decision.RuleExpendable, "priority %d is below the cutoff %d", class.Priority, w.Policy.ExpendablePodsCutoff)
		return
	}
	// A pod's own delay may only lengthen the general one, as in Cluster Autoscaler.
	delay := w.Policy.NewPodDelay
	if pod.Wishes != nil {
		delay = max(delay, pod.Wishes.ScaleUpDelay)
	}
	if delay > 0 && !w.Reached(pod.Created.Add(delay)) {
		w.WakeAt(pod.Created.Add(delay))
		w.Held("pod", string(pod.Key), decision.RuleNewPod, "younger than %s", delay)
		buys = false
	}
	if pod.Unschedulable.IsZero() {
		if len(class.NotUnderstood) > 0 {
			w.Unjudged = true
		} else if !b.verdict && w.overdue(pod) {
			if b.unjudged++; b.first == nil || pod.Key < b.first.Key {
				b.first = pod
			}
		}
	}
	to := &b.waits
	if buys {
		to = &b.buys
	}
	if *to == 0 {
		w.Demands = append(w.Demands, Demand{Class: pod.Class, Buys: buys, Keys: make([]cluster.PodKey, 0, b.count)})
		*to = int32(len(w.Demands))
	}
	k := &w.Demands[*to-1]
	k.Keys = append(k.Keys, pod.Key)
}

// judgedWithin is how long kube-scheduler may take to judge a new pod before the plan says that it has not. It judges hundreds
// in a second, and pods in the order of their priorities.
const judgedWithin = time.Minute

// overdue tells a pod that kube-scheduler has failed to place with an error, or has not judged in time.
func (w *State) overdue(pod *cluster.Pod) bool {
	w.WakeAt(pod.Created.Add(judgedWithin))
	return pod.Judged() || w.Reached(pod.Created.Add(judgedWithin))
}

// holdUnjudged says of each class how many pods kube-scheduler should have judged, and the error of the first of them: a pod
// whose volume is bound to a Node that is gone is never called unschedulable.
func (w *State) holdUnjudged() {
	for i := range w.Demands {
		b := &w.Unbound.byClass[w.Demands[i].Class]
		if b.unjudged == 0 || w.Demands[i].Buys {
			continue
		}
		why := "kube-scheduler has not judged it since it was made: does it run?"
		if text := b.first.Troubles().Scheduler; text != "" {
			why = "kube-scheduler could not place it: " + text
		}
		w.HeldPods(&Demand{Class: b.first.Class, Keys: []cluster.PodKey{b.first.Key}}, b.unjudged, decision.RuleUnjudged, why)
	}
}

// HoldUnknown takes out the pods that fit cannot judge and those that no node can take, and holds them.
func (w *State) HoldUnknown() {
	w.Demands = slices.DeleteFunc(w.Demands, func(k Demand) bool {
		c := &w.Snapshot.Classes[k.Class]
		if len(c.NotUnderstood) == 0 {
			why := Nowhere(c)
			if why != "" && k.Buys { // a claim may be seen a moment after its pod
				w.holdDemand(&k, decision.RuleVolume, why)
			}
			return why != ""
		}
		rule := decision.RuleNotUnderstood
		if c.TooLarge {
			rule = decision.RuleTooLarge
		}
		_, words := fit.Refused(c, &fit.NodeInfo{})
		w.holdDemand(&k, rule, words)
		return true
	})
}

// Nowhere says why no node and no machine takes a class, for one of its claims; empty: none of them says so.
func Nowhere(c *cluster.PodClass) string {
	for i := range c.Volumes {
		if why := c.Volumes[i].Refused; why != "" {
			return why
		}
	}
	for i := range c.Claims {
		if why := c.Claims[i].Refused; why != "" {
			return why
		}
	}
	return ""
}

func (w *State) holdDemand(k *Demand, rule, why string) {
	if k.Headroom != "" {
		w.Held("headroom", k.Headroom, rule, "%s", why)
		return
	}
	w.HeldPods(k, len(k.Keys), rule, why)
}

func (w *State) HeldPods(k *Demand, count int, rule, why string) {
	w.Plan.Held = append(w.Plan.Held, decision.Held{Kind: "pod", Name: k.Name(), Count: count, Rule: rule, Why: why, Class: k.Class})
}

func Pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

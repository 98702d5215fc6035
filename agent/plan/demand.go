package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// demand is one class of pods that want room.
type demand struct {
	class    int
	keys     []cluster.PodKey // sorted
	expected int              // pods that do not exist yet
	owner    cluster.UID      // the controller that makes them, where any has pods still to make or was reserved room for such
	headroom string           // the headroom that these pieces are of; empty: they are pods
	deferral string           // why nothing is bought for them in this round though they want it; buys is false then
	domain   int              // where they go (topology.groupDomain); 0: anywhere
	buys     bool             // whether a machine may be bought for them; else only room that is there is looked for
	perPod   bool             // the packer cannot say what these pods ask of others: one by one
}

func (k *demand) count() int { return len(k.keys) + k.expected }

// name is that of the first pod, or of who stands for pods that do not exist.
func (k *demand) name() string {
	if len(k.keys) == 0 {
		return string(k.owner)
	}
	return string(k.keys[0])
}

// classDemand are the pods of one class: those that buy, and those that only keep the room
// that they may need.
type classDemand struct {
	buys, waits int32            // one more than the index into roundState.demands; 0: there are none
	verdict     bool             // one of them is Unschedulable
	plain       bool             // whoever else has no wishes buys, too, and that is all
	count       int              // pods
	keys        []cluster.PodKey // room for the names of as many; the first want has it
}

// unboundPods are the pods without a node as the Snapshot lists them, by their index there. A
// burst is tens of thousands of them, so they are walked through as seldom as can be.
type unboundPods struct {
	waiting   []unboundPod  // those that want room
	nominated []int32       // those that preemption makes room for
	sorted    bool          // at is in the order of names
	byClass   []classDemand // by class
	classes   int           // of at
}

// unboundPod is a pod that waits, and its class.
type unboundPod struct{ pod, class int32 }

// indexUnbound reads the pods without a node.
func (w *roundState) indexUnbound() {
	w.unbound = unboundPods{sorted: true, byClass: make([]classDemand, len(w.s.Classes))}
	for i := range w.s.Pods {
		pod := &w.s.Pods[i]
		switch {
		case isPending(pod):
			if w.unbound.waiting == nil {
				w.unbound.waiting = make([]unboundPod, 0, len(w.s.Pods)-i)
			}
			w.unbound.waiting = append(w.unbound.waiting, unboundPod{int32(i), int32(pod.Class)})
			b := &w.unbound.byClass[pod.Class]
			b.verdict = b.verdict || !pod.Unschedulable.IsZero()
			if b.count++; b.count == 1 {
				w.unbound.classes++
			}
		case pod.Nominated != "" && pod.Node == "" && !pod.Finished:
			w.unbound.nominated = append(w.unbound.nominated, int32(i))
		}
	}
}

// isPending tells a pod that waits for a place and that a machine could help.
func isPending(pod *cluster.Pod) bool {
	return pod.Node == "" && pod.Nominated == "" && pod.Deleting.IsZero() && !pod.Finished && !pod.Gated && !pod.Mirror && !daemon(pod)
}

// gather collects the pending pods by class: those that the scheduler called
// Unschedulable, their siblings that it has not judged yet and those that a
// controller has still to make, so that a burst is one decision. Pods that it has
// not judged and that have no such sibling only keep the room that they may need.
func (w *roundState) gather() {
	by := w.unbound.byClass
	w.demands = make([]demand, 0, w.unbound.classes)
	flat := make([]cluster.PodKey, len(w.unbound.waiting))
	var last cluster.PodKey
	for _, x := range w.unbound.waiting {
		pod := &w.s.Pods[x.pod]
		w.unbound.sorted = w.unbound.sorted && last <= pod.Key
		last = pod.Key
		b := &by[x.class]
		if b.plain && pod.Wishes == nil {
			k := &w.demands[b.buys-1]
			k.keys = append(k.keys, pod.Key)
			continue
		}
		if b.keys == nil {
			b.keys, flat = flat[:0:b.count], flat[b.count:]
		}
		w.gatherPod(b, pod)
	}
	w.gatherMissing(by)
	if !w.unbound.sorted {
		for i := range w.demands {
			slices.Sort(w.demands[i].keys)
		}
	}
	w.demandHeadroom()
	w.sortDemands()
}

// sortDemands brings the demands in the order of priority, size and name.
func (w *roundState) sortDemands() {
	type key struct {
		priority, rank int32
		name           string
		at             int
	}
	keys := make([]key, len(w.demands))
	for i := range w.demands {
		class := w.demands[i].class
		keys[i] = key{w.s.Classes[class].Priority, w.e.classes.rank[class], w.demands[i].name(), i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.priority != b.priority {
			return cmp.Compare(b.priority, a.priority)
		}
		if a.rank != b.rank {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Compare(a.name, b.name)
	})
	for i := range keys { // each ring of wants that move into each other's places
		first := w.demands[i]
		for to := i; ; {
			from := keys[to].at
			keys[to].at = to
			if from == i {
				w.demands[to] = first
				break
			}
			w.demands[to] = w.demands[from]
			to = from
		}
	}
}

// gatherMissing adds the pods that controllers with an Unschedulable pod have still to
// make; of these pods the first by name says which class they are of, so that no two
// classes are of the same controller. Found by drawing worlds.
func (w *roundState) gatherMissing(by []classDemand) {
	if len(w.s.Controllers)+len(w.in.ReservedMissing) == 0 {
		return
	}
	stuck := make(map[cluster.UID]*cluster.Pod)
	for i := range w.s.Pods {
		if pod := &w.s.Pods[i]; pod.Owner != nil && isPending(pod) && !pod.Unschedulable.IsZero() {
			if first := stuck[pod.Owner.UID]; first == nil || pod.Key < first.Key {
				stuck[pod.Owner.UID] = pod
			}
		}
	}
	for owner, pod := range stuck {
		if at := by[pod.Class].buys; at > 0 {
			if k := &w.demands[at-1]; k.owner == "" || owner < k.owner {
				k.owner = owner
			}
		}
	}
	for i := range w.s.Controllers {
		c := &w.s.Controllers[i]
		if pod := stuck[c.Owner.UID]; pod != nil && c.Missing > 0 && by[pod.Class].buys > 0 {
			w.demands[by[pod.Class].buys-1].expected += c.Missing
		}
	}
}

// gatherPod adds one pod to its class.
func (w *roundState) gatherPod(b *classDemand, pod *cluster.Pod) {
	buys := b.verdict
	class := &w.s.Classes[pod.Class]
	if w.expendable(pod) {
		w.held("pod", string(pod.Key), decision.RuleExpendable, "priority %d is below the cutoff %d", class.Priority, w.p.ExpendablePodsCutoff)
		return
	}
	// A pod's own delay may only lengthen the general one, as in Cluster Autoscaler.
	delay := w.p.NewPodDelay
	if pod.Wishes != nil {
		delay = max(delay, pod.Wishes.ScaleUpDelay)
	}
	if delay > 0 && !w.reached(pod.Created.Add(delay)) {
		w.wakeAt(pod.Created.Add(delay))
		w.held("pod", string(pod.Key), decision.RuleNewPod, "younger than %s", delay)
		buys = false
	}
	if pod.Unschedulable.IsZero() && len(class.NotUnderstood) > 0 {
		w.unjudged = true
	}
	to := &b.waits
	if buys {
		to = &b.buys
	}
	if *to == 0 {
		w.demands = append(w.demands, demand{class: pod.Class, buys: buys, keys: b.keys})
		*to = int32(len(w.demands))
		b.keys = []cluster.PodKey{}
	}
	k := &w.demands[*to-1]
	k.keys = append(k.keys, pod.Key)
	b.plain = b.plain || buys && delay <= 0 && len(class.NotUnderstood) == 0
}

// holdUnknown holds the pods that fit cannot judge and those that no node can take,
// whatever it is, and takes them out.
func (w *roundState) holdUnknown() {
	w.demands = slices.DeleteFunc(w.demands, func(k demand) bool {
		c := &w.s.Classes[k.class]
		if len(c.NotUnderstood) == 0 {
			i := slices.IndexFunc(c.Volumes, func(v cluster.Volume) bool { return v.Refused != "" })
			if i >= 0 && k.buys { // a claim may be seen a moment after its pod
				w.heldPods(&k, len(k.keys), decision.RuleVolume, c.Volumes[i].Refused)
			}
			return i >= 0
		}
		_, words := fit.Refused(c, &fit.NodeInfo{})
		w.heldPods(&k, len(k.keys), decision.RuleNotUnderstood, words)
		return true
	})
}

func (w *roundState) heldPods(k *demand, count int, rule, why string) {
	w.plan.Held = append(w.plan.Held, decision.Held{Kind: "pod", Name: k.name(), Count: count, Rule: rule, Why: why, Class: k.class})
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

package round

import (
	"cmp"
	"fmt"
	"slices"

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
	Domain       int              // where they go (topology.GroupDomain); 0: anywhere
	Buys         bool             // whether a machine may be bought for them; else only room that is there is looked for
	PerPod       bool             // the packer cannot say what these pods ask of others: one by one
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
	buys, waits int32            // one more than the index into State.Demands; 0: there are none
	verdict     bool             // one of them is Unschedulable
	plain       bool             // whoever else has no wishes buys, too, and that is all
	count       int              // pods
	keys        []cluster.PodKey // room for the names of as many; the first want has it
}

// unboundPods are the pods without a node as the Snapshot lists them, by their index there. A
// burst is tens of thousands of them, so they are walked through as seldom as can be.
type unboundPods struct {
	Waiting   []UnboundPod  // those that want room
	nominated []int32       // those that preemption makes room for
	Sorted    bool          // at is in the order of names
	byClass   []classDemand // by class
	classes   int           // of at
}

// UnboundPod is a pod that waits, and its class.
type UnboundPod struct{ Pod, Class int32 }

// indexUnbound reads the pods without a node.
func (w *State) indexUnbound() {
	w.Unbound = unboundPods{Sorted: true, byClass: make([]classDemand, len(w.Snapshot.Classes))}
	for i := range w.Snapshot.Pods {
		pod := &w.Snapshot.Pods[i]
		switch {
		case IsPending(pod):
			if w.Unbound.Waiting == nil {
				w.Unbound.Waiting = make([]UnboundPod, 0, len(w.Snapshot.Pods)-i)
			}
			w.Unbound.Waiting = append(w.Unbound.Waiting, UnboundPod{int32(i), int32(pod.Class)})
			b := &w.Unbound.byClass[pod.Class]
			b.verdict = b.verdict || !pod.Unschedulable.IsZero()
			if b.count++; b.count == 1 {
				w.Unbound.classes++
			}
		case pod.Nominated != "" && pod.Node == "" && !pod.Finished:
			w.Unbound.nominated = append(w.Unbound.nominated, int32(i))
		}
	}
}

// IsPending tells a pod that waits for a place and that a machine could help.
func IsPending(pod *cluster.Pod) bool {
	return pod.Node == "" && pod.Nominated == "" && pod.Deleting.IsZero() && !pod.Finished && !pod.Gated && !pod.Mirror && !Daemon(pod)
}

// Gather collects the pending pods by class: those that the scheduler called
// Unschedulable, their siblings that it has not judged yet and those that a
// controller has still to make, so that a burst is one decision. Pods that it has
// not judged and that have no such sibling only keep the room that they may need.
func (w *State) Gather() {
	by := w.Unbound.byClass
	w.Demands = make([]Demand, 0, w.Unbound.classes)
	flat := make([]cluster.PodKey, len(w.Unbound.Waiting))
	var last cluster.PodKey
	for _, x := range w.Unbound.Waiting {
		pod := &w.Snapshot.Pods[x.Pod]
		w.Unbound.Sorted = w.Unbound.Sorted && last <= pod.Key
		last = pod.Key
		b := &by[x.Class]
		if b.plain && pod.Wishes == nil {
			k := &w.Demands[b.buys-1]
			k.Keys = append(k.Keys, pod.Key)
			continue
		}
		if b.keys == nil {
			b.keys, flat = flat[:0:b.count], flat[b.count:]
		}
		w.gatherPod(b, pod)
	}
	w.gatherMissing(by)
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
	type key struct {
		priority, rank int32
		name           string
		at             int
	}
	keys := make([]key, len(w.Demands))
	for i := range w.Demands {
		class := w.Demands[i].Class
		keys[i] = key{w.Snapshot.Classes[class].Priority, w.Cache.Classes.Rank[class], w.Demands[i].Name(), i}
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
		first := w.Demands[i]
		for to := i; ; {
			from := keys[to].at
			keys[to].at = to
			if from == i {
				w.Demands[to] = first
				break
			}
			w.Demands[to] = w.Demands[from]
			to = from
		}
	}
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
	for i := range w.Snapshot.Pods {
		if pod := &w.Snapshot.Pods[i]; pod.Owner != nil && IsPending(pod) && !pod.Unschedulable.IsZero() {
			if best := stuck[pod.Owner.UID]; best == nil || best.Created < pod.Created || best.Created == pod.Created && pod.Key < best.Key {
				stuck[pod.Owner.UID] = pod
			}
		}
	}
	for owner, pod := range stuck {
		if at := by[pod.Class].buys; at > 0 {
			if k := &w.Demands[at-1]; k.Owner == "" || owner < k.Owner {
				k.Owner = owner
			}
		}
	}
	for i := range w.Snapshot.Controllers {
		c := &w.Snapshot.Controllers[i]
		if pod := stuck[c.Owner.UID]; pod != nil && c.Missing > 0 && by[pod.Class].buys > 0 {
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
	if pod.Unschedulable.IsZero() && len(class.NotUnderstood) > 0 {
		w.Unjudged = true
	}
	to := &b.waits
	if buys {
		to = &b.buys
	}
	if *to == 0 {
		w.Demands = append(w.Demands, Demand{Class: pod.Class, Buys: buys, Keys: b.keys})
		*to = int32(len(w.Demands))
		b.keys = []cluster.PodKey{}
	}
	k := &w.Demands[*to-1]
	k.Keys = append(k.Keys, pod.Key)
	b.plain = b.plain || buys && delay <= 0 && len(class.NotUnderstood) == 0
}

// HoldUnknown takes out the pods that fit cannot judge and those that no node can take, and holds them.
func (w *State) HoldUnknown() {
	w.Demands = slices.DeleteFunc(w.Demands, func(k Demand) bool {
		c := &w.Snapshot.Classes[k.Class]
		if len(c.NotUnderstood) == 0 {
			i := slices.IndexFunc(c.Volumes, func(v cluster.Volume) bool { return v.Refused != "" })
			if i >= 0 && k.Buys { // a claim may be seen a moment after its pod
				w.HeldPods(&k, len(k.Keys), decision.RuleVolume, c.Volumes[i].Refused)
			}
			return i >= 0
		}
		rule := decision.RuleNotUnderstood
		if c.TooLarge {
			rule = decision.RuleTooLarge
		}
		_, words := fit.Refused(c, &fit.NodeInfo{})
		w.HeldPods(&k, len(k.Keys), rule, words)
		return true
	})
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

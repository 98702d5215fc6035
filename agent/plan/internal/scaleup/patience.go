package scaleup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/purchase"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// This file lets the pods of a machine that would be little filled wait a moment: pods that end, or more
// pods that come, make the purchase cheaper.
//
// The rule is that of ski rental: a machine that is bought now wastes the share that stays empty, for the minutes that it lives at
// least; it is bought when the waiting of its pods has cost as much. So waiting and waste of a machine are at most twice what they
// are for a buyer who knows what comes (Karlin et al., Competitive snoopy caching, 1988). What a pod's minute is worth is said as a time: of an
// empty machine of the cheapest group, one pod waits for Policy.Patience, and several for as long together; of a dearer one in proportion to
// its price, and no pod for longer.
//
// A machine is held only where pods come one by one, because only there more pods are likely to come: the first machine that is worth a wait is
// bought at once, and the next ones are held while it is young (Policy.UnneededFor, the least time that it lives; Memory.LittleFilled).
// None is held for constrained pods, for pods of the system's own priorities, and where machines are bought for headroom.

// critical is the least priority of the system's own classes (system-cluster-critical).
const critical = 2_000_000_000

// worthWaiting is the least wait, for pods that are made just now, of a machine whose purchase makes the next ones wait. The last machine of
// a burst is worth a wait of a second or two, and tells nothing about later pods.
const worthWaiting = 10 * time.Second

// heldPods are the pods of a demand that wait for a fuller machine.
type heldPods struct {
	Pods int
	Why  string
	Keys []cluster.PodKey // the demand's pods, those first that get the machines which are bought: the oldest

	until time.Time
}

// holdMachines takes the machines out of a solution that are not worth buying yet, and returns by demand the pods that wait for that; nil: there are
// none. In a round that is too large to bind pod by pod nothing waits.
// It costs P log P, and the machines and what is on them.
func holdMachines(p *purchase.Buyer, a *purchase.Solution) []heldPods {
	if p.Policy.Patience <= 0 || a.Bought() == 0 {
		return nil
	}
	if slices.ContainsFunc(a.Bins, func(b purchase.Bin) bool { return b.Fresh && keepsHeadroom(p, &b) }) {
		return nil // pods that wait would use a machine that comes to be kept free
	}
	if len(p.Next.OrphanedUpcoming) > 0 {
		return nil // after a restart: which pods are left over depends on how the machines that are coming are filled
	}
	if reachesLimit(p, a) {
		return nil // the next round would buy for the pods that are left what this one does not
	}
	h := holder{Buyer: p, waiting: waiting(p.State, a), held: make([]int, len(p.Demands))}
	for i := range p.Groups {
		if price := p.Groups[i].Price; price > 0 && (h.least == 0 || price < h.least) {
			h.least = price
		}
	}
	var out []purchase.Bin
	a.Bins = slices.DeleteFunc(a.Bins, func(b purchase.Bin) bool {
		if !h.may(&b) {
			return false
		}
		until := h.until(&b, h.ofAll)
		if h.Reached(until) {
			if h.worth(&b) >= worthWaiting.Seconds()*float64(podsOn(&b)) {
				p.Next.LittleFilled = p.Now
			}
			return false
		}
		h.WakeAt(until)
		out = append(out, b)
		h.hold(a, &b)
		return true
	})
	return h.waits(out)
}

type holder struct {
	*purchase.Buyer
	waiting [][]*cluster.Pod // by class, see waiting
	held    []int            // by demand, pods whose machine is held
	least   float64          // the price of the cheapest group; 0: no group has one
}

// waiting is by class the pods that no earlier order counted on, the oldest first; and where machines of such an order are missing, or
// other pods run on them, all that wait.
func waiting(w *round.State, a *purchase.Solution) [][]*cluster.Pod {
	all, later, counted := make([][]*cluster.Pod, len(w.Snapshot.Classes)), make([][]*cluster.Pod, len(w.Snapshot.Classes)), make([]int, len(w.Snapshot.Classes))
	for _, x := range w.Unbound.Waiting {
		pod := &w.Snapshot.Pods[x.Pod]
		if all[x.Class] = append(all[x.Class], pod); w.ReservedTo(pod.Key) == "" {
			later[x.Class] = append(later[x.Class], pod)
		}
	}
	for i := range w.Demands { // pods that have a place without a new machine
		class := w.Demands[i].Class
		counted[class] += a.On[i]
		for _, s := range a.Allocations[i] {
			counted[class] += s.Upcoming
		}
	}
	for class := range all {
		if n := len(all[class]) - len(later[class]); n > counted[class] || len(later[class]) == 0 {
			later[class] = all[class]
		}
		slices.SortFunc(later[class], func(a, b *cluster.Pod) int {
			return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Key, b.Key))
		})
	}
	return later
}

func keepsHeadroom(p *purchase.Buyer, b *purchase.Bin) bool {
	return b.Headroom != nil || slices.ContainsFunc(b.Portions, func(t purchase.Portion) bool { return p.Demands[t.Demand].Headroom != "" })
}

// reachesLimit tells whether a purchase leaves pods that a machine more of some group would take, and a limit allows none. Others wait for
// what is bought then, so no machine stays little filled for long. It costs the groups and the pods that are left, and where the whole cluster
// has limits the groups squared.
func reachesLimit(p *purchase.Buyer, a *purchase.Solution) bool {
	left := func(i int) bool { return p.Demands[i].Buys && a.Left[i] > 0 }
	for g := range p.Groups {
		if p.Groups[g].CanGrow() && slices.ContainsFunc(p.TakenBy(g), left) && growth.Beside(p.State, a.Grow, g) == 0 {
			return true
		}
	}
	return false
}

// may tells whether a machine is a new one that can be held.
func (h *holder) may(b *purchase.Bin) bool {
	return b.Node < 0 && b.Fresh && len(b.Portions) > 0 && !slices.ContainsFunc(b.Portions, func(t purchase.Portion) bool {
		k := &h.Demands[t.Demand]
		return h.Constrained(k.Class) || h.Snapshot.Classes[k.Class].Priority >= critical
	})
}

// ofAll and ofHeld are the pods of a demand whose waiting counts, of n: all that wait, or the youngest, as many as machines are held for.
// The rest of n is still to be made, and has not waited.
func (h *holder) ofAll(i int) (pods []*cluster.Pod, n int) {
	k := &h.Demands[i]
	return h.waiting[k.Class], len(h.waiting[k.Class]) + k.Expected
}

func (h *holder) ofHeld(i int) (pods []*cluster.Pod, n int) {
	k := &h.Demands[i]
	all := h.waiting[k.Class]
	return all[len(all)-min(max(h.held[i]-k.Expected, 0), len(all)):], h.held[i]
}

// until is the moment, in whole seconds, from which on a new machine is worth buying, when its pods have waited as long together as the
// machine is worth. It depends on when the pods were made and not on when that is asked: an answer that the Engine gives again stays true.
func (h *holder) until(b *purchase.Bin, waited func(i int) (pods []*cluster.Pod, n int)) time.Time {
	base, sum, rate, most := h.Now, 0.0, 0.0, h.Policy.Patience
	for x, t := range b.Portions {
		pods, n := waited(t.Demand)
		all := h.waiting[h.Demands[t.Demand].Class]
		if x == 0 {
			base = h.made(all[0])
		}
		share := float64(t.N) / float64(n)
		for _, pod := range pods {
			sum += share * h.made(pod).Sub(base).Seconds()
		}
		rate += share * float64(len(pods))
		first := h.made(all[len(all)-max(len(pods), 1)])
		if limit := first.Add(h.Policy.Patience).Sub(base); x == 0 || limit < most {
			most = limit
		}
	}
	left := most
	if worth := h.worth(b) + sum; worth < rate*most.Seconds() {
		left = time.Duration(worth / rate * float64(time.Second))
	}
	until := base.Add(left + time.Second - 1).Truncate(time.Second)
	if end := h.PatienceEnds(); end.Before(until) {
		return end
	}
	return until
}

// made is when a pod was made. One that was made later than now, by a clock that is ahead, begins to wait now.
func (h *holder) made(pod *cluster.Pod) time.Time {
	if t := pod.Created.Time(); !t.After(h.Now) {
		return t
	}
	h.Uncacheable = true
	return h.Now
}

// worth is for how many seconds one pod waits for a machine, or several together: for Policy.Patience, by the share of it that stays empty and
// by its price.
func (h *holder) worth(b *purchase.Bin) float64 {
	worth := (1 - h.fill(b)) * h.Policy.Patience.Seconds()
	if price := h.Groups[b.Group].Price; price > 0 {
		worth *= price / h.least
	}
	return worth
}

func podsOn(b *purchase.Bin) (n int) {
	for _, t := range b.Portions {
		n += t.N
	}
	return n
}

// fill is the share of a machine that is used, of the resource of which most is.
func (h *holder) fill(b *purchase.Bin) (most float64) {
	empty, _ := h.Template(&h.Groups[b.Group])
	for d, n := range empty {
		if n > 0 {
			most = max(most, 1-float64(b.Room[d])/float64(n))
		}
	}
	return most
}

// hold takes a machine out of a solution.
func (h *holder) hold(a *purchase.Solution, b *purchase.Bin) {
	g := b.Group
	a.Grow[g]--
	if a.Reasons != nil {
		a.Reasons[g] = "" // speaks of all machines
	}
	for _, t := range b.Portions {
		for x := range a.Allocations[t.Demand] {
			if s := &a.Allocations[t.Demand][x]; s.Group == g {
				s.New -= t.N
			}
		}
		a.Left[t.Demand] += t.N
		h.held[t.Demand] += t.N
	}
}

// waits says of the pods of machines that are held for how long they wait at most.
func (h *holder) waits(bins []purchase.Bin) (out []heldPods) {
	if len(bins) > 0 {
		out = make([]heldPods, len(h.Demands))
	}
	for x := range bins {
		b := &bins[x]
		until := h.until(b, h.ofHeld)
		h.WakeAt(until)
		for _, t := range b.Portions {
			w := &out[t.Demand]
			if w.Pods += t.N; w.Keys == nil {
				w.Keys = h.oldestFirst(t.Demand)
			}
			if until.After(w.until) {
				w.until = until
				w.Why = fmt.Sprintf("a new machine of group %s would be %d%% full, and the agent bought a little filled one at %s: it waits for more pods or for room on a node, until %s at the latest",
					h.Groups[b.Group].ID, int(100*h.fill(b)), round.Stamp(h.Memory.LittleFilled), round.Stamp(until))
			}
		}
	}
	return out
}

// oldestFirst are the pods of a demand: those that an earlier order counted on, and the others by age.
func (h *holder) oldestFirst(i int) []cluster.PodKey {
	later := make([]cluster.PodKey, 0, len(h.Demands[i].Keys))
	for _, pod := range h.waiting[h.Demands[i].Class] {
		later = append(later, pod.Key)
	}
	sorted := slices.Sorted(slices.Values(later))
	keys := slices.DeleteFunc(slices.Clone(h.Demands[i].Keys), func(k cluster.PodKey) bool { _, is := slices.BinarySearch(sorted, k); return is })
	for _, k := range later {
		if _, mine := slices.BinarySearch(h.Demands[i].Keys, k); mine {
			keys = append(keys, k)
		}
	}
	return keys
}

// Package patience lets the pods of a machine that would be little filled wait a moment: Hold(Packer, Solution). Pods that end, or more
// pods that come, make the purchase cheaper.
//
// The rule is that of ski rental: a machine that is bought now wastes the share that stays empty, for the minutes that it lives at
// least; it is bought when the waiting of its pods has cost as much. So an order that waits costs at most twice what the best one
// costs that knows what comes (Karlin et al., Competitive snoopy caching, 1988). What a pod's minute is worth is said as a time: of an
// empty machine of the cheapest group, one pod waits for Policy.Patience, and several for as long together; of a dearer one in proportion to
// its price, and no pod for longer.
//
// Layer 1. It refuses to choose machines, and to hold one for constrained pods, for headroom, and for pods of the system's own
// priorities.
package patience

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// critical is the least priority of the system's own classes (system-cluster-critical).
const critical = 2_000_000_000

// Wait are the pods of a demand that wait for a fuller machine.
type Wait struct {
	Pods  int
	Why   string
	until time.Time
}

// Hold takes the machines out of a solution that are not worth buying yet, and returns by demand the pods that wait for that; nil: there are
// none. Where the solution does not say which pods go on which machine (a round that is too large to be judged), nothing waits.
// It costs P, and the machines and what is on them.
func Hold(p *packing.Packer, a *packing.Solution) []Wait {
	if p.Policy.Patience <= 0 || a.Bought() == 0 || slices.ContainsFunc(a.Claims, func(n int) bool { return n > 0 }) {
		return nil
	}
	h := holder{p, waited(p.State, a), 0}
	for i := range p.Groups {
		if price := p.Groups[i].Price; price > 0 && (h.least == 0 || price < h.least) {
			h.least = price
		}
	}
	var out []Wait
	a.Bins = slices.DeleteFunc(a.Bins, func(b packing.Bin) bool {
		until, fill := h.until(&b)
		if until.IsZero() || p.Reached(until) {
			return false
		}
		p.WakeAt(until)
		if out == nil {
			out = make([]Wait, len(p.Demands))
		}
		h.hold(a, &b, out, until, fill)
		return true
	})
	return out
}

type holder struct {
	*packing.Packer
	waited []classWait
	least  float64 // the price of the cheapest group; 0: no group has one
}

// classWait is how long the pods of a class have waited.
type classWait struct {
	pods  int
	sum   time.Duration
	first time.Time // the oldest one was made
}

func (c *classWait) add(w *round.State, pod *cluster.Pod) {
	made := pod.Created.Time()
	if c.pods, c.sum = c.pods+1, c.sum+max(w.Now.Sub(made), 0); c.pods == 1 || made.Before(c.first) {
		c.first = made
	}
}

// waited is by class how long the pods have waited that no earlier order counted on; and where machines of such an order are missing, or
// other pods run on them, how long all have.
func waited(w *round.State, a *packing.Solution) []classWait {
	all, later, counted := make([]classWait, len(w.Snapshot.Classes)), make([]classWait, len(w.Snapshot.Classes)), make([]int, len(w.Snapshot.Classes))
	for _, x := range w.Unbound.Waiting {
		pod := &w.Snapshot.Pods[x.Pod]
		if all[x.Class].add(w, pod); w.ReservedTo(pod.Key) == "" {
			later[x.Class].add(w, pod)
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
		if n := all[class].pods - later[class].pods; n > counted[class] || later[class].pods == 0 {
			later[class] = all[class]
		}
	}
	return later
}

// until is when a new machine is worth buying, in whole seconds, and how full it would be; no time: it is bought now.
func (h *holder) until(b *packing.Bin) (at time.Time, fill float64) {
	if b.Node >= 0 || !b.Fresh || b.Headroom != nil || len(b.Portions) == 0 {
		return at, 0
	}
	pods, sum, end := 0, 0.0, h.Now.Add(h.Policy.Patience)
	for _, t := range b.Portions {
		k := &h.Demands[t.Item]
		c := &h.waited[k.Class]
		if h.Topology != nil && h.Topology.Constrained[k.Class] || h.Snapshot.Classes[k.Class].Priority >= critical {
			return at, 0
		}
		// Pods that are still to be made have not waited.
		pods, sum = pods+t.N, sum+float64(t.N)*c.sum.Seconds()/float64(max(c.pods+k.Expected, 1))
		if last := c.first.Add(h.Policy.Patience); c.pods > 0 && last.Before(end) {
			end = last
		}
	}
	empty, _ := h.Template(&h.Groups[b.Group])
	for d, n := range empty {
		if n > 0 {
			fill = max(fill, 1-float64(b.Room[d])/float64(n))
		}
	}
	worth := (1 - fill) * h.Policy.Patience.Seconds()
	if price := h.Groups[b.Group].Price; price > 0 {
		worth *= price / h.least
	}
	left := time.Duration(min((worth-sum)/float64(pods), end.Sub(h.Now).Seconds()) * float64(time.Second))
	if left <= 0 {
		return at, fill
	}
	return h.Now.Add(left + time.Second - 1).Truncate(time.Second), fill
}

// hold takes a machine out of a solution.
func (h *holder) hold(a *packing.Solution, b *packing.Bin, out []Wait, until time.Time, fill float64) {
	g := b.Group
	a.Grow[g]--
	if a.Reasons != nil {
		a.Reasons[g] = "" // speaks of all machines
	}
	for _, t := range b.Portions {
		for x := range a.Allocations[t.Item] {
			if s := &a.Allocations[t.Item][x]; s.Group == g {
				s.New -= t.N
			}
		}
		a.Left[t.Item] += t.N
		w := &out[t.Item]
		if w.Pods += t.N; until.After(w.until) {
			w.until = until
			w.Why = fmt.Sprintf("a new machine of group %s would be %d%% full: the agent waits for more pods or for room on a node, until %s at the latest", h.Groups[g].ID, int(math.Floor(100*fill)), round.Stamp(until))
		}
	}
}

package judge

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/exchange"
)

// The search goes by the first expander alone. What that one leaves open is decided afterwards, so that no other expander
// changes what the first one has chosen: machines are exchanged for others that cost as much.

// refined is a purchase that costs the first expander as much and that the expanders after it like at least as well. First
// it is what the first expander alone would make of it, so that none is worse to the second one than that. It takes at most
// twice so many steps. The groups are in the order of the expanders from then on.
func (j *model) refined(best trial, steps int) trial {
	j.limit = min(j.sim.Steps+steps, j.most)
	j.w.packer.ByFirstAlone(func() { best = j.exchangedEqually(best) })
	if j.w.packer.OneExpander() {
		return best
	}
	j.limit = min(j.sim.Steps+steps, j.most)
	best = j.exchangedEqually(best)
	j.cut = j.cut || j.limit == j.most && j.sim.Steps >= j.limit
	return best
}

// exchangedEqually exchanges machines of a purchase as long as that costs the first expander nothing, helps as many pods, and the
// expanders after it like the purchase better, within the steps of the part.
// It costs the square of G, and up to a trial for each draw of an exchange that they like.
func (j *model) exchangedEqually(best trial) trial {
	ranks := j.w.packer.MachineRanks()
	slices.SortStableFunc(j.groups, func(a, b int) int { return cmp.Compare(ranks[a], ranks[b]) })
	used := j.usage()
	if best.left > 0 { // its second purchase is of other groups now
		if t, ok := j.asGood(best.machines, &best); ok && j.prefers(t.all, best.all, used) {
			best = t
		}
	}
	need, moves := j.needs(), exchange.Equal(j.cost, j.groups, best.machines)
	for i, failed := 0, 0; failed < len(moves) && j.sim.Steps < j.limit; {
		if y, ok := moves[i].Of(best.machines); ok && j.prefers(j.withRest(y, &best), best.all, used) && j.within(y) && (best.lost > 0 || j.missing(y, need) == 0) {
			if t, ok := j.asGood(y, &best); ok && j.prefers(t.all, best.all, used) {
				best, failed = t, 0
				continue // the same once more
			}
		}
		i, failed = (i+1)%len(moves), failed+1
	}
	return best
}

// prefers tells whether a purchase is better than another that costs the first expander as much: it has machines in more zones,
// where pods are spread over zones (kp3272), or the expanders after the first one like it better.
func (j *model) prefers(x, than []int, used [2]float64) bool {
	j.sim.Steps += 1 + len(j.groups)/8
	if c := cmp.Compare(j.zonesWith(than), j.zonesWith(x)); c != 0 {
		return c < 0
	}
	a, b := j.w.packer.PurchaseOf(x, j.rooms, used), j.w.packer.PurchaseOf(than, j.rooms, used)
	return j.w.packer.CompareAfterFirst(&a, &b) < 0
}

// usage sums up the cpu and memory of the pods of the queue that machines help.
func (j *model) usage() (used [2]float64) {
	for _, r := range j.queue(0) {
		if j.units[r.class] > 0 {
			for k := range used {
				used[k] += float64(j.w.Dimensions.Class(r.class)[k]) * float64(r.n)
			}
		}
	}
	return used
}

// withRest are machines with those of the second purchase of a trial.
func (j *model) withRest(machines []int, t *trial) []int {
	out := slices.Clone(machines)
	for g := range out {
		out[g] += t.all[g] - t.machines[g]
	}
	return out
}

// asGood tries a purchase in as many draws as another; false: it costs the first expander more, or helps fewer pods.
func (j *model) asGood(x []int, than *trial) (trial, bool) {
	below := than.score * (1 + rounding)
	t, ok := j.try(x, 0, below)
	if !ok || t.compare(than) > 0 {
		return t, false
	}
	t = j.drawn(t, than.draws, below)
	return t, t.draws >= than.draws && t.left <= than.left && t.compare(than) <= 0
}

// rounding is the share by which prices differ that are sums of the same parts in another order.
const rounding = 1e-12

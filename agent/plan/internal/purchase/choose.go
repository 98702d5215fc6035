package purchase

import (
	"cmp"
	"math"
	"slices"
)

// A round may spend leastSteps on its search, and searchTimes what the trial of the first proposal takes, and never more than its budget
// (budget.Search). searchFrom is from how many purchases the search sets out, finals how many stand all draws, repairs how often
// the second purchase of one is bought with the first.
const leastSteps, searchTimes, searchFrom, finals, repairs = 60_000, 150, 2, 4, 3

// choose finds the purchase of the round; without machines by group: none could be tried within the steps.
func (b *board) choose() trial {
	before := b.sim.Steps
	all, most := b.tryProposals()
	b.limit = before + (most-before)*3/4
	best := trial{}
	all = sorted(all)
	all = all[:min(len(all), searchFrom+2)]
	for k := range all {
		all[k] = b.repaired(all[k], best.below())
		if all[k].better(&best) {
			best = all[k]
		}
	}
	all = sorted(all)
	n := min(len(all), searchFrom)
	for k := range n {
		b.limit = b.sim.Steps + (before+(most-before)*3/4-b.sim.Steps)/(n-k)
		all = append(all, b.search(all[k], searchDraws))
	}
	all = sorted(all)
	b.limit = most
	best = trial{}
	for _, t := range all[:min(len(all), finals)] {
		if t = b.settled(t, best.below()); t.draws >= best.draws && t.better(&best) {
			best = t
		}
	}
	if best.x != nil {
		best = b.search(best, finalDraws)
	}
	b.cut = b.sim.Steps >= most && most == b.sim.Limit
	return best
}

// tryProposals tries the proposals, and returns them with the step at which the round's search ends.
func (b *board) tryProposals() (all []trial, most int) {
	before := b.sim.Steps
	b.limit = before + leastSteps
	proposals := b.proposals()
	for b.moreHelped = true; b.moreHelped; {
		b.moreHelped, all = false, all[:0]
		for k, x := range proposals {
			if k > 2 && b.sim.Steps > b.limit {
				break
			}
			here := b.sim.Steps
			t, ok := b.try(x, searchDraws, math.Inf(1))
			if !ok {
				break
			}
			if k == 0 {
				most = min(before+leastSteps+searchTimes*(b.sim.Steps-here), b.sim.Limit)
				b.limit = before + (most-before)/4
			}
			all = append(all, t)
		}
	}
	return all, most
}

// sorted brings trials in the order of their scores and leaves out equal purchases.
func sorted(all []trial) []trial {
	slices.SortStableFunc(all, func(x, y trial) int { return cmp.Compare(x.score, y.score) })
	return slices.CompactFunc(all, func(x, y trial) bool { return slices.Equal(x.x, y.x) })
}

// repaired is a purchase with what it leaves bought at once.
func (b *board) repaired(t trial, below float64) trial {
	best := t
	for k := 0; k < repairs && t.n > 0 && b.sim.Steps < b.limit; k++ {
		x := t.all[0]
		if slices.Equal(x, t.x) || b.price(x) >= below {
			break
		}
		var ok bool
		if t, ok = b.try(x, searchDraws, math.Inf(1)); !ok {
			break
		}
		if t.better(&best) {
			best = t
		}
	}
	return best
}

// settled lets a purchase stand all draws, and buys at once what one of them leaves, where that is cheaper.
func (b *board) settled(t trial, below float64) trial {
	t, _ = b.stand(t, finalDraws, math.Inf(1))
	for range repairs {
		best := t
		for _, x := range t.all {
			if b.sim.Steps > b.limit {
				break
			}
			if b.price(x) < min(below, best.score) {
				if o, ok := b.try(x, finalDraws, best.score); ok && o.draws >= best.draws && o.better(&best) {
					best = o
				}
			}
		}
		if !best.better(&t) {
			break
		}
		t = best
	}
	return t
}

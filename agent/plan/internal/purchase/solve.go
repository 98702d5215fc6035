package purchase

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Solve is where the pods of a round go and what is bought for them; nil: no purchase could be tried within the budget of the round. It tells the
// budget what it spent. Pods count on the machines that an earlier round chose for them, and on nodes that are being emptied, only where a
// machine less is bought then: kube-scheduler knows of neither.
func (p *Buyer) Solve() *Solution {
	r := solving{Buyer: p, cost: p.orderedCosts()}
	p.unreplaced = nil // groups have grown since
	size := tooLarge(p.State, p.worthwhile(r.cost))
	r.large = size != ""
	known := len(contentsOf(p.State)) > 0
	// Pods that wait for a fuller machine do not take the places of others.
	first := way{contents: known && p.Policy.Patience > 0 && !p.Reached(p.PatienceEnds())}
	best := r.solve(first)
	if best == nil {
		size, r.large = sizeOf(p.State), true
		best = r.solve(first)
	}
	other := func(w way) {
		if a := r.solve(w); a != nil && (a.needsLess(best) || (w.contents || w.again > 0) && a.Bought() == 0 && best.Bought() > 0) {
			best = a
		}
	}
	if best.Bought()+best.Unplaced() > 0 && known && !first.contents {
		other(way{contents: true})
	}
	from := 1
	if r.large {
		from += restartDraws
	}
	for try := from; try <= restartTries && best.Bought() > 0 && len(p.Next.OrphanedUpcoming) > 0; try++ {
		other(way{again: try})
	}
	if best.Bought()+best.Unplaced() > 0 && p.anyMarked() {
		other(way{contents: known, withMarked: true})
	}
	switch p.Spent.Add(round.SearchPart, r.steps); {
	case best.Bought() == 0:
	case r.large:
		p.BudgetSpent(round.SearchPart, "the round is too large to simulate (%s), and is packed by size", size)
	case r.cut:
		p.BudgetSpent(round.SearchPart, "the best purchase that was found by then is made")
	}
	return best
}

// way is how the pods are placed that need no purchase.
type way struct {
	contents   bool // on the upcoming machines that earlier rounds chose for them
	withMarked bool // nodes that are being emptied are there for pods
	// again, from 1 to restartTries, is another order in which the pods go on upcoming machines: after a restart nobody knows which pods these are
	// for. It is taken only where it buys nothing: a smaller purchase is not found again after another restart.
	again int
}

// restartTries are draws of kube-scheduler, and at last four orders by size: large pods or small ones first, on the first or the last machines.
const restartDraws, restartTries = 8, 12

type solving struct {
	*Buyer
	cost  []float64
	steps int  // spent on the board so far
	large bool // pods are placed by counts
	cut   bool
}

// solve is the solution of one way; nil: no purchase could be tried within the steps.
func (r *solving) solve(w way) *Solution {
	if r.Constraints != nil {
		begin := r.Constraints.Mark()
		defer r.Constraints.Rollback(begin)
	}
	steps := round.SearchPart.Budget()
	if !r.large { // else all pods have to be placed
		steps = max(steps-r.steps, leastSteps)
	}
	b := newBoard(r.Buyer, r.cost, w, steps, r.large)
	defer func() { r.steps, r.cut = r.steps+b.sim.Steps, r.cut || b.cut }()
	before, m, x := len(b.machines), b.mark(), b.none()
	some := b.helpable(b.left)
	if r.large {
		if some && w.again > 0 {
			return nil
		}
		if some {
			if r.steps > 0 { // another way has been tried
				b.sim.Limit = b.sim.Steps + round.SearchPart.Budget()/4
			}
			b.byCounts()
			x = b.purchaseOf(b.machines[before:])
		}
		b.keepHeadroom(x, m)
		return b.written(before)
	}
	if b.sim.Spent() || some && w.again > 0 {
		return nil
	}
	if some {
		t := b.choose()
		if t.x == nil {
			return nil
		}
		b.sim.Limit = 0 // it has been bound once
		x = b.withPlaces(t.x)
	}
	b.sim.Limit = 0
	left := b.bindForGood(x, m)
	s := b.written(before)
	b.rollback(m)
	s.Reasons = b.reasons(x, left)
	return s
}

// helpable tells whether a machine may be bought for any of the pods that are left.
func (b *board) helpable(left []int) bool {
	return slices.ContainsFunc(b.order, func(c int) bool {
		return left[c] > 0 && slices.ContainsFunc(b.groups, func(g int) bool { return b.takes(c, g) && b.may(b.none(), g) })
	})
}

// withPlaces is a purchase with the machines that the first draw lacks, unless its machines have a place for all pods in another
// arrangement: the next round places each pod where this one did, and a pod without a place would buy then.
func (b *board) withPlaces(x []int) []int {
	for range 1 + repairs {
		b.sim.ResetOrder()
		_, all, n := b.draw(x, 0)
		if n == 0 || slices.Equal(all, x) || b.holdsBySize(x) {
			break
		}
		x = all
	}
	return x
}

// holdsBySize tells whether a purchase has a place for all pods that a machine helps, whatever kube-scheduler scores.
func (b *board) holdsBySize(x []int) bool {
	m := b.mark()
	defer b.rollback(m)
	b.join(x)
	return b.lacks(b.placeBySize(b.order, false)) == 0
}

// placeBySize places the pods that are left whatever kube-scheduler scores, those first that depend on others, and of the others the first of an
// order. It returns the pods by class without a place.
func (b *board) placeBySize(order []int, lastFirst bool) (left []int) {
	left = slices.Clone(b.left)
	for _, constrained := range []bool{true, false} {
		for _, c := range order {
			if b.Constrained(c) == constrained {
				left[c] -= b.fillPlaces(c, left[c], lastFirst)
			}
		}
	}
	return left
}

// lacks counts the pods that are left and that a machine helps.
func (b *board) lacks(left []int) (n int) {
	for c := range left {
		if b.units[c] > 0 {
			n += max(left[c]-b.stuck[c], 0)
		}
	}
	return n
}

// bindForGood puts a purchase and its pods on the board, and then headroom, with the machines that this lacks. Where scores leave pods that
// size alone would place, they are placed by size: the machines are for them, and kube-scheduler may find a place for them. It returns
// how many pods are placed so.
func (b *board) bindForGood(x []int, m mark) (bySize int) {
	b.sim.ResetOrder()
	left := b.lacks(b.bind(x, 0))
	if left > 0 {
		b.rollback(m)
		b.join(x)
		if b.lacks(b.placeBySize(b.order, false)) >= left {
			b.rollback(m)
			b.sim.ResetOrder()
			b.bind(x, 0)
			left = 0
		}
	}
	b.keepHeadroom(x, m)
	return left
}

// withHeadroom places the pieces of headroom beside the pods that are on the board, and returns the purchase with the machines that they lack.
// kube-scheduler spreads pods over all machines and leaves none of them free, so these join after the pods.
func (b *board) withHeadroom(x []int) []int {
	left := b.placeHeadroom()
	if sum(left) == 0 {
		return x
	}
	x = slices.Clone(x)
	b.cover(x, left, b.groups)
	return x
}

// placeHeadroom places the pieces of headroom on the board, and returns those by class that have no room.
func (b *board) placeHeadroom() (left []int) {
	left = slices.Clone(b.pieces)
	for _, c := range b.order {
		left[c] -= b.fillPlaces(c, left[c], false)
	}
	return left
}

// keepHeadroom is withHeadroom that puts the machines on the board, and the pieces on them. Where pods depend on others, an empty machine more can
// close those that they are on (a spread over hosts), so that all machines are there first, the pieces next, and the pods last.
func (b *board) keepHeadroom(x []int, m mark) {
	left := b.placeHeadroom()
	if sum(left) == 0 {
		return
	}
	all := slices.Clone(x)
	b.cover(all, slices.Clone(left), b.groups)
	if b.Constraints == nil || b.large {
		before, _ := b.shared(x)
		after, _ := b.shared(all)
		for g := range after {
			for range after[g] - before[g] {
				b.add(g)
			}
		}
		b.pieces = left
		b.placeHeadroom()
		return
	}
	for range 1 + repairs {
		b.rollback(m)
		b.sim.ResetOrder()
		b.join(all)
		pieces := b.placeHeadroom()
		left := b.bindQueue(0)
		x := slices.Clone(all)
		b.cover(x, left, b.groups)
		b.cover(x, pieces, b.groups)
		if slices.Equal(x, all) {
			return
		}
		all = x
	}
}

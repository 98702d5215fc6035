package purchase

import (
	"math"
	"slices"
)

// A draw is one outcome of what kube-scheduler decides by chance: of ties, and of the order of pods that were made in the same second. The
// search tries each purchase in searchDraws of them, and the best purchases in the end stand finalDraws.
const searchDraws, finalDraws = 1, 4

// What a second purchase costs beside its price, as a share of the price of all: againCosts, and waitCosts times the share of the
// pods that wait for it, at most waitMost.
const againCosts, waitCosts, waitMost = 0.10, 2.7, 0.40

// trial is a purchase as kube-scheduler would use it.
type trial struct {
	x     []int
	all   [][]int // with the machines of a second purchase, for what is left, of each draw that left pods
	draws int
	n     int     // pods that wait for a second purchase, in the worst draw
	score float64 // its price and that of a second purchase, and what that costs beside its price, in the mean of the draws
}

func (t *trial) better(o *trial) bool { return o.x == nil || t.score < o.score*(1-noise) }

// below is the score that another trial has to stay under.
func (t *trial) below() float64 {
	if t.x == nil {
		return math.Inf(1)
	}
	return t.score
}

// try lets a purchase stand draws; false: it costs as much as below, or the steps are spent.
func (b *board) try(x []int, draws int, below float64) (trial, bool) {
	return b.stand(trial{x: x, score: b.price(x)}, draws, below)
}

// stand lets a trial stand more draws: the machines join, kube-scheduler binds, and what it leaves is bought for.
func (b *board) stand(t trial, draws int, below float64) (trial, bool) {
	first := b.price(t.x)
	for ; t.draws < draws && (t.draws < searchDraws || b.sim.Steps < b.limit); t.draws++ {
		score, all, n := b.draw(t.x, t.draws)
		if b.sim.Spent() {
			return t, false
		}
		if n > 0 {
			t.all = append(t.all, all)
		}
		t.n = max(t.n, n)
		t.score = (t.score*float64(t.draws) + score) / float64(t.draws+1)
		if (t.score*float64(t.draws+1)+first*float64(draws-t.draws-1))/float64(draws) >= below {
			t.draws++
			return t, false
		}
	}
	return t, true
}

// draw is a purchase in one draw: what it costs with a second purchase, and for how many pods that is.
func (b *board) draw(x []int, draw int) (score float64, all []int, n int) {
	m := b.mark()
	defer b.rollback(m)
	left := b.bind(x, draw)
	n = sum(left)
	if b.lacks(left) > 0 {
		all = slices.Clone(x)
		b.coverOn(all, left, b.groups)
	}
	lost := sum(left)
	if n -= lost; lost < sum(b.stuck) { // more can be helped than was known: what was tried before is to be judged anew
		b.stuck, b.moreHelped = left, true
	}
	if n == 0 {
		score = b.price(b.withHeadroom(x))
	} else {
		score = b.price(b.withHeadroom(all)) * (1 + againCosts + min(waitCosts*float64(n)/float64(b.pods), waitMost))
	}
	return score * (1 + lostCosts*float64(lost-sum(b.stuck))) * (1 - zoneIsWorth*float64(b.zonesOf(x))), all, n
}

// lostCosts is what a pod that no second purchase helps, and another one would, counts for as a share of the price.
const lostCosts = 4

// zoneIsWorth is the share of its price for which a purchase is better that has machines in one zone more, where pods are spread over zones:
// kube-scheduler spreads them over the zones that have nodes.
const zoneIsWorth = 1e-4

// bind puts the machines of a purchase on the board and binds all pods; the caller rolls back. It returns the pods by class without a place.
func (b *board) bind(x []int, draw int) (left []int) {
	b.join(x)
	return b.bindQueue(draw)
}

// bindQueue binds all pods on the machines that are there.
func (b *board) bindQueue(draw int) (left []int) {
	queue := b.queue(draw)
	b.sim.Seed(uint64(draw) + 1)
	left = make([]int, len(b.left))
	for _, r := range queue {
		left[r.class] += r.n - b.sim.Bind(r.class, r.n)
	}
	for some := true; some; { // kube-scheduler tries pods again when one is bound that they may wait for
		before := sum(left)
		b.fillOpened(left)
		some = sum(left) < before
	}
	return left
}

// join adds the machines of a purchase to the board.
func (b *board) join(x []int) {
	machines, _ := b.shared(x)
	for g, n := range machines {
		for range n {
			b.add(g)
		}
	}
}

// missing is a lower bound of the price of the machines that a purchase lacks to hold so much.
func (b *board) missing(x []int, need []int64) (most float64) {
	for k, n := range need {
		for g, m := range x {
			if m > 0 {
				n -= int64(m) * b.rooms[g][k]
			}
		}
		least := math.Inf(1)
		for _, g := range b.groups {
			if room := b.rooms[g][k]; n > 0 && room > 0 {
				least = min(least, b.cost[g]*float64(n)/float64(room))
			}
		}
		if !math.IsInf(least, 1) {
			most = max(most, least)
		}
	}
	return most
}

// noise is the share by which sums differ that are equal but for the order of their floating-point parts.
const noise = 1e-12

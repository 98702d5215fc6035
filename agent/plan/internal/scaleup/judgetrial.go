package scaleup

import (
	"maps"
	"slices"
)

// trial is a purchase as kube-scheduler would use it.
type trial struct {
	machines []int   // by group
	all      []int   // with those of the second purchase, for what the scheduler leaves
	left     int     // pods that the second purchase is for
	open     int     // of these, pods that the machines have no room for by size, or that depend on others: no packing can claim them
	lost     int     // pods that are left in the end
	score    float64 // the price of both, and what a second purchase costs beside its price
}

// purchase is what is bought now: the first of two purchases, or both where the pods of the
// second have no room on the machines of the first.
func (t *trial) purchase() []int {
	if t.open > 0 {
		return t.all
	}
	return t.machines
}

// What a second purchase costs beside its price, as shares of the whole: for its being one,
// and for each pod that has to wait for it, by the share of the pods that it is.
const (
	againCosts   = 0.05
	waitingCosts = 4.0
)

// better tells whether a trial helps more pods than another, or as many for less.
func (t *trial) better(o *trial) bool {
	return t.lost < o.lost || t.lost == o.lost && t.score < o.score-1e-9
}

// run makes the cluster of a purchase and binds all pods. It returns the pods by class that
// are left and that no reservation stands for; false: a purchase for them would cost more
// than most. The caller rolls back.
func (j *judge) run(x []int, draw int, most float64) (left map[int]int, ok bool) {
	j.sim.Seed(uint64(draw) + 1)
	j.bought = j.bought[:0]
	for g, n := range x {
		for range n {
			j.add(g)
		}
	}
	worth := 0.0
	for _, r := range j.queues[draw] {
		if n := r.n - j.sim.Bind(r.class, r.n); n > 0 {
			if left == nil {
				left = make(map[int]int)
			}
			left[r.class] += n
			if j.reserved[r.class] == nil {
				worth += float64(n) * j.units[r.class]
			}
			if worth > most {
				return left, false
			}
		}
	}
	j.keepReserved(left)
	return left, true
}

// isStuck tells whether those who are left are those whom no machine has helped yet.
func (j *judge) isStuck(left map[int]int) bool {
	for c, n := range left {
		if n > j.stuck[c] {
			return false
		}
	}
	return j.lost >= 0
}

// assess tells whether a purchase is better than another, in the mean of the draws.
func (j *judge) assess(x []int, than *trial) (trial, bool) {
	t, ok := j.try(x, 0, than.score)
	if !ok || !t.better(than) {
		return t, false
	}
	t, ok = j.judgeDrawn(x, than.score)
	return t, ok && t.better(than)
}

// judgeDrawn tries a purchase in every draw; false: the first costs as much as below, or
// more, even without what a second purchase costs beside its price.
func (j *judge) judgeDrawn(x []int, below float64) (out trial, ok bool) {
	for draw := range judgeDraws {
		t, ok := j.try(x, draw, below)
		if !ok && draw == 0 {
			return t, false
		}
		if !ok {
			out.score = max(out.score, below)
			return out, true
		}
		if draw == 0 {
			out = t
			continue
		}
		if t.left > out.left {
			out.all = t.all
		}
		out.left, out.open, out.lost, out.score = max(out.left, t.left), max(out.open, t.open), max(out.lost, t.lost), (out.score+t.score)/2
	}
	return out, true
}

// try makes the cluster of a purchase, lets kube-scheduler bind, and covers what it leaves;
// false: that costs as much as below, or more.
func (j *judge) try(x []int, draw int, below float64) (t trial, ok bool) {
	m := j.sim.Mark()
	defer j.sim.Rollback(m)
	first := j.price(x)
	t = trial{machines: x, all: x, score: first}
	left, ok := j.run(x, draw, below-first)
	if !ok {
		return t, false
	}
	n := 0
	for _, k := range left {
		n += k
	}
	if t.lost = n; n == 0 || j.isStuck(left) {
		return t, true
	}
	rest := maps.Clone(left)
	j.keepOnNew(rest, false)
	t.all = slices.Clone(x)
	t.lost = j.coverLeft(t.all, left, j.groups)
	if j.lost < 0 || t.lost < j.lost {
		j.lost, j.stuck = t.lost, left
	}
	if t.left = n - t.lost; t.left > 0 {
		both := j.price(t.all)
		for c, k := range rest {
			if j.units[c] > 0 {
				t.open += k
			}
		}
		t.score = both * (1 + againCosts + waitingCosts*float64(t.left)/float64(max(j.pods, 1)))
	}
	return t, true
}

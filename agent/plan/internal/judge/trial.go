package judge

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"
)

// trial is a purchase as kube-scheduler would use it.
type trial struct {
	machines []int   // by group
	all      []int   // with those of the second purchase, for what the scheduler leaves
	lacked   [][]int // all, of each draw that left pods
	draws    int     // how many it has stood
	left     int     // pods that the second purchase is for
	open     int     // of these, in the first draw, pods that the machines have no room for by size: no packing can claim them
	lost     int     // pods that are left in the end
	score    float64 // the price of both, and what a second purchase costs beside its price
	zones    int     // zones with a node or a machine of it; see zonesWith
}

// What a second purchase costs beside its price, as shares of the whole: for its being one,
// and for each pod that has to wait for it, by the share of the pods that it is; at most waitingMost where the machines have
// room for all pods by size. There, pods keep off the machines of others, and machines for all at once can be twice as many.
const (
	againCosts   = 0.10
	waitingCosts = 2.7
	waitingMost  = 0.40
)

// better tells whether a trial helps more pods than another, or as many for less.
func (t *trial) better(o *trial) bool { return t.compare(o) < 0 }

// compare puts the trial first that leaves fewer pods in the end. Of two that leave as many, one
// whose machines no packing can claim for all its pods is last: the next round would buy
// for them before the machines have joined. Then the price counts, and of equal prices the number of zones, where pods are
// spread over zones: machines in one zone take all pods of a spread, and leave them without a second zone (kp3272).
func (t *trial) compare(o *trial) int {
	if c := cmp.Compare(t.lost, o.lost); c != 0 {
		return c
	}
	if (t.open > 0) != (o.open > 0) {
		return cmp.Compare(t.open, o.open)
	}
	if math.Abs(t.score-o.score) < 1e-9 {
		return cmp.Compare(o.zones, t.zones)
	}
	return cmp.Compare(t.score, o.score)
}

// mark is a state of the model that a trial goes back to.
type mark struct {
	sim    schedsim.Mark
	bought int // how many machines had been added
}

func (j *model) mark() mark { return mark{j.sim.Mark(), len(j.bought)} }

// rollback takes away what was bound and added since a mark. It costs what was done since then.
func (j *model) rollback(m mark) {
	j.sim.Rollback(m.sim)
	j.bought = j.bought[:m.bought]
}

// placed are the pods that were bound since a mark.
func (j *model) placed(m mark) []schedsim.Placement { return j.sim.Placed(m.sim) }

// run makes the cluster of a purchase and binds all pods. It returns the pods by class that
// are left and that no reservation stands for; false: a purchase for them would cost more
// than most, or the steps of the round do not suffice. The caller rolls back.
// It costs M machines and Sim.Bind of P in runs of one class.
func (j *model) run(x []int, draw int, most float64) (left map[int]int, ok bool) {
	j.sim.Seed(uint64(draw) + 1)
	j.addMachines(x)
	worth := 0.0
	for _, r := range j.queue(draw) {
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
	j.retry(left, draw)
	j.keepReserved(left)
	return left, !j.sim.Spent()
}

// retry binds pods that were left and that depend on others as long as that helps: kube-scheduler tries them again when
// a pod that they may wait for is bound.
func (j *model) retry(left map[int]int, draw int) {
	for again := true; again; {
		again = false
		for _, r := range j.queue(draw) {
			if n := min(r.n, left[r.class]); n > 0 && j.constrained(r.class) {
				n = j.sim.Bind(r.class, n)
				left[r.class] -= n
				again = again || n > 0
			}
		}
	}
}

// addMachines adds the machines of a purchase.
func (j *model) addMachines(x []int) {
	machines, _ := j.spread(x)
	for g, n := range machines {
		for range n {
			j.add(g)
		}
	}
}

// sumOf is how many pods there are of all classes.
func sumOf(left map[int]int) (n int) {
	for _, k := range left {
		n += k
	}
	return n
}

// isStuck tells whether only pods are left that no machine has helped yet.
func (j *model) isStuck(left map[int]int) bool {
	for c, n := range left {
		if n > j.stuck[c] {
			return false
		}
	}
	return j.lost >= 0
}

// assess tells whether a purchase is better than another: in the first draw, and in the mean of so many.
func (j *model) assess(x []int, than *trial, draws int) (trial, bool) {
	t, ok := j.try(x, 0, than.score)
	if !ok || !t.better(than) {
		return t, false
	}
	t = j.drawn(t, draws, than.score)
	return t, t.draws >= than.draws && t.better(than)
}

// drawn lets a trial stand more draws, until it has stood so many, or must cost as much as below in their mean, or the
// steps are used up: those of the search after judgeDraws, those of the round before.
func (j *model) drawn(t trial, draws int, below float64) trial {
	for ; t.draws < min(draws, judgeDraws) && j.sim.Steps < j.most || t.draws < draws && j.sim.Steps < j.limit; t.draws++ {
		rest := j.price(t.machines) * float64(draws-t.draws-1) // what the draws after this one cost at least
		o, ok := j.try(t.machines, t.draws, below*float64(draws)-t.score*float64(t.draws)-rest)
		if !ok && !j.sim.Spent() {
			t.score = max(t.score, below)
		}
		if !ok {
			return t
		}
		if o.left > t.left {
			t.all = o.all
		}
		t.lacked = slices.Concat(t.lacked, o.lacked)
		t.score = (t.score*float64(t.draws) + o.score) / float64(t.draws+1)
		t.left, t.lost = max(t.left, o.left), max(t.lost, o.lost)
	}
	return t
}

// try makes the cluster of a purchase, lets kube-scheduler bind, and covers what it leaves;
// false: that costs as much as below, or more, or the steps of the round do not suffice.
// It costs run, coverLeft and keepOnNew.
func (j *model) try(x []int, draw int, below float64) (t trial, ok bool) {
	m := j.mark()
	defer j.rollback(m)
	first := j.price(x)
	t = trial{machines: x, all: x, score: first, draws: 1, zones: j.zonesWith(x)}
	left, ok := j.run(x, draw, below-first)
	if !ok {
		return t, false
	}
	n := sumOf(left)
	if t.lost = n; n == 0 || j.isStuck(left) {
		return t, true
	}
	rest := maps.Clone(left)
	j.keepOnNew(rest)
	t.all = slices.Clone(x)
	if here := j.sameZones(x); len(here) > 0 { // a machine in another zone makes it a domain for what is spread
		j.coverLeft(t.all, left, here)
	}
	if t.lost = j.coverLeft(t.all, left, j.groups); j.sim.Spent() {
		return t, false
	}
	t.left = n - t.lost
	t.lost -= j.keepHeadroom(left)
	if j.lost < 0 || t.lost < j.lost {
		j.lost, j.stuck = t.lost, left
	}
	if t.left > 0 {
		t.lacked = [][]int{t.all}
		both := j.price(t.all)
		for c, k := range rest {
			if j.units[c] > 0 {
				t.open += k
			}
		}
		waiting := waitingCosts * float64(t.left) / float64(max(j.pods, 1))
		if t.open == 0 {
			waiting = min(waiting, waitingMost)
		}
		t.score = both * (1 + againCosts + waiting)
	}
	return t, true
}

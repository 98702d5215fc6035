package plan

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// The blender buys machines of several kinds for several classes at the least cost. It
// is the packer's linear programme (columns.go) with a cost for every kind of machine:
// its columns are contents of one machine of any kind, found as they are needed. Its
// solution is rounded by a dive: the whole part is taken, then one column that is left
// in part, and the programme is solved again for the rest; where the rest can no longer
// beat the best answer, the dive goes back and takes another column. Work is counted in
// steps and not in time, so that equal questions have equal answers on any machine.
// Products are converted explicitly so that no architecture fuses them into another
// result.
const (
	blendWork    = 120_000_000 // of one question; a step of a search is 40, a pivot its square
	blendTied    = 6_000_000   // the same where pods are tied, which the mix knows little of
	blendPods    = 1_500_000   // more of it per pod
	blendStep    = 40
	blendTries   = 3      // columns that are tried one after the other
	blendSmall   = 40     // classes up to which every level looks for a whole answer, and the programme for its true end
	blendWide    = 64     // classes up to which a content is looked for by exchanging pairs, which takes their cube
	blendSteps   = 500    // of one search for a column
	blendExact   = 2_000  // the same where there are few classes
	blendPool    = 400    // columns that are remembered from one programme to the next
	blendEnough  = 1.02   // a column worth this much more than its machine is taken at once
	blendClose   = 1.0005 // an answer this close to the bound is the answer
	blendEps     = 1e-9
	blendWeights = 8     // weights of cpu and memory that one search tries
	blendEntered = 3_000 // columns entered in one programme
)

// kind is a group's machine.
type kind struct {
	group int
	cost  float64
	limit int
	empty []int64
	may   []bool // by row: whether it takes the class at all
}

// filled is times machines of a kind with the same content.
type filled struct {
	kind    int
	times   int
	content []int32 // by row
}

// blender is one question.
type blender struct {
	kinds []kind
	sizes [][]int64 // by row
	count []int     // by row

	most  int // work that the question is worth at most
	work  int // that is left
	pool  []filled
	best  []filled
	cost  float64 // of best
	lower float64 // what no answer can go below, as far as is known
}

// run returns the cheapest answer that was found; nil when there is none.
func (b *blender) run() []filled {
	pods := 0
	for _, n := range b.count {
		pods += n
	}
	work := min(b.most, blendPods*pods)
	dive := work / 2
	b.work = dive
	b.dive(slices.Clone(b.count), make([]int, len(b.kinds)), nil, 0, true)
	b.work += work - dive
	b.mend()
	return gather(b.best)
}

// dive completes out, which costs cost and has used up used of the kinds, and tells
// whether the search is over.
func (b *blender) dive(left, used []int, out []filled, cost float64, root bool) bool {
	if !slices.ContainsFunc(left, func(n int) bool { return n > 0 }) {
		return b.take(out, cost)
	}
	if b.work <= 0 {
		return true
	}
	p := b.programme(left, used)
	spare := 0
	if root { // something must be left for an answer
		spare = b.work / 3
	}
	b.work -= spare
	value := p.solve()
	b.work += spare
	if root && p.done {
		b.lower = value
	}
	if cost+value >= b.cost*(1-1e-7) {
		return false
	}
	y := p.prices()
	if whole := p.whole(); len(whole) > 0 {
		before := len(out)
		for _, f := range whole {
			out, cost = b.put(f, left, used, out, cost)
		}
		b.complete(left, used, out, cost, y)
		if root && len(p.rows) > blendSmall && b.most == blendWork {
			b.open(left, used, out, cost)
		}
		return len(out) > before && b.dive(left, used, out, cost, false)
	}
	if root || len(b.sizes) <= blendSmall {
		b.complete(left, used, out, cost, y)
	}
	broken := p.broken()
	if len(p.rows) > blendSmall { // many classes: several at once, and no way back
		before := len(out)
		for _, f := range broken[:min(len(broken), 1+len(p.rows)/20)] {
			out, cost = b.put(f, left, used, out, cost)
		}
		return len(out) > before && b.dive(left, used, out, cost, false)
	}
	for _, f := range broken[:min(len(broken), blendTries)] {
		l, u := slices.Clone(left), slices.Clone(used)
		o, c := b.put(f, l, u, slices.Clone(out), cost)
		if c > cost && b.dive(l, u, o, c, false) {
			return true
		}
	}
	return b.cost <= b.lower*blendClose
}

// take keeps an answer that is better, and tells whether it is good enough.
func (b *blender) take(out []filled, cost float64) bool {
	for i := range out { // what a machine carries at last may fit a cheaper one
		f := out[i]
		b.shrink(&f)
		cost -= float64(float64(f.times) * (b.kinds[out[i].kind].cost - b.kinds[f.kind].cost))
	}
	if cost < b.cost*(1-1e-9) {
		b.best, b.cost = slices.Clone(out), cost
	}
	return b.cost <= b.lower*blendClose
}

// put adds machines to an answer: no more of the content than is left, no more machines
// than the kind has.
func (b *blender) put(f filled, left, used []int, out []filled, cost float64) ([]filled, float64) {
	for f.times > 0 {
		n := min(f.times, b.kinds[f.kind].limit-used[f.kind])
		content := make([]int32, len(left))
		any := false
		for r, want := range f.content {
			if want == 0 {
				continue
			}
			if content[r] = min(want, int32(left[r])); content[r] > 0 {
				any = true
				n = min(n, left[r]/int(content[r]))
			}
		}
		if n <= 0 || !any {
			return out, cost
		}
		for r, k := range content {
			left[r] -= n * int(k)
		}
		used[f.kind] += n
		cost += float64(float64(n) * b.kinds[f.kind].cost)
		out = append(out, filled{f.kind, n, content})
		f.times -= n
	}
	return out, cost
}

// complete finishes an answer by the machine that is worth most for its cost, again and
// again, at the prices y of a programme.
func (b *blender) complete(left, used []int, out []filled, cost float64, y []float64) {
	left, used, out = slices.Clone(left), slices.Clone(used), slices.Clone(out)
	worth := slices.Clone(y)
	for r := range worth {
		worth[r] = max(worth[r], 1e-6*b.kinds[0].cost)
	}
	steps := 1
	switch {
	case len(b.sizes) <= blendSmall:
		steps = blendSteps
	case len(b.sizes) <= blendWide:
		steps = 300
	}
	for {
		need := 0.0
		for r, n := range left {
			need += float64(float64(n) * worth[r])
		}
		if need <= 0 {
			b.take(out, cost)
			return
		}
		best, score := filled{times: 1}, 0.0
		for k := range b.kinds {
			if used[k] >= b.kinds[k].limit {
				continue
			}
			s := b.search(k, left, worth, steps, math.Inf(1))
			if v := s.value / b.kinds[k].cost; v > score*(1+1e-9) {
				score, best.kind, best.content = v, k, s.best
			}
		}
		if score == 0 || cost >= b.cost || b.work <= 0 && !math.IsInf(b.cost, 1) {
			return
		}
		best.times = 1
		if len(b.sizes) > blendSmall && need > 20*score*b.kinds[best.kind].cost {
			best.times = math.MaxInt32
		}
		out, cost = b.put(best, left, used, out, cost)
	}
}

// shrink moves a content to the cheapest kind of machine that holds it.
func (b *blender) shrink(f *filled) {
	sum := make([]int64, len(b.kinds[f.kind].empty))
	for r, n := range f.content {
		if n > 0 {
			fit.Take(sum, b.sizes[r], -int(n))
		}
	}
kinds:
	for k := range b.kinds { // by cost
		o := &b.kinds[k]
		if o.cost >= b.kinds[f.kind].cost || o.limit < math.MaxInt16 && o.limit < f.times+b.count0() {
			continue
		}
		for j, v := range sum {
			if v > 0 && v > o.empty[j] {
				continue kinds
			}
		}
		for r, n := range f.content {
			if n > 0 && !o.may[r] {
				continue kinds
			}
		}
		f.kind = k
		return
	}
}

// count0 bounds how many machines an answer may have: with a limit below it, moving a
// content to another kind could go beyond the limit.
func (b *blender) count0() int {
	n := 0
	for _, f := range b.best {
		n += f.times
	}
	return n
}

// seeker is the search for the most valuable content of one machine: depth first over
// the classes by worth per share, cut off by the fractional answer to one constraint
// that combines the axes.
type seeker struct {
	b     *blender
	k     int
	left  []int
	y     []float64
	order []int
	share []float64 // by position
	room  []int64
	have  []int32
	best  []int32
	value float64
	steps int
	stop  float64 // a value that is good enough once some steps are done
	soon  int
	ranks []ranked
	rest  [2]float64 // shares of cpu and memory that the last greedy content left
}

func (b *blender) search(k int, left []int, y []float64, steps int, stop float64) *seeker {
	s := &seeker{b: b, k: k, left: left, y: y, room: slices.Clone(b.kinds[k].empty), have: make([]int32, len(left)), best: make([]int32, len(left)), steps: steps, stop: stop, soon: steps / 8}
	least := math.Inf(1)
	var rows []int
	for r := range left {
		if left[r] > 0 && y[r] > blendEps && b.kinds[k].may[r] {
			rows = append(rows, r)
		}
	}
	try := func(w [3]float64) {
		order, share := s.weigh(rows, w)
		s.greedy(order)
		if bound := s.fractional(order, share, 0, 1); bound < least*(1-1e-12) {
			least, s.order, s.share = bound, order, share
		}
	}
	try([3]float64{0.3, 0.3, 0.4})
	low, high := 0.0, 1.0 // of memory; where cpu and memory run out together is most to be had
	for range blendWeights {
		w := (low + high) / 2
		try([3]float64{1 - w, w, 0})
		if s.rest[1] < s.rest[0] {
			low = w
		} else {
			high = w
		}
	}
	b.work -= blendStep * len(rows)
	for steps > 0 && s.value < stop && s.swap(rows, steps > 1) {
	}
	if steps > 1 && s.value < stop {
		s.try(0, 0, 1)
	}
	b.work -= blendStep * (steps - s.steps)
	return s
}

func (s *seeker) weigh(rows []int, w [3]float64) ([]int, []float64) {
	full := s.b.kinds[s.k].empty
	share := make([]float64, len(s.left))
	for _, r := range rows {
		size := s.b.sizes[r]
		for i, axis := range [3]int{0, 1, 3} {
			if full[axis] > 0 {
				share[r] += float64(w[i] * float64(size[axis]) / float64(full[axis]))
			}
		}
		share[r] = max(share[r], 1e-9)
	}
	s.ranks = s.ranks[:0]
	for _, r := range rows {
		s.ranks = append(s.ranks, ranked{s.y[r] / share[r], r})
	}
	slices.SortFunc(s.ranks, func(a, b ranked) int {
		switch {
		case a.worth > b.worth:
			return -1
		case a.worth < b.worth:
			return 1
		}
		return a.row - b.row
	})
	order, by := make([]int, len(rows)), make([]float64, len(rows))
	for i, x := range s.ranks {
		order[i], by[i] = x.row, share[x.row]
	}
	return order, by
}

// ranked is a class and what it is worth for its share of a machine.
type ranked struct {
	worth float64
	row   int
}

// greedy fills a machine by one order.
func (s *seeker) greedy(order []int) {
	room := s.room
	value := 0.0
	for _, r := range order {
		n := min(fit.Most(room, s.b.sizes[r]), s.left[r])
		s.have[r] = int32(n)
		if n > 0 {
			fit.Take(room, s.b.sizes[r], n)
			value += float64(s.y[r] * float64(n))
		}
	}
	if value > s.value+1e-12 {
		s.value = value
		copy(s.best, s.have)
	}
	for j := range s.rest {
		s.rest[j] = float64(room[j]) / float64(max(s.b.kinds[s.k].empty[j], 1))
	}
	for _, r := range order {
		if n := int(s.have[r]); n > 0 {
			fit.Take(room, s.b.sizes[r], -n)
		}
		s.have[r] = 0
	}
}

// swap looks for a better content near the best one: with one or two pods less of a
// class, or with one more that has to be made room for, and then filled up again. It
// tells whether it found one.
func (s *seeker) swap(rows []int, wide bool) bool {
	b := s.b
	room := slices.Clone(b.kinds[s.k].empty)
	for _, r := range rows {
		fit.Take(room, b.sizes[r], int(s.best[r]))
	}
	tries := 0
	better := func(without, with, n int) bool {
		tries++
		copy(s.have, s.best)
		copy(s.room, room)
		value := s.value
		change := func(r, n int) {
			fit.Take(s.room, b.sizes[r], n)
			s.have[r] += int32(n)
			value += float64(s.y[r] * float64(n))
		}
		change(without, -n)
		if with >= 0 {
			if fit.Most(s.room, b.sizes[with]) == 0 {
				return false
			}
			change(with, 1)
		}
		for _, r := range s.order {
			if r == without && with < 0 {
				continue
			}
			if n := min(fit.Most(s.room, b.sizes[r]), s.left[r]-int(s.have[r])); n > 0 {
				change(r, n)
			}
		}
		if value <= s.value*(1+1e-9) {
			return false
		}
		s.value = value
		copy(s.best, s.have)
		return true
	}
	found := false
search:
	for _, r := range s.order {
		for n := 1; n <= min(2, int(s.best[r])); n++ {
			if found = better(r, -1, n); found {
				break search
			}
			for _, q := range s.order {
				if !wide || q == r || int(s.best[q]) >= s.left[q] {
					continue
				}
				if found = better(r, q, n); found {
					break search
				}
			}
		}
	}
	b.work -= 5 * tries * len(s.order)
	clear(s.have)
	copy(s.room, b.kinds[s.k].empty)
	return found
}

// fractional is the most that positions from k on are worth in what is left of the
// combined constraint.
func (s *seeker) fractional(order []int, share []float64, k int, left float64) float64 {
	sum := 0.0
	for ; k < len(order) && left > 0; k++ {
		r := order[k]
		n := float64(s.left[r])
		if take := float64(n * share[k]); take < left {
			sum += float64(n * s.y[r])
			left -= take
			continue
		}
		return sum + float64(s.y[r]*left/share[k])
	}
	return sum
}

func (s *seeker) try(k int, value, left float64) {
	if value > s.value+1e-12 {
		s.value = value
		copy(s.best, s.have)
	}
	if k == len(s.order) || s.steps <= 0 {
		return
	}
	s.steps--
	if s.soon--; s.soon < 0 && s.value > s.stop {
		return
	}
	if value+s.fractional(s.order, s.share, k, left) <= s.value*(1+1e-9) {
		return
	}
	r := s.order[k]
	size := s.b.sizes[r]
	for n := min(fit.Most(s.room, size), s.left[r]); n >= 0; n-- {
		fit.Take(s.room, size, n)
		s.have[r] = int32(n)
		s.try(k+1, value+float64(s.y[r]*float64(n)), left-float64(s.share[k]*float64(n)))
		s.have[r] = 0
		fit.Take(s.room, size, -n)
		if s.steps <= 0 {
			return
		}
	}
}

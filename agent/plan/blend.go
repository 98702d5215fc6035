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

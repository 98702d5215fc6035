package mixed

import (
	"cmp"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// The mixed packing buys machines of several kinds for several classes at the least cost. Its
// columns are contents of one machine of any kind, found as they are needed. Its
// solution is rounded by a dive: the whole part is taken, then one column that is left
// in part, and the master problem is solved again for the rest; where the rest can no longer
// beat the best answer, the dive goes back and takes another column. Work is counted in
// steps and not in time, so that equal questions have equal answers on any machine.
// Products are converted explicitly so that no architecture fuses them into another
// result.
const (
	Steps            = 2_000_000 // of one problem
	ConstrainedSteps = 150_000   // the same where pods are constrained, which the mix knows little of
	mixedPodWork     = 1_500_000 // of one pod
	mixedStep        = 40        // work of one step of a search; that of a pivot is its square
	mixedTries       = 3         // columns that are tried one after the other
	mixedSmall       = 40        // classes up to which every level looks for a whole answer, and the master problem for its true end
	mixedWide        = 64        // classes up to which a content is looked for by exchanging pairs, which takes their cube
	mixedSteps       = 500       // of one search for a column
	mixedExact       = 2_000     // the same where there are few classes
	mixedPool        = 400       // columns that are remembered from one master problem to the next
	mixedEnough      = 1.02      // a column worth this much more than its machine is taken at once
	mixedClose       = 1.0005    // an answer this close to the bound is the answer
	mixedEps         = 1e-9
	mixedWeights     = 8     // weights of cpu and memory that one search tries
	mixedEntered     = 3_000 // columns entered in one master problem
)

// MachineType is a group's machine.
type MachineType struct {
	Group int
	Cost  float64
	Limit int
	Empty []int64
	May   []bool // by row: whether it takes the class at all
}

// Bins is times machines of a kind with the same content.
type Bins struct {
	MachineType int
	Times       int
	Content     []int32 // by row
}

// Problem is one question.
type Problem struct {
	MachineTypes []MachineType
	Sizes        [][]int64 // by row
	Count        []int     // by row

	Most  int // steps that the question is worth at most
	work  int // that is left
	Pool  []Bins
	Best  []Bins
	Cost  float64 // of best
	lower float64 // what no answer can go below, as far as is known
}

// Run returns the cheapest answer that was found, nil when there is none, and the steps that it took.
func (b *Problem) Run() (best []Bins, steps int) {
	pods := 0
	for _, n := range b.Count {
		pods += n
	}
	work := min(b.Most*mixedStep, mixedPodWork*pods)
	b.work = work
	b.dive(slices.Clone(b.Count), make([]int, len(b.MachineTypes)), nil, 0, true)
	for i := range b.Best {
		b.toCheapestType(&b.Best[i])
	}
	return gather(b.Best), (work - b.work) / mixedStep
}

// dive completes out, which costs cost and has used up used of the kinds, and tells
// whether the search is over.
func (b *Problem) dive(left, used []int, out []Bins, cost float64, root bool) bool {
	if !slices.ContainsFunc(left, func(n int) bool { return n > 0 }) {
		return b.take(out, cost)
	}
	if b.work <= 0 {
		return true
	}
	p := b.newMaster(left, used)
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
	if cost+value >= b.Cost*(1-1e-7) {
		return false
	}
	y := p.prices()
	if whole := p.integerColumns(); len(whole) > 0 {
		before := len(out)
		for _, f := range whole {
			out, cost = b.put(f, left, used, out, cost)
		}
		b.complete(left, used, out, cost, y)
		if root && len(p.rows) > mixedSmall && b.Most > ConstrainedSteps {
			b.WarmStarts(left, used, out, cost)
		}
		return len(out) > before && b.dive(left, used, out, cost, false)
	}
	if root || len(b.Sizes) <= mixedSmall {
		b.complete(left, used, out, cost, y)
	}
	broken := p.fractionalColumns()
	if len(p.rows) > mixedSmall { // many classes: several at once, and no way back
		before := len(out)
		for _, f := range broken[:min(len(broken), 1+len(p.rows)/20)] {
			out, cost = b.put(f, left, used, out, cost)
		}
		return len(out) > before && b.dive(left, used, out, cost, false)
	}
	for _, f := range broken[:min(len(broken), mixedTries)] {
		l, u := slices.Clone(left), slices.Clone(used)
		o, c := b.put(f, l, u, slices.Clone(out), cost)
		if c > cost && b.dive(l, u, o, c, false) {
			return true
		}
	}
	return b.Cost <= b.lower*mixedClose
}

// take keeps an answer that is better, and tells whether it is good enough.
func (b *Problem) take(out []Bins, cost float64) bool {
	for i := range out { // what a machine carries at last may fit a cheaper one
		f := out[i]
		b.toCheapestType(&f)
		cost -= float64(float64(f.Times) * (b.MachineTypes[out[i].MachineType].Cost - b.MachineTypes[f.MachineType].Cost))
	}
	if cost < b.Cost*(1-1e-9) {
		b.Best, b.Cost = slices.Clone(out), cost
	}
	return b.Cost <= b.lower*mixedClose
}

// put adds machines to an answer: no more of the content than is left, no more machines
// than the kind has.
func (b *Problem) put(f Bins, left, used []int, out []Bins, cost float64) ([]Bins, float64) {
	for f.Times > 0 {
		n := min(f.Times, b.MachineTypes[f.MachineType].Limit-used[f.MachineType])
		content := make([]int32, len(left))
		any := false
		for r, want := range f.Content {
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
		used[f.MachineType] += n
		cost += float64(float64(n) * b.MachineTypes[f.MachineType].Cost)
		out = append(out, Bins{f.MachineType, n, content})
		f.Times -= n
	}
	return out, cost
}

// complete finishes an answer by the machine that is worth most for its cost, again and
// again, at the prices y of a master problem.
func (b *Problem) complete(left, used []int, out []Bins, cost float64, y []float64) {
	left, used, out = slices.Clone(left), slices.Clone(used), slices.Clone(out)
	worth := slices.Clone(y)
	for r := range worth {
		worth[r] = max(worth[r], 1e-6*b.MachineTypes[0].Cost)
	}
	steps := 1
	switch {
	case len(b.Sizes) <= mixedSmall:
		steps = mixedSteps
	case len(b.Sizes) <= mixedWide:
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
		best, score := Bins{Times: 1}, 0.0
		for k := range b.MachineTypes {
			if used[k] >= b.MachineTypes[k].Limit {
				continue
			}
			s := b.knapsack(k, left, worth, steps, math.Inf(1))
			if v := s.value / b.MachineTypes[k].Cost; v > score*(1+1e-9) {
				score, best.MachineType, best.Content = v, k, s.best
			}
		}
		if score == 0 || cost >= b.Cost || b.work <= 0 && !math.IsInf(b.Cost, 1) {
			return
		}
		best.Times = 1
		if len(b.Sizes) > mixedSmall && need > 20*score*b.MachineTypes[best.MachineType].Cost {
			best.Times = math.MaxInt32
		}
		out, cost = b.put(best, left, used, out, cost)
	}
}

// toCheapestType moves a content to the cheapest kind of machine that holds it.
func (b *Problem) toCheapestType(f *Bins) {
	sum := make([]int64, len(b.MachineTypes[f.MachineType].Empty))
	for r, n := range f.Content {
		if n > 0 {
			binpack.Sub(sum, b.Sizes[r], -int(n))
		}
	}
kinds:
	for k := range b.MachineTypes { // by cost
		o := &b.MachineTypes[k]
		if o.Cost >= b.MachineTypes[f.MachineType].Cost || o.Limit < math.MaxInt16 && o.Limit < f.Times+b.count0() {
			continue
		}
		for j, v := range sum {
			if v > 0 && v > o.Empty[j] {
				continue kinds
			}
		}
		for r, n := range f.Content {
			if n > 0 && !o.May[r] {
				continue kinds
			}
		}
		f.MachineType = k
		return
	}
}

// count0 bounds how many machines an answer may have: with a limit below it, moving a
// content to another kind could go beyond the limit.
func (b *Problem) count0() int {
	n := 0
	for _, f := range b.Best {
		n += f.Times
	}
	return n
}

// gather counts equal machines together.
func gather(bins []Bins) []Bins {
	slices.SortStableFunc(bins, func(x, y Bins) int {
		return cmp.Or(cmp.Compare(x.MachineType, y.MachineType), slices.Compare(x.Content, y.Content))
	})
	var out []Bins
	for _, f := range bins {
		if n := len(out) - 1; n >= 0 && out[n].MachineType == f.MachineType && slices.Equal(out[n].Content, f.Content) {
			out[n].Times += f.Times
			continue
		}
		out = append(out, f)
	}
	return out
}

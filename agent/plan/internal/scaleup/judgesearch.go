package scaleup

import (
	"cmp"
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// judgedSolution returns an answer, or a cheaper or a fuller one, as the model of
// kube-scheduler has it: the purchase of the answer and others (candidates), each with what
// it lacks, and without what nobody needs. It stays within its steps: beyond them the best
// that was found by then is taken.
func (w *Planner) judgedSolution(best *solution) *solution {
	cost, margin := w.costs()
	if best.bought() == 0 || cost == nil || !w.judgeable() {
		return best
	}
	j := w.newJudge(cost)
	defer j.sim.Rollback(j.begin)
	defer func() { w.judgeSteps = j.sim.Steps }()
	before := j.sim.Steps
	n := j.left(best.grow)
	j.most = min(j.sim.Steps+judgeSteps+judgeTimes*(j.sim.Steps-before), judgeMost)
	stands := n <= best.unplaced()
	if stands && margin > 0 { // habits of an expander that knows no money
		if j.accept = n; j.leaves(best.grow) <= n {
			return best
		}
	}
	found := j.candidates(best.grow)
	j.accept = found[0].left
	x := found[0].machines
	for k := range min(len(found), judgeSearches) {
		if found[k].left > j.accept {
			break
		}
		j.limit = j.most * (judgeSearches + k + 2) / (2*judgeSearches + 1)
		if y := j.search(j.settle(found[k].machines)); k == 0 || j.price(y) < j.price(x)-1e-9 && j.leaves(y) <= j.accept {
			x = y
		}
	}
	if stands && j.price(x) >= j.price(best.grow)*(1-margin)-1e-9 && j.leaves(best.grow) <= j.accept {
		return best
	}
	return j.solution(x)
}

// judgeSearches is from how many candidates the search sets out.
const judgeSearches = 2

// candidate is a purchase and how many pods it leaves.
type candidate struct {
	machines []int
	left     int
	price    float64
}

// left is how many pods a purchase leaves in the first draw.
func (j *judge) left(x []int) int {
	m := j.sim.Mark()
	defer j.sim.Rollback(m)
	_, n := j.run(x, 0, 1<<30)
	return n
}

// candidates are purchases that leave as few pods as any, the cheapest first: the answer's,
// and the cheapest of those that cover the pods machine by machine (covers). Half of the
// round's steps are theirs.
func (j *judge) candidates(first []int) (out []candidate) {
	j.limit = j.most / 2
	try := func(x []int) {
		x = slices.Clone(x)
		j.cover(x, j.groups)
		if !slices.ContainsFunc(out, func(o candidate) bool { return slices.Equal(o.machines, x) }) {
			out = append(out, candidate{machines: x, left: j.left(x), price: j.price(x)})
		}
	}
	rough := j.covers()
	try(first)
	for k := range min(len(rough), judgeCovered) {
		if k == 0 || j.sim.Steps < j.limit {
			try(rough[k].machines)
		}
	}
	slices.SortStableFunc(out, compareCandidates)
	return out
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.price, b.price))
}

// judgeCovered is how many covers are looked at closely.
const judgeCovered = 4

// covers are the purchases that fill machine after machine with what is left on the nodes
// that are there: of all groups; of those in some of the zones, where a zone without a node
// is no domain; and of one group as far as it goes. The cheapest is first.
func (j *judge) covers() (out []candidate) {
	sets := append([][]int{j.groups}, j.zones()...)
	for _, g := range j.promising() {
		sets = append(sets, []int{g})
	}
	m := j.sim.Mark()
	defer j.sim.Rollback(m)
	x := make([]int, len(j.cost))
	left := make(map[int]int)
	for _, r := range j.queues[0] {
		left[r.class] += r.n
	}
	for k, groups := range sets {
		if k > 0 && j.sim.Steps > j.limit {
			break
		}
		m := j.sim.Mark()
		c := candidate{machines: slices.Clone(x)}
		rest := maps.Clone(left)
		if c.left = j.coverLeft(c.machines, rest, groups); c.left > 0 && k > 0 {
			c.left = j.coverLeft(c.machines, rest, j.groups)
		}
		c.price = j.price(c.machines)
		j.sim.Rollback(m)
		out = append(out, c)
	}
	slices.SortStableFunc(out, compareCandidates)
	return out
}

// zones are the groups of some of the zones.
func (j *judge) zones() (out [][]int) {
	b := j.w.topology
	if b == nil {
		return nil
	}
	for _, cells := range j.w.zoneSubsets() {
		var groups []int
		for _, g := range j.groups {
			if cells != nil && cells[b.GroupDomain[g]] {
				groups = append(groups, g)
			}
		}
		if len(groups) > 0 {
			out = append(out, groups)
		}
	}
	return out
}

// judgeFirst is how many groups are tried as the first one.
const judgeFirst = 12

// promising are the groups that would be cheapest if all pods were fluid.
func (j *judge) promising() []int {
	need := j.needs()
	fluid := func(g int) (worst float64) {
		for k, n := range need {
			if n > 0 && j.rooms[g][k] > 0 {
				worst = max(worst, float64(n)/float64(j.rooms[g][k])*j.cost[g])
			}
		}
		return worst
	}
	out := slices.Clone(j.groups)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(fluid(a), fluid(b)) })
	return out[:min(len(out), judgeFirst)]
}

// quickSolution is a first answer where the judge betters it; nil: it does not judge this
// round.
func (w *Planner) quickSolution() *solution {
	cost, margin := w.costs()
	if cost == nil || margin > 0 || !w.judgeable() {
		return nil
	}
	w.pool = min(w.pool, judgePool)
	return w.solveOnce(false, false)
}

// judgePool is what the first answer may spend on columns.
const judgePool = 0

// settle adds machines until a purchase stands all draws.
func (j *judge) settle(x []int) []int {
	x = slices.Clone(x)
	for draw := range judgeDraws {
		for range judgeCovers {
			m := j.sim.Mark()
			left, n := j.run(x, draw, 1<<30)
			before := j.price(x)
			if n > j.accept {
				j.coverLeft(x, left, j.groups)
			}
			j.sim.Rollback(m)
			if j.price(x) == before {
				break
			}
		}
	}
	return x
}

// exchange is a step of the search: machines of a group go, others come.
type exchange struct {
	out, n int // group, and how many of its machines go
	in, m  int // and come
	saves  float64
}

// search drops machines and exchanges them for cheaper ones as long as nobody more is left,
// what saves most first, within its steps.
func (j *judge) search(x []int) []int {
	moves := j.moves(x)
	need := j.needs()
	y := slices.Clone(x)
	for any := true; any; {
		any = false
		for i := 0; i < len(moves) && j.sim.Steps < j.limit; {
			m := &moves[i]
			if x[m.out] < m.n {
				i++
				continue
			}
			copy(y, x)
			y[m.out] -= m.n
			y[m.in] += m.m
			if j.holds(y, need) && j.within(y) && j.leaves(y) <= j.accept {
				copy(x, y)
				any = true
				continue // the same once more
			}
			i++
		}
	}
	return x
}

// moves are the exchanges that save, what saves most first: some machines of a group for
// none, for fewer dear ones or for more cheap ones of another.
func (j *judge) moves(x []int) (out []exchange) {
	for _, g := range j.sold(x) {
		for n := 1; n <= 3; n++ {
			out = append(out, exchange{g, n, g, 0, float64(n) * j.cost[g]})
		}
		for _, in := range j.groups {
			if in == g {
				continue
			}
			least := int(j.cost[in]/j.cost[g]) + 1 // so many cost more than one of the other
			for _, n := range []int{1, 2, 3, least, least + 1} {
				for m := 1; m <= 3; m++ {
					if saves := float64(n)*j.cost[g] - float64(m)*j.cost[in]; saves > 1e-9 && (n == 1 || m == 1) && (n <= 3 && m < 3 || m == 1 || m == int(j.cost[g]/j.cost[in])) {
						out = append(out, exchange{g, n, in, m, saves})
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b exchange) int { return cmp.Compare(b.saves, a.saves) })
	return slices.Compact(out)
}

// sold are the groups that may be bought, and those that are.
func (j *judge) sold(x []int) []int {
	out := slices.Clone(j.groups)
	for g, n := range x {
		if n > 0 && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// needs is what the pods of the queue ask for. Where pods depend on each other, what has no
// place on a node now may have one later: less what the nodes have room for.
func (j *judge) needs() []int64 {
	need := make([]int64, j.w.Dimensions.Len())
	for _, r := range j.queues[0] {
		for k, v := range j.w.Dimensions.Class(r.class) {
			need[k] += v * int64(r.n)
		}
	}
	for i := range j.nodes {
		if j.w.topology == nil {
			break
		}
		for k := range need {
			need[k] -= max(j.sim.Room(i)[k], 0)
		}
	}
	return need
}

// holds tells whether a purchase has room for all pods as if they were fluid.
func (j *judge) holds(x []int, need []int64) bool {
	if j.accept > 0 {
		return true
	}
	for k, n := range need {
		for g, m := range x {
			if m > 0 {
				n -= int64(m) * j.rooms[g][k]
			}
		}
		if n > 0 {
			return false
		}
	}
	return true
}

// solution is the answer with a purchase, everybody where the model has put them.
func (j *judge) solution(x []int) *solution {
	w := j.w
	mark := j.sim.Mark()
	defer j.sim.Rollback(mark)
	j.run(x, 0, 1<<30)
	v := w.newSolver(false)
	copy(v.a.grow, x)
	at := make(map[int]int) // places by node
	for p := range v.a.bins {
		at[v.a.bins[p].node] = p
	}
	node := j.nodes
	for g, n := range x {
		for range n {
			at[node] = len(v.a.bins)
			v.a.bins = append(v.a.bins, bin{node: -1, group: g, room: slices.Clone(j.rooms[g]), used: true, fresh: true})
			node++
		}
	}
	demands := make(map[int][]int)
	for _, buys := range []bool{true, false} {
		for i := range w.Demands {
			if k := &w.Demands[i]; k.Buys == buys {
				demands[k.Class] = append(demands[k.Class], i)
			}
		}
	}
	for _, p := range j.sim.Placed(j.begin) {
		j.assign(v, at, demands[p.Class], p.Node, p.Count)
	}
	return &v.a
}

// assign writes pods of a class on a node down for the demands of the class.
func (j *judge) assign(v *solver, at map[int]int, demands []int, node, count int) {
	place, has := at[node]
	if !has {
		return
	}
	pl := &v.a.bins[place]
	for _, i := range demands {
		n := min(count, v.a.left[i])
		if n == 0 || !v.w.Demands[i].Buys && pl.fresh {
			continue
		}
		count -= n
		v.a.left[i] -= n
		binpack.Sub(pl.room, v.w.size(v.w.Demands[i].Class), n)
		pl.used = true
		if v.w.topology != nil {
			pl.portions = append(pl.portions, binpack.Portion{Item: i, N: n})
		}
		if pl.node < 0 || v.w.Nodes[pl.node].State == round.StateUpcoming {
			v.add(i, pl.group, n, pl.fresh)
		} else {
			v.a.on[i] += n
		}
	}
}

package judge

import (
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"
)

// solution is the solution with the purchase of a trial, each pod where the model has put it.
// It costs finalPurchase, one trial for each group that is bought, and P.
func (j *model) solution(t trial) *packing.Solution {
	j.sim.Limit = 0 // the purchase has been bound once
	m := j.mark()
	x, left, later := j.finalPurchase(&t, m)
	stranded := j.stranded(left)
	s := j.written(x, left, m)
	s.Later = later
	j.rollback(m)
	s.Reasons = j.reasons(x, stranded)
	return s
}

// finalPurchase makes the first purchase of a trial, or both at once: where the machines have no room for the pods of the second one,
// and where these depend on others or are headroom. Where other pods would take the machines of the second purchase too, it is not
// made. It returns the machines by group and the pods that are left, by class.
// It costs up to five trials, and
// judgeConfirms more where the model breaks ties otherwise than before.
func (j *model) finalPurchase(t *trial, m mark) (x []int, left, later map[int]int) {
	j.sim.ResetOrder() // the same trial is bound the same, whatever was tried before
	left = j.runFirst(t, m)
	refused, headroom := j.refused(left), j.lacksHeadroom(left)
	if slices.Equal(t.machines, t.all) || t.open == 0 && len(refused) == 0 && !headroom {
		return t.machines, left, nil
	}
	j.rollback(m)
	left = j.runBoth(t, m)
	if t.open > 0 || headroom || j.lacksHeadroom(left) || sumOf(j.refused(left)) < sumOf(refused) {
		return t.all, left, nil
	}
	j.rollback(m)
	left, _ = j.run(t.machines, 0, math.Inf(1))
	return t.machines, left, refused
}

// runFirst makes the first purchase of a trial. The model may break ties otherwise than it did in the trial: where no draw of
// that left pods that a machine would help, neither does the one that is taken, if there is such among the first few.
func (j *model) runFirst(t *trial, m mark) (left map[int]int) {
	for draw := range judgeConfirms {
		if left, _ = j.run(t.machines, draw, math.Inf(1)); t.left > 0 || !slices.ContainsFunc(j.order, func(c int) bool { return j.helps(c, left[c]) }) {
			return left
		}
		j.rollback(m)
	}
	left, _ = j.run(t.machines, 0, math.Inf(1))
	return left
}

// runBoth makes both purchases of a trial in the cluster of a mark. Pods spread over machines that were to stay free for headroom, and a
// machine more is used as well. Where headroom is left, it gets the machines of the second purchase after the pods have used those of the
// first: so the contents are remembered, and the next round does not buy again.
func (j *model) runBoth(t *trial, m mark) (left map[int]int) {
	left, _ = j.run(t.all, 0, math.Inf(1))
	if !j.lacksHeadroom(left) {
		return left
	}
	j.rollback(m)
	after, _ := j.run(t.machines, 0, math.Inf(1))
	first, _ := j.spread(t.machines)
	both, _ := j.spread(t.all)
	for g, n := range both {
		for range n - first[g] {
			j.add(g)
		}
	}
	for _, headroom := range []bool{false, true} {
		for _, c := range j.order {
			if n := after[c]; n > 0 && (j.w.HeadroomName(c) != "") == headroom {
				after[c] -= j.sim.Bind(c, n)
			}
		}
	}
	if !j.leavesMore(after, left) {
		return after
	}
	j.rollback(m)
	left, _ = j.run(t.all, 0, math.Inf(1))
	return left
}

// leavesMore tells whether more is left of a class than otherwise.
func (j *model) leavesMore(left, otherwise map[int]int) bool {
	return slices.ContainsFunc(j.order, func(c int) bool { return left[c] > otherwise[c] })
}

// lacksHeadroom tells whether pieces of headroom are left that a machine would help.
func (j *model) lacksHeadroom(left map[int]int) bool {
	for c, n := range left {
		if j.helps(c, n) && j.w.HeadroomName(c) != "" {
			return true
		}
	}
	return false
}

// refused are the pods, by class, that are left, depend on others, and would be helped by a machine. No arrangement is
// known in which the machines have a place for them.
func (j *model) refused(left map[int]int) map[int]int {
	refused := make(map[int]int)
	for c, n := range left {
		if j.helps(c, n) && j.constrained(c) {
			refused[c] = n - j.stuck[c]
		}
	}
	return refused
}

// helps tells whether a machine would help some of the pods of a class that are left.
func (j *model) helps(class, left int) bool { return j.units[class] > 0 && left > j.stuck[class] }

// written is the solution with a purchase that has been run since a mark; left are the pods that are left then.
func (j *model) written(x []int, left map[int]int, m mark) *packing.Solution {
	w := j.w
	stuck := j.stuckOf(x, left)
	v := w.packer.NewSolver(j.withMarked)
	machines, _ := j.spread(x)
	copy(v.Solution.Grow, machines)
	at := make(map[int]int) // places by node
	for p := range v.Solution.Bins {
		at[v.Solution.Bins[p].Node] = p
	}
	node := len(w.Nodes)
	place := func(g int, fresh bool) {
		at[node] = len(v.Solution.Bins)
		v.Solution.Bins = append(v.Solution.Bins, packing.Bin{Node: -1, Group: g, Room: slices.Clone(j.rooms[g]), Used: true, Fresh: fresh})
		node++
	}
	for _, g := range j.upcoming {
		place(g, false)
	}
	for _, g := range j.bought {
		place(g, true)
	}
	demands := make(map[int][]int)
	for _, buys := range []bool{true, false} {
		for i := range w.Demands {
			if k := &w.Demands[i]; k.Buys == buys {
				demands[k.Class] = append(demands[k.Class], i)
			}
		}
	}
	for _, p := range j.arrangement(j.placed(m), stuck) {
		j.assign(v, at, demands[p.Class], p.Node, p.Count)
	}
	j.assignReserved(v, demands, stuck)
	return &v.Solution
}

// assign writes pods of a class on a node down for the demands of the class.
func (j *model) assign(v *packing.Solver, at map[int]int, demands []int, node, count int) {
	place, has := at[node]
	if !has {
		return
	}
	pl := &v.Solution.Bins[place]
	for _, i := range demands {
		n := min(count, v.Solution.Left[i])
		if n == 0 || !j.w.Demands[i].Buys && pl.Fresh {
			continue
		}
		count -= n
		v.Put(pl, i, n)
	}
}

// stuckOf counts those pods that a purchase leaves and that no second purchase would help.
func (j *model) stuckOf(x []int, left map[int]int) map[int]int {
	m := j.mark()
	defer j.rollback(m)
	stuck := maps.Clone(left)
	j.coverLeft(slices.Clone(x), stuck, j.groups)
	j.keepHeadroom(stuck)
	return stuck
}

// assignReserved lets pods that are on no machine go on counting on the upcoming machines that earlier rounds bought for them and that
// the scheduler has not used yet, as far as the room there could hold them; without those that are stuck. Nothing counts on the new
// machines in this way: pods that have room there in some arrangement have a machine by now (see arrangement), and a count beside it
// would take the same room once more.
func (j *model) assignReserved(v *packing.Solver, demands map[int][]int, stuck map[int]int) {
	left := make(map[int]int)
	v.Solution.Claims = make([]int, len(v.Solution.Left))
	for c, all := range demands {
		for _, i := range all {
			if j.w.Demands[i].Buys {
				left[c] += v.Solution.Left[i]
			}
		}
		left[c] = max(left[c]-stuck[c], 0)
	}
	for c, groups := range j.keepReserved(left) {
		for g, n := range groups {
			for _, i := range demands[c] {
				if m := min(n, v.Solution.Left[i]); m > 0 && j.w.Demands[i].Buys {
					v.Claim(i, g, m)
					n -= m
				}
			}
		}
	}
}

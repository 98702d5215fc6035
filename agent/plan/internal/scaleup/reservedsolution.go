package scaleup

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// reservedSolution is the answer in which every reservation holds: a constrained answer that was found
// by trying is not found again by packing, so pods that count on what is upcoming of a
// group go on doing so, as long as its machines could hold them by size. nil: there are
// no such reservations.
func (w *Planner) reservedSolution(withMarked bool) *solution {
	if !w.HasReservations() {
		return nil
	}
	v := w.newSolver(withMarked)
	any := false
	for g := range w.Groups {
		if w.Groups[g].Template.Unknown == "" && v.expectsUpcoming(g) {
			any = v.assumeReserved(g) || any
		}
	}
	if !any {
		return nil
	}
	v.solve()
	v.verify()
	return &v.a
}

// assumeReserved counts pods on a group that had reserved its machines, without saying which.
// The room of all its machines is taken then: nobody else may count on it.
func (v *solver) assumeReserved(g int) bool {
	w := v.w
	empty, shape := w.Template(&w.Groups[g])
	have := make([]int64, len(empty))
	binpack.Sub(have, empty, -v.upcoming[g])
	for p := range v.a.bins {
		if v.a.bins[p].group == g {
			binpack.Sub(have, v.a.bins[p].room, -1)
		}
	}
	n := make([]int, len(w.Demands))
	missing := make(map[string]int)
	any := false
	for i := range w.Demands {
		k := &w.Demands[i]
		n[i] = v.reserved(i, g)
		if n[i] == 0 {
			continue
		}
		if key := round.MissingPodsKey(w.Groups[g].ID, k.Owner); k.Expected > 0 {
			n[i] = max(min(n[i], len(k.Keys)+w.Memory.ReservedMissing[key]-missing[key]), 0)
			missing[key] += max(n[i]-len(k.Keys), 0)
		}
		size := w.Dimensions.Class(k.Class)
		if binpack.MaxFit(empty, size) == 0 || !w.Takes(k.Class, g, shape) || !w.topology.Reachable(k.Class, g) {
			return false
		}
		binpack.Sub(have, size, n[i])
		any = true
	}
	if !any || slices.ContainsFunc(have, func(n int64) bool { return n < 0 }) {
		return false
	}
	for i := range n {
		if n[i] > 0 {
			v.add(i, g, n[i], false)
			v.a.left[i] -= n[i]
		}
	}
	v.upcoming[g], v.on = 0, nil
	for p := range v.a.bins {
		if v.a.bins[p].group == g {
			v.a.bins[p].room = make([]int64, len(empty))
		}
	}
	return true
}

package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// remembered is the answer in which every promise holds: a constrained answer that was found
// by trying is not found again by packing, so pods that count on what is coming of a
// group go on doing so, as long as its machines could hold them by size. nil: there are
// no such promises.
func (w *roundState) remembered() *answer {
	if !w.promised() {
		return nil
	}
	v := w.newSolver(false)
	any := false
	for g := range w.groups {
		if w.groups[g].Template.Unknown == "" && v.expects(g) {
			any = v.believe(g) || any
		}
	}
	if !any {
		return nil
	}
	v.solve()
	v.verify()
	return &v.a
}

// believe counts pods on a group that were promised its machines, without saying which.
// The room of all its machines is taken then: nobody else may count on it.
func (v *solver) believe(g int) bool {
	w := v.w
	empty, shape := w.template(&w.groups[g])
	have := make([]int64, len(empty))
	fit.Take(have, empty, -v.coming[g])
	for p := range v.a.places {
		if v.a.places[p].group == g {
			fit.Take(have, v.a.places[p].room, -1)
		}
	}
	n := make([]int, len(w.want))
	missing := make(map[string]int)
	any := false
	for i := range w.want {
		k := &w.want[i]
		n[i] = v.promised(i, g)
		if n[i] == 0 {
			continue
		}
		if key := unmade(w.groups[g].ID, k.owner); k.expected > 0 {
			n[i] = max(min(n[i], len(k.keys)+w.in.PromisedMissing[key]-missing[key]), 0)
			missing[key] += max(n[i]-len(k.keys), 0)
		}
		size := w.space.Class(k.class)
		if fit.Most(empty, size) == 0 || !w.takes(k.class, g, shape) || !w.topology.reachable(k.class, g) {
			return false
		}
		fit.Take(have, size, n[i])
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
	v.coming[g], v.on = 0, nil
	for p := range v.a.places {
		if v.a.places[p].group == g {
			v.a.places[p].room = make([]int64, len(empty))
		}
	}
	return true
}

package plan

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Choosing group by group, as expanders do, leaves money on the table: what fills one
// group's machines best leaves behind what no other group's machine is made for. So the
// answer of the expander is held against one that looks at all groups together
// (mixed.go), and the cheaper of the two is given. What is cheap is the expander's
// business: money for price, machines for least-nodes, and for least-waste money where
// every group has a price, else the size of the machines. The other expanders are an
// order of groups that an operator wants kept, so nothing is mixed for them.
const (
	mixGroups = 64  // different machines that are worth looking at together
	mixItems  = 320 // classes; more are left to the expander
	// wasteMargin is what a mix must save where only the size of machines tells: less is
	// no reason to leave the habits of least-waste.
	wasteMargin = 0.03
)

// costs is what a machine of each group costs in the eyes of the expander, and the
// share that a mix must save; nil when it has no such eyes.
func (w *upPlanner) costs() (cost []float64, margin float64) {
	first := w.expanderNames()[0]
	cost = make([]float64, len(w.groups))
	for g := range cost {
		gr := &w.groups[g]
		switch {
		case first == "least-nodes":
			cost[g] = 1
		case first == "price" && gr.Price > 0:
			cost[g] = gr.Price
		case first == "least-waste":
			margin = wasteMargin
			cost[g] = gr.sizeCost()
		default:
			return nil, 0
		}
		if cost[g] <= 0 {
			return nil, 0
		}
	}
	return cost, margin
}

// price is what an answer costs.
func (a *solution) price(cost []float64) float64 {
	sum := 0.0
	for g, n := range a.grow {
		sum += float64(n) * cost[g]
	}
	return sum
}

// mixedSolution returns an answer that looks at all groups together where that is cheaper than
// a, the expander's.
func (w *upPlanner) mixedSolution(a *solution) *solution {
	if a.bought() == 0 || len(w.groups) < 2 || len(w.demands) > mixItems {
		return a
	}
	cost, margin := w.costs()
	if cost == nil {
		return a
	}
	promised := w.hasReservations()
	marked := slices.ContainsFunc(w.nodes, func(n node) bool { return n.state == stateMarked })
	afresh := []bool{true}
	if slices.ContainsFunc(w.groups, func(g group) bool { return g.upcoming+g.grow > 0 }) {
		afresh = append(afresh, false)
	}
	best, least := a, a.price(cost)
	for _, fresh := range afresh {
		v := w.solveVerified(marked, func(v *solver) bool {
			if promised {
				v.keepReservations()
			}
			v.prices, v.fromScratch, v.first = cost, fresh, a
			return true
		})
		if c := v.a.price(cost); v.a.unplaced() <= best.unplaced() && c < least*(1-margin)-1e-9 {
			best, least, margin = &v.a, c, 0
		}
	}
	if _, margin := w.costs(); margin > 0 && w.anyZoneSpread() {
		return best // one machine is one zone: only who goes by money or by machines wants that
	}
	return w.singleMachineSolution(best, cost, least)
}

// singleMachineSolution returns an answer of one machine that takes everything, where one does and
// costs less: with pods that are constrained to zones, who goes where is settled before
// machines are looked at, and then nobody sees that one machine would do.
func (w *upPlanner) singleMachineSolution(best *solution, cost []float64, least float64) *solution {
	for g := range w.groups {
		if cost[g] >= least-1e-9 {
			continue
		}
		v := w.newSolver(false)
		room, parts, which := v.onOneMachine(g)
		if parts == nil {
			continue
		}
		k := packing{fresh: []freshBins{{times: 1, room: room, portions: parts}}}
		v.apply(&k, which, g, []int{g})
		v.placeOnExisting(func(i int) int { return v.a.left[i] }, false)
		v.verify()
		if c := v.a.price(cost); v.a.unplaced() <= best.unplaced() && c < least-1e-9 {
			best, least = &v.a, c
		}
	}
	return best
}

// onOneMachine puts all pods that buy on one machine of a group, as far as sizes and shapes are
// concerned; parts is nil where it does not take them all.
func (v *solver) onOneMachine(g int) (room []int64, parts []portion, which []int) {
	w := v.w
	gr := &w.groups[g]
	if gr.Template.Unknown != "" || len(v.partners(g)) > 1 || v.limit(g) < 1 {
		return nil, nil, nil
	}
	empty, shape := w.template(gr)
	room = slices.Clone(empty)
	for i := range w.demands {
		k := &w.demands[i]
		n := v.a.left[i]
		if !k.buys || n == 0 {
			continue
		}
		size := w.space.Class(k.class) // verify knows better than the axes: with one host alone, nothing is uneven
		if fit.MaxFit(room, size) < n || !fit.Passes(&w.s.Classes[k.class], shape) || w.topology != nil && !w.topology.reachable(k.class, g) {
			return nil, nil, nil
		}
		fit.Sub(room, size, n)
		parts, which = append(parts, portion{len(which), n}), append(which, i)
	}
	return room, parts, which
}

// recordContents writes down what the machines of an answer carry, for the local search.
// mix are their groups, one by one; nil: all are of one group.
func (v *solver) recordContents(k *packing, which []int, g int, mix []int) {
	for x, f := range k.fresh {
		if mix != nil {
			g = mix[x]
		}
		s := filledBin{group: g, times: f.times, portions: make([]portion, len(f.portions))}
		for i, t := range f.portions {
			s.portions[i] = portion{which[t.item], t.n}
		}
		v.a.filled = append(v.a.filled, s)
	}
}

// solveMixed puts what is left onto machines of all groups together and commits that. Groups
// that are upcoming have come in already, unless everything is to be thought afresh: what
// was bought as a mix is found again as one.
func (v *solver) solveMixed() {
	if !v.fromScratch {
		var coming []int
		for g := range v.w.groups {
			if v.upcoming[g] > 0 {
				coming = append(coming, g)
			}
		}
		v.fillUpcomingInOrder(coming)
	}
	b, which := v.newMixed()
	if b == nil {
		return
	}
	if len(b.machineTypes) == 1 { // better than all others: the packer knows more about one kind
		if o := v.optionFor(b.machineTypes[0].group, b.machineTypes[0].limit); o != nil {
			v.apply(&o.k, o.which, o.group, o.set)
		}
		return
	}
	b.cost = math.Inf(1)
	if v.first != nil {
		b.startFrom(v.first.filled, which)
	}
	if v.w.topology == nil {
		before := b.cost
		if b.warmStarts(b.count, make([]int, len(b.machineTypes)), nil, 0); b.cost < before {
			b.pool = append(b.pool, b.best...)
		}
	}
	for _, f := range b.run() {
		g := b.machineTypes[f.machineType].group
		k := packing{open: make([][]portion, 0), fresh: []freshBins{{times: f.times, room: slices.Clone(b.machineTypes[f.machineType].empty)}}}
		for r, n := range f.content {
			if n > 0 {
				k.fresh[0].portions = append(k.fresh[0].portions, portion{r, int(n)})
				fit.Sub(k.fresh[0].room, b.sizes[r], int(n))
			}
		}
		v.apply(&k, which, g, []int{g})
	}
}

// newMixed writes what is left as a problem for mixed.go; nil when there is nothing to
// mix.
func (v *solver) newMixed() (*mixed, []int) {
	places := v.a.bins
	v.a.bins = nil // only sizes are asked for
	pick := func(i int) int {
		if !v.w.demands[i].buys {
			return 0
		}
		return v.a.left[i]
	}
	p, which := v.problemOf(pick, []int64{}, 0)
	v.a.bins = places
	b := &mixed{most: mixedWork}
	if v.w.topology != nil {
		b.most = mixedConstrainedWork
	}
	for g := range v.w.groups {
		limit := 0
		if gr := &v.w.groups[g]; gr.Template.Unknown == "" && len(v.partners(g)) == 1 {
			limit = v.limit(g)
		}
		if limit <= 0 {
			continue
		}
		empty, _ := v.w.template(&v.w.groups[g])
		k := machineType{group: g, cost: v.prices[g], limit: limit, empty: empty, may: make([]bool, len(which))}
		any := false
		for r, i := range which {
			k.may[r] = v.fits(i, g)
			any = any || k.may[r]
		}
		if any {
			b.machineTypes = append(b.machineTypes, k)
		}
	}
	// Pods that no kind takes are the expander's to explain.
	var rows []int
	for r := range which {
		if slices.ContainsFunc(b.machineTypes, func(k machineType) bool { return k.may[r] }) {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 || len(rows) > mixItems {
		return nil, nil
	}
	kept := make([]int, len(rows))
	for to, from := range rows {
		kept[to] = which[from]
		b.sizes, b.count = append(b.sizes, p.items[from].size), append(b.count, p.items[from].count)
	}
	for k := range b.machineTypes {
		may := make([]bool, len(rows))
		for to, from := range rows {
			may[to] = b.machineTypes[k].may[from]
		}
		b.machineTypes[k].may = may
	}
	if b.alike() {
		return nil, nil
	}
	b.dedupe()
	if len(b.machineTypes) > mixGroups {
		return nil, nil
	}
	return b, kept
}

package scaleup

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack/mixed"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
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
func (w *Planner) costs() (cost []float64, margin float64) {
	first := w.expanderNames()[0]
	cost = make([]float64, len(w.Groups))
	for g := range cost {
		gr := &w.Groups[g]
		switch {
		case first == "least-nodes":
			cost[g] = 1
		case first == "price" && gr.Price > 0:
			cost[g] = gr.Price
		case first == "least-waste":
			margin = wasteMargin
			cost[g] = gr.SizeCost()
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
func (w *Planner) mixedSolution(a *solution) *solution {
	if a.bought() == 0 || len(w.Groups) < 2 || len(w.Demands) > mixItems {
		return a
	}
	cost, margin := w.costs()
	if cost == nil {
		return a
	}
	promised := w.HasReservations()
	marked := w.anyMarked()
	afresh := []bool{true}
	if slices.ContainsFunc(w.Groups, func(g round.Group) bool { return g.Upcoming+g.Grow > 0 }) {
		afresh = append(afresh, false)
	}
	best, least := a, a.price(cost)
	for _, fresh := range afresh {
		v := w.solveVerified(marked, func(v *solver) bool {
			if promised {
				v.keepReservations()
			}
			v.prices, v.fromScratch = cost, fresh
			return true
		})
		if c := v.a.price(cost); v.a.unplaced() <= best.unplaced() && c < least*(1-margin)-1e-9 {
			best, least, margin = &v.a, c, 0
		}
	}
	return best
}

// solveMixed puts what is left onto machines of all groups together and commits that. Groups
// that are upcoming have come in already, unless everything is to be thought afresh: what
// was bought as a mix is found again as one.
func (v *solver) solveMixed() {
	if !v.fromScratch {
		v.fillUpcoming()
	}
	b, which := v.newMixed()
	if b == nil {
		return
	}
	if len(b.MachineTypes) == 1 { // better than all others: the packer knows more about one kind
		if o := v.optionFor(b.MachineTypes[0].Group, b.MachineTypes[0].Limit); o != nil {
			v.apply(&o.k, o.which, o.group, o.set)
		}
		return
	}
	b.Cost = math.Inf(1)
	if v.w.topology == nil {
		b.WarmStarts(b.Count, make([]int, len(b.MachineTypes)), nil, 0)
		b.Pool = append(b.Pool, b.Best...)
	}
	best, steps := b.Run()
	v.w.pool -= steps
	for _, f := range best {
		g := b.MachineTypes[f.MachineType].Group
		k := binpack.Packing{Open: make([][]binpack.Portion, 0), Fresh: []binpack.FreshBins{{Times: f.Times, Room: slices.Clone(b.MachineTypes[f.MachineType].Empty)}}}
		for r, n := range f.Content {
			if n > 0 {
				k.Fresh[0].Portions = append(k.Fresh[0].Portions, binpack.Portion{Item: r, N: int(n)})
				binpack.Sub(k.Fresh[0].Room, b.Sizes[r], int(n))
			}
		}
		v.apply(&k, which, g, []int{g})
	}
}

// newMixed writes what is left as a problem for mixed.go; nil when there is nothing to
// mix.
func (v *solver) newMixed() (*mixed.Problem, []int) {
	places := v.a.bins
	v.a.bins = nil // only sizes are asked for
	pick := func(i int) int {
		if !v.w.Demands[i].Buys {
			return 0
		}
		return v.a.left[i]
	}
	p, which := v.problemOf(pick, []int64{}, 0)
	v.a.bins = places
	b := &mixed.Problem{Most: min(mixed.Steps, max(v.w.pool, 0))}
	if v.w.topology != nil {
		b.Most = min(mixed.ConstrainedSteps, b.Most)
	}
	b.MachineTypes = v.machineTypes(which)
	// Pods that no machine type takes are the expander's to explain.
	var rows []int
	for r := range which {
		if slices.ContainsFunc(b.MachineTypes, func(k mixed.MachineType) bool { return k.May[r] }) {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 || len(rows) > mixItems {
		return nil, nil
	}
	kept := make([]int, len(rows))
	for to, from := range rows {
		kept[to] = which[from]
		b.Sizes, b.Count = append(b.Sizes, p.Items[from].Size), append(b.Count, p.Items[from].Count)
	}
	for k := range b.MachineTypes {
		may := make([]bool, len(rows))
		for to, from := range rows {
			may[to] = b.MachineTypes[k].May[from]
		}
		b.MachineTypes[k].May = may
	}
	if b.Alike() {
		return nil, nil
	}
	b.Dedupe()
	if len(b.MachineTypes) > mixGroups {
		return nil, nil
	}
	return b, kept
}

// machineTypes are the groups that can get machines and take some of these demands.
func (v *solver) machineTypes(which []int) (out []mixed.MachineType) {
	for g := range v.w.Groups {
		limit := 0
		if gr := &v.w.Groups[g]; gr.Template.Unknown == "" && len(v.partners(g)) == 1 {
			limit = v.limit(g)
		}
		if limit <= 0 {
			continue
		}
		empty, _ := v.w.Template(&v.w.Groups[g])
		k := mixed.MachineType{Group: g, Cost: v.prices[g], Limit: limit, Empty: empty, May: make([]bool, len(which))}
		any := false
		for r, i := range which {
			k.May[r] = v.fits(i, g)
			any = any || k.May[r]
		}
		if any {
			out = append(out, k)
		}
	}
	return out
}

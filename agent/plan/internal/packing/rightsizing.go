package packing

import (
	"cmp"
	"slices"
	"sort"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// rightsize gives each machine that an option buys the group that the expanders like best of those whose machine holds
// its pods, and of those the smallest: the last ones are seldom full, and where pods keep away from each other
// most are not. Machines that are upcoming already stay what they are.
func (v *Solver) rightsize(o *option, p *binpack.Problem) {
	if len(o.set) > 1 || o.fresh == 0 || len(v.w.Groups) < 2 {
		return
	}
	ladder, ranks := v.groupsByRank(), v.w.MachineRanks()
	left := make(map[int]int)
	mix, fresh := make([]int, 0, len(o.k.Fresh)), make([]binpack.FreshBins, 0, len(o.k.Fresh))
	put := func(f binpack.FreshBins, n, g int) int {
		if n > 0 {
			f.Times = n
			fresh, mix = append(fresh, f), append(mix, g)
		}
		return n
	}
	coming := v.upcoming[o.group]
	used := make([]int64, len(p.Empty))
	for x, f := range o.k.Fresh {
		own := o.group
		if o.groups != nil {
			own = o.groups[x]
		}
		if own == o.group {
			n := put(f, min(f.Times, coming), own)
			coming -= n
			f.Times -= n
		}
		for j := range used {
			used[j] = p.Empty[j] - f.Room[j]
		}
		for _, g := range v.fromLargeEnough(ladder, used) {
			if f.Times == 0 || ranks[g] >= ranks[own] {
				break
			}
			if g == own {
				continue
			}
			if _, asked := left[g]; !asked {
				left[g] = v.room(g)
			}
			if n := min(f.Times, left[g]); n > 0 && v.holds(g, used) && v.allFit(f.Portions, o.which, g) {
				left[g] -= put(f, n, g)
				f.Times -= n
			}
		}
		put(f, f.Times, own)
	}
	o.k.Fresh, o.groups = fresh, mix
}

// groupsByRank are the groups that could be bought and have no machines coming, the best by Packer.MachineRanks
// first.
func (v *Solver) groupsByRank() []int {
	if v.rankOrder != nil {
		return v.rankOrder
	}
	out := make([]int, 0, len(v.w.Groups))
	for g := range v.w.Groups {
		gr := &v.w.Groups[g]
		if gr.CanGrow() && v.upcoming[g] == 0 && len(v.w.Peers(g)) == 1 {
			out = append(out, g)
		}
	}
	ranks := v.w.MachineRanks()
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(ranks[a], ranks[b]) })
	v.rankOrder = out
	for n, g := range out {
		empty, _ := v.w.Template(&v.w.Groups[g])
		if v.rankOrderMax == nil {
			v.rankOrderMax = make([]int64, 0, len(out)*len(empty))
		}
		v.rankOrderMax = append(v.rankOrderMax, empty...)
		for j := range empty {
			if n > 0 {
				v.rankOrderMax[n*len(empty)+j] = max(empty[j], v.rankOrderMax[(n-1)*len(empty)+j])
			}
		}
	}
	return out
}

// fromLargeEnough leaves out the best groups of the ladder that are all too small.
func (v *Solver) fromLargeEnough(ladder []int, used []int64) []int {
	return ladder[sort.Search(len(ladder), func(n int) bool {
		for j, most := range v.rankOrderMax[n*len(used) : (n+1)*len(used)] {
			if used[j] > most {
				return false
			}
		}
		return true
	}):]
}

// cost is MachineCosts of a group.
func (v *Solver) cost(g int) float64 { return v.w.MachineCosts()[g] }

// MachineCosts is by group the price where an expander goes by prices and the group has one,
// else the size.
func (w *Packer) MachineCosts() []float64 {
	if w.pricing.machineCosts == nil {
		w.pricing.machineCosts = make([]float64, len(w.Groups))
		byPrice := slices.Contains(w.expanderNames(), "price")
		for g := range w.Groups {
			gr := &w.Groups[g]
			if w.pricing.machineCosts[g] = gr.SizeCost(); byPrice && gr.Price > 0 {
				w.pricing.machineCosts[g] = w.prices[g]
			}
		}
	}
	return w.pricing.machineCosts
}

func (v *Solver) holds(g int, used []int64) bool {
	empty, _ := v.w.Template(&v.w.Groups[g])
	for j, n := range used {
		if n > empty[j] {
			return false
		}
	}
	return true
}

func (v *Solver) allFit(parts []binpack.Portion, which []int, g int) bool {
	for _, t := range parts {
		if !v.w.fits(which[t.Item], g) {
			return false
		}
	}
	return true
}

// convertRoom turns what is left of one group's machine into what is left of another's.
func (v *Solver) convertRoom(room []int64, from, to int) {
	a, _ := v.w.Template(&v.w.Groups[from])
	b, _ := v.w.Template(&v.w.Groups[to])
	for j := range room {
		room[j] += b[j] - a[j]
	}
}

// addCosts adds up the machines and the price of what an option buys, and the share that stays unused where
// its machines are of several groups.
func (v *Solver) addCosts(o *option, p *binpack.Problem) {
	coming := 0
	for _, g := range o.set {
		coming += v.upcoming[g]
	}
	if slices.ContainsFunc(o.groups, func(g int) bool { return g != o.group }) {
		o.machines = make([]int, len(v.w.Groups))
	}
	priced, have := true, [2]float64{}
	for x, f := range o.k.Fresh {
		g := o.group
		if o.groups != nil {
			g = o.groups[x]
		}
		empty, _ := v.w.Template(&v.w.Groups[g])
		for j := range have {
			have[j] += float64(empty[j]) * float64(f.Times)
		}
		n := f.Times
		if g == o.group {
			n = max(f.Times-coming, 0)
			coming -= min(coming, f.Times)
		}
		o.price += v.w.prices[g] * float64(n)
		priced = priced && (n == 0 || v.w.Groups[g].Price > 0)
		if o.machines != nil {
			o.machines[g] += n
		}
	}
	if !priced {
		o.price = 0
	}
	if o.groups == nil {
		return
	}
	var used [2]float64
	for _, f := range o.k.Fresh {
		for _, t := range f.Portions {
			for j := range used {
				used[j] += float64(p.Items[t.Item].Size[j]) * float64(f.Times*t.N)
			}
		}
	}
	o.waste = 0
	for j := range used {
		if have[j] > 0 {
			o.waste += 1 - used[j]/have[j]
		}
	}
}

const (
	// shortlistSize is how many groups of many are looked at closely.
	shortlistSize = 3
	// shortlistLooks are the looks of all demands at all groups (binpack.Looks) from which on a shortlist is made of few groups
	// too. So many looks at bins that are there count as one.
	shortlistLooks, openLooks = 500_000, 20
)

// shortlist are the groups that are not done and whose machines are worth packing: all
// of a few; of many those that the expander would take if everything were fluid, and
// those with machines coming.
func (v *Solver) shortlist() []int {
	var out []int
	open := make([]int, 0, len(v.w.Groups))
	for g := range v.w.Groups {
		if gr := &v.w.Groups[g]; !v.done[g] && gr.Template.Unknown == "" && (v.upcoming[g] > 0 || gr.CanGrow()) {
			open = append(open, g)
		}
	}
	looks := binpack.Looks(len(v.w.Demands), len(open), len(v.w.Size(0))) + len(v.w.Demands)*len(open)*len(v.Solution.Bins)/openLooks
	if len(open) <= shortlistSize || len(open) <= topology.ShortlistFrom && looks <= shortlistLooks {
		return open
	}
	sums := v.relax()
	addAnyDomain(sums)
	var best, o option
	for _, g := range open {
		if v.upcoming[g] > 0 {
			out = append(out, g)
		} else if v.estimate(&o, g, sums) && (best.pods == 0 || v.better(&o, &best)) {
			best = o
		}
	}
	if best.pods == 0 { // nobody's machine takes any
		return out
	}
	few := make([]option, 0, shortlistSize+1)
	for _, g := range open {
		if b := v.w.Topology; v.upcoming[g] > 0 || b != nil && b.GroupDomain[g] != b.GroupDomain[best.group] { // of one domain: the others have their turn
			continue
		}
		if !v.estimate(&o, g, sums) {
			continue
		}
		at := len(few)
		for at > 0 && v.better(&o, &few[at-1]) {
			at--
		}
		few = slices.Insert(few, at, o)[:min(len(few)+1, shortlistSize)]
	}
	for i := range few {
		out = append(out, few[i].group)
	}
	slices.Sort(out)
	return out
}

// relaxation are pods that are left, as if they were water.
type relaxation struct {
	sum, most []int64
	pods      int
}

// relax are the pods that are left by the cell that they go to; 0: to any. They stand until it is asked again.
func (v *Solver) relax() []relaxation {
	cells := 0
	if v.w.Topology != nil {
		cells = v.w.Topology.Domains
	}
	dimensions := len(v.w.Size(0))
	out, size := make([]relaxation, cells+1), 2*dimensions*(cells+1)
	v.flat = slices.Grow(v.flat[:0], size)[:size]
	clear(v.flat)
	for c := range out {
		at := v.flat[2*dimensions*c:]
		out[c] = relaxation{sum: at[:dimensions:dimensions], most: at[dimensions : 2*dimensions : 2*dimensions]}
	}
	for i := range v.w.Demands {
		k := &v.w.Demands[i]
		n := v.Solution.Left[i]
		if n == 0 || !k.Buys || k.PerPod {
			continue
		}
		f := &out[k.Domain]
		f.pods += n
		for _, x := range v.w.item(k.Class).Amounts {
			f.sum[x.Dimension] += x.N * int64(n)
			f.most[x.Dimension] = max(f.most[x.Dimension], x.N)
		}
	}
	return out
}

// addAnyDomain adds what may go anywhere to what goes to each cell.
func addAnyDomain(out []relaxation) {
	for c := range out[1:] {
		f := &out[c+1]
		f.pods += out[0].pods
		for j, n := range out[0].sum {
			f.sum[j] += n
			f.most[j] = max(f.most[j], out[0].most[j])
		}
	}
}

// estimate is the option of a group if everything were fluid; false when none of the pods
// that are left would fit. sums are joined.
func (v *Solver) estimate(o *option, g int, sums []relaxation) bool {
	f := &sums[0]
	if v.w.Topology != nil {
		f = &sums[v.w.Topology.GroupDomain[g]]
	}
	if f.pods == 0 {
		return false
	}
	empty, _ := v.w.Template(&v.w.Groups[g])
	need, misfit := 1, 1
	for j, n := range f.sum {
		if f.most[j] > empty[j] {
			misfit = 2
		}
		if n > 0 && empty[j] <= 0 {
			return false
		}
		if n > 0 {
			need = max(need, int((n+empty[j]-1)/empty[j]))
		}
	}
	*o = option{Purchase: Purchase{group: g, pods: f.pods, fresh: need * misfit}}
	o.weigh([2]float64{float64(f.sum[0]), float64(f.sum[1])}, empty, o.fresh)
	o.price = v.w.prices[g] * float64(o.fresh)
	return true
}

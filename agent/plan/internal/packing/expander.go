package packing

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Purchase describes machines to buy and the pods that they help, as the expanders compare it: of an option, or of a judged purchase.
type Purchase struct {
	group    int     // of all machines, where machines is nil
	machines []int   // by group
	fresh    int     // machines to buy
	price    float64 // of these; 0: some has none
	pods     int     // that the machines help; of a judged purchase, the sum of what the group of each machine could help
	helpers  int     // what pods is a sum of: 1, or the machines of a judged purchase
	podValue float64 // of the pods, in cores; 1 where purchases for the same pods are compared
	waste    float64 // shares of cpu and memory that stay unused
	size     float64 // cores and memory of the machines of a judged purchase
}

// expander is one of the rules that Policy.Expander names.
type expander struct {
	// compare is negative where the first purchase is better, and 0 where the next expander decides.
	compare func(w *Packer, a, b *Purchase) int
	// machine is the cost of a machine of a group beside one of another group that would hold the same pods; less is
	// better, +Inf is not known.
	machine func(w *Packer, g int) float64
	// adds tells that a purchase counts for the sum of its machines, so that it can be judged. Otherwise an operator has
	// given an order of groups, and purchases are packed.
	adds bool
	// margin is the share that another purchase must save than the one that is packed; see Costs.
	margin float64
}

// expanderBy are the expanders by the names that Cluster Autoscaler gives them.
var expanderBy = map[string]expander{
	"least-waste": {
		compare: func(_ *Packer, a, b *Purchase) int { return compareNear(a.waste, b.waste) },
		machine: func(w *Packer, g int) float64 { return w.Groups[g].SizeCost() },
		adds:    true, margin: wasteMargin,
	},
	"price": {
		compare: byPrice,
		machine: func(w *Packer, g int) float64 {
			if price := w.prices[g]; price > 0 {
				return price
			}
			return math.Inf(1)
		},
		adds: true,
	},
	"least-nodes": {
		compare: func(_ *Packer, a, b *Purchase) int { return cmp.Compare(a.fresh, b.fresh) },
		machine: func(*Packer, int) float64 { return 1 },
		adds:    true,
	},
	"most-pods": {
		compare: func(_ *Packer, a, b *Purchase) int { return cmp.Compare(b.pods*a.helpers, a.pods*b.helpers) },
		machine: func(*Packer, int) float64 { return 1 },
	},
	"priority": {
		compare: func(w *Packer, a, b *Purchase) int { return byTiers(w.priorityTiers(), a, b) },
		machine: func(w *Packer, g int) float64 { return float64(w.priorityTiers()[g]) },
	},
	"random": {
		compare: func(w *Packer, a, b *Purchase) int { return byTiers(w.draws(), a, b) },
		machine: func(w *Packer, g int) float64 { return float64(w.draws()[g]) },
	},
}

// wasteMargin is the share that another purchase than the expander's must save where only the size of machines tells: less is
// no reason to leave the habits of least-waste.
const wasteMargin = 0.03

// noise is the share by which sums differ that are equal but for the order of their floating-point parts.
const noise = 1e-9

// compareNear is cmp.Compare but that sums which differ by noise are equal: the next expander decides then.
func compareNear(a, b float64) int {
	if math.Abs(a-b) <= noise*max(math.Abs(a), math.Abs(b)) {
		return 0
	}
	return cmp.Compare(a, b)
}

// byPrice takes what buys the most for its price: the price of the new machines by
// what the pods on them ask for. Machines without a price come after those with one.
func byPrice(_ *Packer, a, b *Purchase) int {
	return cmp.Or(cmp.Compare(intOf(a.price <= 0), intOf(b.price <= 0)),
		compareNear(a.price*b.podValue, b.price*a.podValue)) // a/b < c/d without division
}

func intOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// byTiers takes the purchase with the smaller share of machines in the last tier, then in the one before it, and so on.
// Tiers are by group, 0 is the best. It costs 1 where each purchase is of one group, else the tiers times G.
func byTiers(tier []int, a, b *Purchase) int {
	if a.machines == nil && b.machines == nil {
		return cmp.Compare(tier[a.group], tier[b.group])
	}
	for t := slices.Max(tier); t > 0; t-- {
		if c := cmp.Compare(a.inTier(tier, t)*b.fresh, b.inTier(tier, t)*a.fresh); c != 0 {
			return c
		}
	}
	return 0
}

// inTier is how many machines of a purchase are of groups of a tier.
func (p *Purchase) inTier(tier []int, t int) (n int) {
	if p.machines == nil {
		return p.fresh * intOf(tier[p.group] == t)
	}
	for g, m := range p.machines {
		n += m * intOf(tier[g] == t)
	}
	return n
}

// tiersOf ranks values: 0 for the largest, equal ones are one tier.
func tiersOf[T cmp.Ordered](values []T) []int {
	order, out := slices.Compact(slices.Sorted(slices.Values(values))), make([]int, len(values))
	for i, v := range values {
		at, _ := slices.BinarySearch(order, v)
		out[i] = len(order) - 1 - at
	}
	return out
}

// Expanders are the names that Policy.Expander may hold, sorted.
func Expanders() []string { return slices.Sorted(maps.Keys(expanderBy)) }

// splitExpanders takes "price,least-waste" apart.
func splitExpanders(names string) []string {
	var out []string
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// UnknownExpanders are the names of a chain that this build does not know.
func UnknownExpanders(names string) []string {
	return slices.DeleteFunc(splitExpanders(names), func(name string) bool { return slices.Contains(Expanders(), name) })
}

// UsesPriorities tells whether a chain of expanders reads the live priority map.
func UsesPriorities(names string) bool { return slices.Contains(splitExpanders(names), "priority") }

// expanderNames are the expanders that Policy.Expander names, without unknown ones. Where every
// group has a price, least-waste goes by money first.
func (w *Packer) expanderNames() []string {
	if w.pricing.names != nil {
		return w.pricing.names
	}
	names := slices.DeleteFunc(splitExpanders(w.Policy.Expander), func(name string) bool { return !slices.Contains(Expanders(), name) })
	if len(names) == 0 {
		names = []string{"least-waste"}
	}
	if names[0] == "least-waste" && !slices.ContainsFunc(w.Groups, func(g round.Group) bool { return g.Price <= 0 }) {
		names = slices.Insert(names, 0, "price")
	}
	w.pricing.names = names
	return names
}

// expanders is the chain of names.
func (w *Packer) expanders() []expander {
	if w.pricing.chain == nil {
		for _, name := range w.expanderNames() {
			w.pricing.chain = append(w.pricing.chain, expanderBy[name])
		}
	}
	return w.pricing.chain
}

// OneExpander tells whether no other expander follows the first one.
func (w *Packer) OneExpander() bool { return len(w.expanders()) == 1 }

// ByFirstAlone does something as if the first expander were the only one.
func (w *Packer) ByFirstAlone(do func()) {
	chain, p := w.expanders(), &w.pricing
	names, ranks, costs := p.names, p.ranks, p.machineCosts
	p.names, p.chain, p.ranks, p.machineCosts = names[:1], chain[:1], nil, nil
	do()
	p.names, p.chain, p.ranks, p.machineCosts = names, chain, ranks, costs
}

// Compare is negative where the expanders like a purchase better than another: each decides what the ones before it
// leave open, and of what all leave open the one with fewer machines is better.
func (w *Packer) Compare(a, b *Purchase) int { return w.compareBy(w.expanders(), a, b) }

// CompareAfterFirst is Compare for judged purchases between which the first expander leaves it open. Of as many machines the
// smaller ones are better, as rightsize has it for those that are packed.
func (w *Packer) CompareAfterFirst(a, b *Purchase) int {
	return cmp.Or(w.compareBy(w.expanders()[1:], a, b), compareNear(a.size, b.size))
}

func (w *Packer) compareBy(chain []expander, a, b *Purchase) int {
	for _, e := range chain {
		if c := e.compare(w, a, b); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.fresh, b.fresh)
}

// MachineRanks is by group how well the expanders like one machine of it beside one of another group that would hold the
// same pods; 0 is the best. What all leave open goes to the smaller machine. It costs sorting G once.
func (w *Packer) MachineRanks() []int {
	if w.pricing.ranks != nil {
		return w.pricing.ranks
	}
	order := make([]int, len(w.Groups))
	for g := range order {
		order[g] = g
	}
	compare := func(a, b int) int {
		for _, e := range w.expanders() {
			if c := cmp.Compare(e.machine(w, a), e.machine(w, b)); c != 0 {
				return c
			}
		}
		return cmp.Compare(w.Groups[a].SizeCost(), w.Groups[b].SizeCost())
	}
	slices.SortStableFunc(order, compare)
	w.pricing.ranks = make([]int, len(order))
	for i, g := range order[min(1, len(order)):] {
		w.pricing.ranks[g] = w.pricing.ranks[order[i]] + intOf(compare(order[i], g) < 0)
	}
	return w.pricing.ranks
}

// Costs is the cost of a machine of each group to the first expander, and the share that another purchase than the
// expander's must save. The cost is that of expander.machine, more for stranding groups. It is nil where the machines of
// a purchase do not add up, or that of a group is not known.
func (w *Packer) Costs() (cost []float64, margin float64) {
	first := w.expanders()[0]
	if !first.adds {
		return nil, 0
	}
	cost = make([]float64, len(w.Groups))
	for g := range cost {
		if cost[g] = first.machine(w, g); cost[g] <= 0 || math.IsInf(cost[g], 1) {
			return nil, 0
		}
	}
	for g, strands := range w.stranding() {
		if strands {
			cost[g] *= strandingCosts
		}
	}
	return cost, first.margin
}

// PurchaseOf is a purchase of machines by group, with the room of a machine of each group, for pods that use so much. It is
// compared with others for the same pods. It costs G, and once, where the expander most-pods asks, packing for each group.
func (w *Packer) PurchaseOf(machines []int, rooms [][]int64, used [2]float64) Purchase {
	p := w.purchaseOf(machines, rooms, used)
	for g, n := range machines {
		p.pods += w.helpedBy(g) * n
	}
	return p
}

// purchaseOf is PurchaseOf without what each group could help.
func (w *Packer) purchaseOf(machines []int, rooms [][]int64, used [2]float64) Purchase {
	p, priced, have := Purchase{machines: machines, podValue: 1}, true, [2]float64{}
	for g, n := range machines {
		if n == 0 {
			continue
		}
		p.fresh += n
		p.price += w.prices[g] * float64(n)
		p.size += w.Groups[g].SizeCost() * float64(n)
		priced = priced && w.Groups[g].Price > 0
		for j := range have {
			have[j] += float64(rooms[g][j]) * float64(n)
		}
	}
	p.helpers = p.fresh
	if !priced {
		p.price = 0
	}
	for j := range used {
		if have[j] > 0 {
			p.waste += 1 - used[j]/have[j]
		}
	}
	return p
}

// helpedBy is how many pods a group alone would help; 0 where no expander asks for it.
func (w *Packer) helpedBy(g int) int {
	if !slices.Contains(w.expanderNames(), "most-pods") {
		return 0
	}
	if w.pricing.helped == nil {
		w.pricing.helped = make([]int, len(w.Groups))
		v := w.NewSolver(false)
		for g := range w.Groups {
			if o := v.optionFor(g, v.limit(g)); o != nil {
				w.pricing.helped[g] = o.pods
			}
		}
	}
	return w.pricing.helped[g]
}

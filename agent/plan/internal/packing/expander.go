package packing

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Purchase describes machines to buy and the pods that they help, as the expanders compare it: of an option, or of several groups.
type Purchase struct {
	group    int     // of all machines, where machines is nil
	machines []int   // by group
	fresh    int     // machines to buy
	price    float64 // of these; 0: some has none
	pods     int     // that the machines help
	podValue float64 // of the pods, in cores; 1 where purchases for the same pods are compared
	waste    float64 // shares of cpu and memory that stay unused
}

// expander is one of the rules that Policy.Expander names.
type expander struct {
	// compare is negative where the first purchase is better, and 0 where the next expander decides.
	compare func(w *Packer, a, b *Purchase) int
	// machine is the cost of a machine of a group beside one of another group that would hold the same pods; less is
	// better, +Inf is not known.
	machine func(w *Packer, g int) float64
	// adds tells that a purchase counts for the sum of its machines, and is its cost. Otherwise an operator has
	// given an order of groups.
	adds bool
}

// expanderBy are the expanders by the names that Cluster Autoscaler gives them.
var expanderBy = map[string]expander{
	"least-waste": {
		compare: func(_ *Packer, a, b *Purchase) int { return compareNear(a.waste, b.waste) },
		machine: func(w *Packer, g int) float64 { return w.Groups[g].SizeCost() },
		adds:    true,
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
		compare: func(_ *Packer, a, b *Purchase) int { return cmp.Compare(b.pods, a.pods) },
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
	order := w.everyGroup()
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

// costsAdd tells whether purchases count for the sum of their machines to the first expander, and what each machine counts for is known. Otherwise
// an operator has given an order of groups.
func (w *Packer) costsAdd() bool {
	first := w.expanders()[0]
	return first.adds && !slices.ContainsFunc(w.everyGroup(), func(g int) bool { c := first.machine(w, g); return c <= 0 || math.IsInf(c, 1) })
}

func (w *Packer) everyGroup() []int {
	out := make([]int, len(w.Groups))
	for g := range out {
		out[g] = g
	}
	return out
}

// purchaseOf is a purchase of machines by group, with the room of a machine of each group, for pods that use so much. It costs G.
func (w *Packer) purchaseOf(machines []int, rooms [][]int64, used [2]float64) Purchase {
	p, priced, have := Purchase{machines: machines, podValue: 1}, true, [2]float64{}
	for g, n := range machines {
		if n == 0 {
			continue
		}
		p.fresh += n
		p.price += w.prices[g] * float64(n)
		priced = priced && w.Groups[g].Price > 0
		for j := range have {
			have[j] += float64(rooms[g][j]) * float64(n)
		}
	}
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

// OrderedCosts is by group what a machine of it counts for: to the first expander whose costs add up, where it knows any, times orderFactor for
// each tier of an operator's order that comes before that expander. A group whose cost this expander does not know comes after all others. What
// that leaves open the next expanders decide, each by a share of the cost too small to outweigh the one before it; then fewer machines
// are better, and at last smaller ones. It costs G for each expander.
func (w *Packer) OrderedCosts() []float64 {
	cost, base := w.baseCosts()
	for g, strands := range w.stranding() {
		if strands {
			cost[g] *= strandingCosts
		}
	}
	if len(cost) == 0 {
		return cost
	}
	share := firstShare
	add := func(values []float64) {
		if most := slices.Max(values); most > 0 {
			for g, v := range values {
				cost[g] += share * slices.Min(base) * v / most
			}
			share /= nextShare
		}
	}
	for i, e := range w.expanders() {
		values := make([]float64, len(w.Groups))
		for g := range values {
			switch v := e.machine(w, g); {
			case w.expanderNames()[i] == "most-pods":
				values[g] = -w.helped(g)
			case !e.adds:
				values[g] = v * base[g]
			case !math.IsInf(v, 1):
				values[g] = v
			}
		}
		if least := slices.Min(values); least < 0 {
			for g := range values {
				values[g] -= least
			}
		}
		if i > 0 || w.expanderNames()[i] == "most-pods" {
			add(values)
		}
	}
	ones, sizes := make([]float64, len(w.Groups)), make([]float64, len(w.Groups))
	for g := range ones {
		ones[g], sizes[g] = 1, w.Groups[g].SizeCost()
	}
	add(ones)
	add(sizes)
	return cost
}

// baseCosts are the costs of the first expander whose costs add up, with and without the factors of an operator's order before it.
func (w *Packer) baseCosts() (cost, base []float64) {
	base, factor := make([]float64, len(w.Groups)), make([]float64, len(w.Groups))
	for g := range base {
		base[g], factor[g] = w.Groups[g].SizeCost(), 1
	}
	ordered := false
	for i, e := range w.expanders() {
		if e.adds && w.addCosts(&e, base) {
			break
		}
		if !e.adds && !ordered && w.expanderNames()[i] != "most-pods" {
			ordered = true
			for g := range factor {
				factor[g] = math.Pow(orderFactor, min(e.machine(w, g), mostTiers))
			}
		}
	}
	cost = slices.Clone(base)
	for g := range cost {
		cost[g] *= factor[g]
	}
	return cost, base
}

// addCosts takes the costs of an expander over; false: it knows none.
func (w *Packer) addCosts(e *expander, base []float64) bool {
	most := 0.0
	for g := range w.Groups {
		if c := e.machine(w, g); !math.IsInf(c, 1) {
			most = max(most, c)
		}
	}
	for g := range base {
		if c := e.machine(w, g); most > 0 && !math.IsInf(c, 1) {
			base[g] = c
		} else if most > 0 {
			base[g] *= most * orderFactor
		}
	}
	return most > 0
}

// helped is how many of the pods that want room a machine of a group takes, one at a time.
func (w *Packer) helped(g int) (n float64) {
	for _, i := range w.TakenBy(g) {
		n += float64(w.Demands[i].Count())
	}
	return n
}

// orderFactor is how many machines of one tier an operator's order puts before one of the next; mostTiers is the last tier that is told apart. firstShare is
// the share of the least cost by which the second expander decides, nextShare divides it for each further one.
const orderFactor, mostTiers, firstShare, nextShare = 100, 6, 1e-5, 100

package packing

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// pricing is what the expanders know beside the options, worked out once a round and
// only when one of them asks.
type pricing struct {
	names        []string // of the expanders in their order
	chain        []expander
	priority     []int // by group; noPriority: no entry of the map finds it
	machineCosts []float64
	drawSeed     uint64
	drawn        bool
}

const noPriority = math.MinInt

// expander compares two options; negative: the first is better.
type expander func(w *Packer, a, b *option) int

// expanderBy are the expanders by the names that Cluster Autoscaler gives them.
var expanderBy = map[string]expander{
	"least-waste": func(_ *Packer, a, b *option) int {
		return cmp.Compare(math.Round(a.waste*1e9), math.Round(b.waste*1e9))
	},
	"most-pods":   func(_ *Packer, a, b *option) int { return cmp.Compare(b.pods, a.pods) },
	"least-nodes": func(_ *Packer, a, b *option) int { return cmp.Compare(a.fresh, b.fresh) },
	"price":       byPrice,
	"priority":    byPriority,
	"random":      byRandom,
}

// Expanders are the names that Policy.Expander may hold, sorted.
func Expanders() []string { return slices.Sorted(maps.Keys(expanderBy)) }

// expanderNames are the expanders that Policy.Expander names, without unknown ones. Where every
// group has a price, least-waste goes by money first.
func (w *Packer) expanderNames() []string {
	if w.pricing.names != nil {
		return w.pricing.names
	}
	names := slices.DeleteFunc(splitExpanders(w.Policy.Expander), func(name string) bool { return expanderBy[name] == nil })
	if len(names) == 0 {
		names = []string{"least-waste"}
	}
	if names[0] == "least-waste" && w.priced() {
		names = slices.Insert(names, 0, "price")
	}
	w.pricing.names = names
	return names
}

// priced tells whether every group has a price.
func (w *Packer) priced() bool {
	return !slices.ContainsFunc(w.Groups, func(g round.Group) bool { return g.Price <= 0 })
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

// UsesPriorities tells whether a chain of expanders reads the live priority map.
func UsesPriorities(names string) bool { return slices.Contains(splitExpanders(names), "priority") }

// UnknownExpanders are the names of a chain that this build does not know.
func UnknownExpanders(names string) []string {
	return slices.DeleteFunc(splitExpanders(names), func(name string) bool { return expanderBy[name] != nil })
}

// byPrice takes what buys the most for its price: the price of the new machines by
// what the pods on them ask for. A group without a price comes after those with one.
func byPrice(w *Packer, a, b *option) int {
	pa, pb := w.Groups[a.group].Price, w.Groups[b.group].Price
	if none := cmp.Compare(intOf(pa <= 0), intOf(pb <= 0)); none != 0 || pa <= 0 {
		return none
	}
	// a/b < c/d without division, so that equal offers are equal.
	return cmp.Compare(fixedPoint(a.price*b.podValue), fixedPoint(b.price*a.podValue))
}

// fixedPoint hides what floating point adds in another order.
func fixedPoint(x float64) float64 { return math.Round(x * 1e9) }

// byPriority takes the group of the highest priority: its own from groups.yaml, else
// the highest entry of the live map that finds its ID. Groups without one come last,
// which is Cluster Autoscaler's "dropped unless nothing matches".
func byPriority(w *Packer, a, b *option) int {
	p := w.priorities()
	return cmp.Compare(p[b.group], p[a.group])
}

func (w *Packer) priorities() []int {
	if w.pricing.priority != nil {
		return w.pricing.priority
	}
	p := make([]int, len(w.Groups))
	for g := range p {
		p[g] = noPriority
	}
	for _, tier := range w.Policy.Priorities {
		for _, pattern := range tier.Patterns {
			re, err := regexp.Compile(pattern)
			if err != nil {
				continue // whoever read the map has said so
			}
			for g := range p {
				if tier.Priority > p[g] && re.MatchString(string(w.Groups[g].ID)) {
					p[g] = tier.Priority
				}
			}
		}
	}
	for g := range p {
		if own := w.Groups[g].Priority; own != nil {
			p[g] = *own
		}
	}
	w.pricing.priority = p
	return p
}

// byRandom draws lots: by Policy.RandomSeed, the pods that want room and the groups, so
// that a replayed round draws the same and another round another.
func byRandom(w *Packer, a, b *option) int {
	return cmp.Compare(w.draw(a.group), w.draw(b.group))
}

func (w *Packer) draw(g int) uint64 {
	if !w.pricing.drawn {
		h := fnv.New64a()
		fmt.Fprintln(h, w.Policy.RandomSeed)
		for i := range w.Demands {
			fmt.Fprintln(h, w.Demands[i].Expected, w.Demands[i].Name())
		}
		for i := range w.Groups {
			fmt.Fprintln(h, w.Groups[i].ID, w.Groups[i].Size)
		}
		w.pricing.drawSeed, w.pricing.drawn = h.Sum64(), true
	}
	h := fnv.New64a()
	fmt.Fprint(h, w.pricing.drawSeed, w.Groups[g].ID)
	// FNV's last bytes reach the high bits too little for a fair draw.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

// CheckExpanders says what is wrong with the choice of expanders.
func (w *Packer) CheckExpanders() {
	if bad := UnknownExpanders(w.Policy.Expander); len(bad) > 0 {
		w.Held("cluster", "cluster", decision.RuleExpander, "unknown expander %s; this build knows %s", strings.Join(bad, ", "), strings.Join(Expanders(), ", "))
	}
	if !UsesPriorities(w.Policy.Expander) {
		return
	}
	switch {
	case w.Policy.PrioritiesFault != "" && len(w.Policy.Priorities) > 0:
		w.Held("cluster", "cluster", decision.RulePriorities, "%s; the last good priorities hold", w.Policy.PrioritiesFault)
	case w.Policy.PrioritiesFault != "":
		w.Held("cluster", "cluster", decision.RulePriorities, "%s; the next expander decides", w.Policy.PrioritiesFault)
	}
}

func intOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wasteMargin is what another purchase than the expander's must save where only the size of machines tells: less is
// no reason to leave the habits of least-waste.
const wasteMargin = 0.03

// Costs is the cost of a machine of each group to the first expander, and the share that another purchase than the
// expander's must save. The cost is 1 for least-nodes, the price for price and, where every group has one, for
// least-waste, and else the size of the machine; more for stranding groups. It is nil for the other expanders: an
// operator wants their order of groups kept.
func (w *Packer) Costs() (cost []float64, margin float64) {
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
	for g, strands := range w.stranding() {
		if strands {
			cost[g] *= strandingCosts
		}
	}
	return cost, margin
}

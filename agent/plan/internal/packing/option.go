package packing

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/growth"
)

// option is a purchase of machines of one group for the pods that are left.
type option struct {
	Purchase       // pods and podValue are of its coming and new machines
	set      []int // the groups that its machines are spread over, group included
	limit    int
	empty    []int64         // the room of a machine
	packed   binpack.Packing // into such machines
	found    int             // Solver.changes when it was found
	places   int             // the places that there were
	k        binpack.Packing // packed, or what is better
	which    []int
	left     int   // pods that have no room
	groups   []int // by entry of k.fresh, the group of its machines; nil: group, or one of set
	headroom bool  // it is for headroom alone
}

// pick returns the best option of all groups that are not done, nil when there is
// none.
func (v *Solver) pick() *option {
	var all []*option
	for _, g := range v.shortlist() {
		if o := v.optionFor(g, v.limit(g)); o != nil {
			all = append(all, o)
		}
	}
	for g := 0; len(all) == 0 && g < len(v.w.Groups) && v.anyDemand(); g++ {
		// None of the promising ones takes what is left: it may be for the others alone.
		if v.done[g] {
			continue
		}
		if o := v.optionFor(g, v.limit(g)); o != nil {
			all = append(all, o)
		}
	}
	return v.bestOf(all)
}

// bestOf is the best of some options; nil: there is none. It costs the options.
func (v *Solver) bestOf(all []*option) (best *option) {
	for _, o := range all {
		if best == nil || v.better(o, best) {
			best = o
		}
	}
	return v.withLargerOnes(best, all)
}

// limit is how many machines of a group and of those that are balanced with it this
// solution may still fill: those that are upcoming, and those that may be bought.
func (v *Solver) limit(g int) int {
	if set := v.Partners(g); len(set) > 1 {
		return v.together(set)
	}
	return v.own(g)
}

func (v *Solver) optionFor(g, limit int) *option {
	gr := &v.w.Groups[g]
	if limit <= 0 || gr.Template.Unknown != "" {
		return nil
	}
	set := v.Partners(g)
	if o := v.options[g]; o != nil && o.limit == limit && slices.Equal(o.set, set) && v.stands(o) {
		o.found, o.places = v.changes, len(v.Solution.Bins)
		return o
	}
	p, which := v.problemOf(v.w.TakenBy(g), v.demanded, v.Smallest(set), limit)
	if len(p.Items) == 0 {
		return nil
	}
	o := &option{Purchase: Purchase{group: g}, limit: limit, empty: p.Empty, found: v.changes, places: len(v.Solution.Bins), which: which, set: set}
	o.headroom = !slices.ContainsFunc(which, func(i int) bool { return v.w.Demands[i].Headroom == "" })
	o.packed = v.pack(p, which)
	o.k, v.options[g] = o.packed, o
	if k, ok := p.PackHostSpread(v.w.Topology.HostSpread(g), o.k.Bins); ok {
		o.k = k
	}
	o.fresh = o.k.Bins
	for _, member := range set {
		o.fresh -= v.upcoming[member]
	}
	o.fresh = max(o.fresh, 0)
	v.rightsize(o, p)
	if two := v.twoSizePacking(o, p); two != nil {
		o.k, o.fresh, o.groups = two.k, two.fresh, two.groups
	}
	o.measure(p)
	v.addCosts(o, p)
	return o
}

// stands tells whether an option is still what would be found: its pods are left, the places that they may use are
// as they were, and its machines of other groups may be bought. It costs C, for each of them the places that are new, and the
// machines.
func (v *Solver) stands(o *option) bool {
	for _, i := range o.which {
		on := v.mayGo(i)
		if v.changed[i] > o.found || on.Next(o.places) >= 0 {
			return false
		}
		for b := on.Next(0); b >= 0; b = on.Next(b + 1) {
			if v.lessRoom[b] > o.found {
				return false
			}
		}
	}
	others := make(map[int]int)
	for x, f := range o.k.Fresh {
		if o.groups != nil && o.groups[x] != o.group {
			others[o.groups[x]] += f.Times
		}
	}
	for g, n := range others {
		if v.room(g) < n {
			return false
		}
	}
	return true
}

// pack is the packing of a problem: that of another group with the same machine, or a new one. Equal machines for the
// same pods are packed once. It costs G, and Pack.
func (v *Solver) pack(p *binpack.Problem, which []int) binpack.Packing {
	pods := 0
	for i := range p.Items {
		pods += p.Items[i].Count
	}
	for _, o := range v.options {
		if o != nil && o.found == v.changes && (o.limit == p.Limit || min(o.limit, p.Limit) >= pods) && slices.Equal(o.empty, p.Empty) && slices.Equal(o.which, which) {
			return o.packed
		}
	}
	return binpack.Pack(p)
}

// room is how many machines a group may still add to this solution.
func (v *Solver) room(g int) int { return growth.Beside(v.w.State, v.Solution.Grow, g) }

// measure counts pods and what share of the machines' cpu and memory stays unused.
func (o *option) measure(p *binpack.Problem) {
	var used [2]float64
	for _, f := range o.k.Fresh {
		for _, t := range f.Portions {
			o.pods += f.Times * t.N
			for j := range used {
				used[j] += float64(p.Items[t.Item].Size[j]) * float64(f.Times*t.N)
			}
		}
	}
	o.left = o.k.Unplaced()
	o.weigh(used, p.Empty, o.k.Bins)
}

// weigh sets the worth of an option's pods, which use so much cpu and memory, and the share of its machines that these
// pods leave unused.
func (o *option) weigh(used [2]float64, empty []int64, machines int) {
	o.podValue, o.waste = binpack.CoreEquivalents(used[0], used[1])+float64(o.pods)*0.01, 0
	for j := range used {
		if have := float64(empty[j]) * float64(machines); have > 0 {
			o.waste += 1 - used[j]/have
		}
	}
}

// better orders options: those for pods come before those for headroom alone, which would take the room of pods on nodes. Then
// options that buy nothing come first, and of these those that leave no pod; then options that strand no pod; then the
// expander's order; then fewer machines; then the group's ID (the order in which they come).
func (v *Solver) better(a, b *option) bool {
	if a.headroom != b.headroom {
		return b.headroom
	}
	if free := cmp.Compare(min(a.fresh, 1), min(b.fresh, 1)); free != 0 {
		return free < 0
	}
	if a.fresh == 0 {
		return a.left == 0 && b.left > 0
	}
	if strands := v.w.stranding(); strands[a.group] != strands[b.group] {
		if v.w.costsAdd() { // else an operator has given an order of groups
			return strands[b.group]
		}
	}
	return v.w.Compare(&a.Purchase, &b.Purchase) < 0
}

// anyDemand tells whether any pod is left that machines may be bought for.
func (v *Solver) anyDemand() bool {
	for i := range v.w.Demands {
		if !v.w.Demands[i].PerPod && v.demanded(i) > 0 {
			return true
		}
	}
	return false
}

// takeFirst takes options for some demands before the others are looked at.
func (v *Solver) takeFirst(first []bool) {
	v.first = first
	v.takeOptions()
	v.first = nil
	clear(v.done)
	clear(v.options)
}

// demanded is how many pods of demand i an option may be for.
func (v *Solver) demanded(i int) int {
	if !v.w.Demands[i].Buys || v.first != nil && !v.first[i] {
		return 0
	}
	return v.Solution.Left[i]
}

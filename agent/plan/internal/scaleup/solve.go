package scaleup

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// bin is a bin that is there: a node, or a machine that is upcoming and already holds
// pods of this round.
type bin struct {
	node     int // index into roundState.nodes, -1: an upcoming machine of group
	group    int
	room     []int64
	used     bool
	fresh    bool                   // it is a machine that is bought
	portions []binpack.Portion      // the pods of this answer on this machine, by demand; empty where solver.remembers says no
	headroom []round.HeadroomPieces // headroom that is kept free here
}

// taken tells whether pods or headroom count on a place.
func (b *bin) taken() bool { return b.used || b.headroom != nil }

// allocation is what one group's coming and new machines take of one demand.
type allocation struct{ group, upcoming, new int }

// solution says where all wanted pods would go.
type solution struct {
	bins        []bin
	grow        []int          // new machines by group
	on          []int          // by demand: pods on nodes that are Ready
	allocations [][]allocation // by demand, in the order of the groups
	left        []int          // by demand: pods that no group can help
	claims      []int          // by demand: pods that are on no machine, and for which machines have room by size (see judge.assignReserved); nil: none
	reasons     []string       // by group: what kube-scheduler has to do with its machines (see judge.reasons); nil: it was not asked
}

func (a *solution) bought() int {
	n := 0
	for _, g := range a.grow {
		n += g
	}
	return n
}

func (a *solution) unplaced() int {
	n := 0
	for _, c := range a.left {
		n += c
	}
	return n
}

// solver answers one set of demands; several are tried in a round.
type solver struct {
	w            *Planner
	a            solution
	upcoming     []int // machines by group that are upcoming and still empty
	done         []bool
	on           [][]bool // by demand: see mayGo; nil: places have changed
	mayGoBuffer  [][]bool // room for on
	scarceBuffer []int    // room for what scarce lists
	leastRoom    []int64  // by dimension: the least room of all places
	measured     int      // one more than the places that leastRoom is of; 0: places have changed
	binDomains   []int    // by place, as long as on stands; empty where nothing is constrained
	asked        []int    // by demand, where on stands: one more than the bins that it was asked for
	mayAsk       bool     // verify may ask for another answer

	costOrder    []int   // see ladder
	costOrderMax []int64 // by rung, of each dimension the most that it or one below has
}

func (w *Planner) newSolver(withMarked bool) *solver {
	v := &solver{w: w, upcoming: make([]int, len(w.Groups)), done: make([]bool, len(w.Groups))}
	v.a.grow = make([]int, len(w.Groups))
	v.a.on, v.a.left = make([]int, len(w.Demands)), make([]int, len(w.Demands))
	v.a.allocations = make([][]allocation, len(w.Demands))
	for i := range w.Demands {
		v.a.left[i] = w.Demands[i].Count()
	}
	for _, i := range w.NodesWithRoom() {
		n := &w.Nodes[i]
		if w.isOpen(n, withMarked) {
			v.a.bins = append(v.a.bins, bin{node: i, group: n.Group, room: slices.Clone(n.Room)})
		}
	}
	for i := range w.Groups {
		v.upcoming[i] = w.Groups[i].Upcoming + w.Groups[i].Grow
	}
	return v
}

// isOpen tells whether pods may count on a node.
func (w *Planner) isOpen(n *round.Node, withMarked bool) bool {
	return n.State == round.StateReady || n.State == round.StateUpcoming || withMarked && n.State == round.StateMarked && n.Ready == "True"
}

// fits is how many pods of demand i a group's machine may take at all.
func (v *solver) fits(i, g int) bool {
	empty, shape := v.w.Template(&v.w.Groups[g])
	k := &v.w.Demands[i]
	return binpack.Fits(empty, v.w.size(k.Class)) && v.w.topology.AllowsGroup(k, g) && v.w.Takes(k.Class, g, shape)
}

// placeOnExisting places what it can on what is there and commits that.
func (v *solver) placeOnExisting(pick func(i int) int, whole bool) bool {
	p, which := v.problemOf(pick, nil, 0)
	if whole && len(p.Items) > 0 && p.Infeasible() {
		return false
	}
	k := binpack.Pack(p)
	if whole && k.Unplaced() > 0 {
		return false
	}
	v.apply(&k, which, -1, nil)
	return k.Unplaced() == 0
}

// apply takes over an answer of the packer for group g, -1 for none, whose machines
// may as well be of the other groups of a set.
func (v *solver) apply(k *binpack.Packing, which []int, chosen int, set []int) {
	v.applyMixed(k, which, chosen, set, nil)
}

func (v *solver) applyOption(o *option) { v.applyMixed(&o.k, o.which, o.group, o.set, o.groups) }

// applyMixed is apply for machines of several sizes: mix has the group of each kind of fresh
// bin, nil where all are of the chosen group.
func (v *solver) applyMixed(k *binpack.Packing, which []int, chosen int, set, mix []int) {
	v.on = nil
	for b, parts := range k.Open {
		for _, t := range parts {
			pl := &v.a.bins[b]
			i := which[t.Item]
			v.use(pl, i, t.N)
			binpack.Sub(pl.room, v.w.size(v.w.Demands[i].Class), t.N)
			v.a.left[i] -= t.N
			if v.remembers() {
				pl.portions = append(pl.portions, binpack.Portion{Item: which[t.Item], N: t.N})
			}
			switch {
			case pl.node < 0, v.w.Nodes[pl.node].State == round.StateUpcoming:
				v.add(which[t.Item], pl.group, t.N, pl.fresh)
			default:
				v.a.on[which[t.Item]] += t.N
			}
		}
	}
	v.applyFresh(k, which, chosen, set, mix)
}

// remembers tells whether the answer lists the pods of each machine: where pods are constrained, and where the next
// round uses the list (see contents).
func (v *solver) remembers() bool { return v.w.topology != nil || v.w.tooLarge == "" }

// use notes what a place is used for.
func (v *solver) use(pl *bin, i, n int) {
	if k := &v.w.Demands[i]; k.Headroom == "" {
		pl.used = true
	} else {
		pl.headroom = append(pl.headroom, round.HeadroomPieces{Class: k.Class, Count: n})
	}
}

// applyFresh adds the new machines of an answer of the packer.
func (v *solver) applyFresh(k *binpack.Packing, which []int, chosen int, set, mix []int) {
	v.a.bins = slices.Grow(v.a.bins, k.Bins)
	for x, f := range k.Fresh {
		for range f.Times {
			g := 0
			if mix != nil && mix[x] != chosen {
				g = mix[x]
			} else {
				g = v.next(set, chosen)
			}
			fresh := v.upcoming[g] == 0
			if fresh {
				v.a.grow[g]++
			} else {
				v.upcoming[g]--
			}
			pl := bin{node: -1, group: g, room: slices.Clone(f.Room), used: true, fresh: fresh}
			if v.remembers() {
				pl.portions = make([]binpack.Portion, 0, len(f.Portions))
			}
			if g != chosen && mix != nil {
				v.convertRoom(pl.room, chosen, g)
			}
			for _, t := range f.Portions {
				v.add(which[t.Item], g, t.N, fresh)
				v.a.left[which[t.Item]] -= t.N
				if v.remembers() {
					pl.portions = append(pl.portions, binpack.Portion{Item: which[t.Item], N: t.N})
				}
			}
			v.a.bins = append(v.a.bins, pl)
		}
	}
}

func (v *solver) add(i, g, n int, fresh bool) {
	all := v.a.allocations[i]
	at := len(all)
	for at > 0 && all[at-1].group >= g {
		at--
	}
	if at == len(all) || all[at].group != g {
		all = slices.Insert(all, at, allocation{group: g})
		v.a.allocations[i] = all
	}
	if fresh {
		all[at].new += n
	} else {
		all[at].upcoming += n
	}
}

// solve finds room for everything that is left: on what is there when that is
// enough; else group by group, those first that need nothing new, then as the
// expander says, each packed together with what is there.
func (v *solver) solve() {
	left := func(i int) int { return v.a.left[i] }
	if v.placeOnExisting(left, true) {
		return
	}
	for range 2 { // a second time for what a group had no machine left for when it was its turn
		for {
			best := v.pick()
			if best == nil {
				break
			}
			v.done[best.group] = true
			v.applyOption(best)
		}
		if v.a.unplaced() == 0 {
			return
		}
		clear(v.done)
	}
	v.placeOnExisting(left, false)
}

// keepReservations keeps reservations: pods that were counted on a group's upcoming machines stay
// counted there, even when this round would pack them in another way, as long as
// the machines could hold them at all. First without the nodes that are there: what
// was reserved was reserved on the machines. When some of these have arrived since,
// with the nodes.
func (v *solver) keepReservations() bool {
	any := false
	for g := range v.w.Groups {
		if v.w.Groups[g].Template.Unknown != "" || !v.expectsUpcoming(g) {
			continue
		}
		any = v.keepReserved(g, false) || v.keepReserved(g, true) || any
	}
	return any
}

// reserved is how many pods of demand i count on group g.
func (v *solver) reserved(i, g int) int {
	k := &v.w.Demands[i]
	if !k.Buys {
		return 0
	}
	n, others := 0, k.Expected
	for _, key := range k.Keys {
		switch v.w.ReservedTo(key) {
		case v.w.Groups[g].ID:
			n++
		case "":
			others++
		}
	}
	return min(n+min(others, v.w.Memory.ReservedMissing[round.MissingPodsKey(v.w.Groups[g].ID, k.Owner)]), v.a.left[i])
}

func (v *solver) keepReserved(g int, nodes bool) bool {
	empty, _ := v.w.Template(&v.w.Groups[g])
	p, which := v.problemOf(func(i int) int {
		if !v.fits(i, g) {
			return 0
		}
		return v.reserved(i, g)
	}, empty, v.upcoming[g])
	if !nodes {
		for b := range p.Open {
			if !v.isUpcoming(&v.a.bins[b], g) {
				p.Open[b] = make([]int64, len(empty))
			}
		}
		p.Items = slices.Clone(p.Items)
		for l := range p.Items {
			on := slices.Clone(p.Items[l].On)
			for b := range on {
				on[b] = on[b] && v.isUpcoming(&v.a.bins[b], g)
			}
			if !slices.Contains(on, true) {
				on = nil
			}
			p.Items[l].On = on
		}
	}
	if len(p.Items) == 0 || p.LowerBound() > v.upcoming[g] || !p.EachFits(v.upcoming[g]) {
		return false
	}
	k := binpack.Pack(p)
	rest := slices.Clone(k.Left)
	v.apply(&k, which, g, []int{g})
	if nodes {
		return true // who has no room beside the nodes any more has been overtaken, and is to be asked for anew
	}
	if k.Unplaced() > 0 { // what these pods will need of the machines is not known exactly
		v.upcoming[g], v.on = 0, nil
		for b := range v.a.bins {
			if v.isUpcoming(&v.a.bins[b], g) {
				v.a.bins[b].room = make([]int64, len(empty))
			}
		}
	}
	for i, n := range rest {
		v.add(which[i], g, n, false)
		v.a.left[which[i]] -= n
	}
	return true
}

// isUpcoming tells a machine of a group that is still to come.
func (v *solver) isUpcoming(p *bin, g int) bool {
	return p.group == g && (p.node < 0 || v.w.Nodes[p.node].State == round.StateUpcoming)
}

// expectsUpcoming tells whether anything of a group is still to come.
func (v *solver) expectsUpcoming(g int) bool {
	return v.upcoming[g] > 0 || slices.ContainsFunc(v.a.bins, func(p bin) bool {
		return p.group == g && p.node >= 0 && v.w.Nodes[p.node].State == round.StateUpcoming
	})
}

// passes tells whether a class may go on a place, room aside.
func (v *solver) passes(class int, p *bin) bool {
	w := v.w
	if p.node < 0 {
		_, shape := w.Template(&w.Groups[p.group])
		return w.Takes(class, p.group, shape)
	}
	return w.Passes(class, p.node)
}

package packing

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Bin is a bin that is there: a node, or a machine that is upcoming and already holds
// pods of this round.
type Bin struct {
	Node     int // index into State.Nodes, -1: an upcoming machine of group
	Group    int
	Room     []int64
	Used     bool
	Fresh    bool                   // it is a machine that is bought
	Portions []binpack.Portion      // the pods of this solution on this machine, by demand; empty where solver.remembers says no
	Headroom []round.HeadroomPieces // headroom that is kept free here
}

// Taken tells whether pods or headroom count on a place.
func (b *Bin) Taken() bool { return b.Used || b.Headroom != nil }

// Allocation counts the pods of one demand that go on the upcoming and the new machines of one group.
type Allocation struct{ Group, Upcoming, New int }

// Solution says where all wanted pods would go.
type Solution struct {
	Bins        []Bin
	Grow        []int          // new machines by group
	On          []int          // by demand: pods on nodes that are Ready
	Allocations [][]Allocation // by demand, in the order of the groups
	Left        []int          // by demand: pods that no group can help
	Reasons     []string       // by group: what kube-scheduler has to do with its machines (see purchase.reasons); nil: it was not asked
}

// Bought is how many machines are bought.
func (a *Solution) Bought() int {
	n := 0
	for _, g := range a.Grow {
		n += g
	}
	return n
}

// Unplaced is how many pods no group can help.
func (a *Solution) Unplaced() int {
	n := 0
	for _, c := range a.Left {
		n += c
	}
	return n
}

// Solver works one Solution out; several are tried in a round.
type Solver struct {
	w            *Packer
	Solution     Solution
	upcoming     []int // machines by group that are upcoming and still empty
	done         []bool
	first        []bool           // by demand: the only ones that options are for now; nil: all
	on           []binpack.Bins   // by demand: see mayGo
	asked        []int            // by demand: how many of the places in its domain on is of
	places       [][]int          // by domain; 0: all
	lessRoom     []int            // by place: the last packing that took room of it
	scarceBuffer []binpack.Amount // room for what scarce lists
	leastRoom    []int64          // by dimension: the least room of all places
	measured     int              // the places that leastRoom is of
	mayAsk       bool             // verify may ask for another solution

	options []*option // by group: the option that was found last
	changes int       // packings that were applied
	changed []int     // by demand: the last packing that took pods of it
	picked  []int     // room for what problemOf picks
	flat    []int64   // room for what relax finds
	singles []option  // room for what preferred compares
	rooms   [][]int64 // of the places, as far as a problem was written of them

	rankOrder    []int   // see groupsByRank
	rankOrderMax []int64 // by place in it, of each dimension the most that it or one before it has
}

// NewSolver begins a Solution on the nodes that pods may count on, with or without those that are being emptied.
func (w *Packer) NewSolver(withMarked bool) *Solver {
	v := &Solver{w: w, upcoming: make([]int, len(w.Groups)), done: make([]bool, len(w.Groups))}
	v.Solution.Grow = make([]int, len(w.Groups))
	v.Solution.On, v.Solution.Left = make([]int, len(w.Demands)), make([]int, len(w.Demands))
	v.Solution.Allocations = make([][]Allocation, len(w.Demands))
	v.on, v.asked, v.changed, v.options = make([]binpack.Bins, len(w.Demands)), make([]int, len(w.Demands)), make([]int, len(w.Demands)), make([]*option, len(w.Groups))
	for i := range w.Demands {
		v.Solution.Left[i] = w.Demands[i].Count()
	}
	for _, i := range w.nodesWithRoom() {
		n := &w.Nodes[i]
		if w.IsOpen(n, withMarked) {
			v.Solution.Bins = append(v.Solution.Bins, Bin{Node: i, Group: n.Group, Room: slices.Clone(n.Room)})
		}
	}
	for i := range w.Groups {
		v.upcoming[i] = w.Groups[i].Upcoming + w.Groups[i].Grow
	}
	return v
}

// IsOpen tells whether pods may count on a node.
func (w *Packer) IsOpen(n *round.Node, withMarked bool) bool {
	return n.State == round.StateReady || n.State == round.StateUpcoming || withMarked && n.State == round.StateMarked && n.Ready == "True"
}

// fits tells whether a group's machine takes a pod of demand i at all.
func (w *Packer) fits(i, g int) bool {
	empty, shape := w.Template(&w.Groups[g])
	k := &w.Demands[i]
	return w.item(k.Class).Fits(empty) && w.Topology.AllowsGroup(k, g) && w.Takes(k.Class, g, shape)
}

// TakenBy lists the demands of which a group's machine takes a pod. It costs D once.
func (w *Packer) TakenBy(g int) []int {
	if w.taken == nil {
		w.taken = make([][]int, len(w.Groups))
	}
	if w.taken[g] == nil {
		w.taken[g] = []int{}
		for i := range w.Demands {
			if w.fits(i, g) {
				w.taken[g] = append(w.taken[g], i)
			}
		}
	}
	return w.taken[g]
}

// apply takes over a packing for group g, -1 for none, whose machines
// may as well be of the other groups of a set.
func (v *Solver) apply(k *binpack.Packing, which []int, chosen int, set []int) {
	v.applyMixed(k, which, chosen, set, nil)
}

func (v *Solver) applyOption(o *option) { v.applyMixed(&o.k, o.which, o.group, o.set, o.groups) }

// applyMixed is apply for machines of several sizes: mix has the group of each kind of fresh
// bin, nil where all are of the chosen group.
func (v *Solver) applyMixed(k *binpack.Packing, which []int, chosen int, set, mix []int) {
	v.changes++
	for _, f := range k.Open {
		for _, t := range f.Portions {
			v.Put(&v.Solution.Bins[f.Bin], which[t.Item], t.N)
		}
		v.tookRoom(f.Bin)
	}
	v.applyFresh(k, which, chosen, set, mix)
}

// remembers tells whether the solution lists the pods of each machine: where pods are constrained, and where the next
// round uses the list (see contents).
func (v *Solver) remembers() bool { return v.w.Topology != nil || v.w.ListPods }

// Put puts n pods of demand i on a bin.
func (v *Solver) Put(pl *Bin, i, n int) {
	k := &v.w.Demands[i]
	if k.Headroom == "" {
		pl.Used = true
	} else {
		pl.Headroom = append(pl.Headroom, round.HeadroomPieces{Class: k.Class, Count: n})
	}
	v.w.item(k.Class).Take(pl.Room, n)
	if v.remembers() {
		pl.Portions = append(pl.Portions, binpack.Portion{Item: i, N: n})
	}
	v.Solution.Left[i] -= n
	v.changed[i] = v.changes
	if pl.Node >= 0 && v.w.Nodes[pl.Node].State != round.StateUpcoming {
		v.Solution.On[i] += n
		return
	}
	v.add(i, pl.Group, n, pl.Fresh)
}

// applyFresh adds the new machines of a packing.
func (v *Solver) applyFresh(k *binpack.Packing, which []int, chosen int, set, mix []int) {
	v.Solution.Bins = slices.Grow(v.Solution.Bins, k.Bins)
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
				v.Solution.Grow[g]++
			} else {
				v.upcoming[g]--
			}
			pl := Bin{Node: -1, Group: g, Room: slices.Clone(f.Room), Used: true, Fresh: fresh}
			if v.remembers() {
				pl.Portions = make([]binpack.Portion, 0, len(f.Portions))
			}
			if g != chosen && mix != nil {
				v.convertRoom(pl.Room, chosen, g)
			}
			for _, t := range f.Portions {
				v.add(which[t.Item], g, t.N, fresh)
				v.Solution.Left[which[t.Item]] -= t.N
				v.changed[which[t.Item]] = v.changes
				if v.remembers() {
					pl.Portions = append(pl.Portions, binpack.Portion{Item: which[t.Item], N: t.N})
				}
			}
			v.Solution.Bins = append(v.Solution.Bins, pl)
		}
	}
}

func (v *Solver) add(i, g, n int, fresh bool) {
	all := v.Solution.Allocations[i]
	at := len(all)
	for at > 0 && all[at-1].Group >= g {
		at--
	}
	if at == len(all) || all[at].Group != g {
		all = slices.Insert(all, at, Allocation{Group: g})
		v.Solution.Allocations[i] = all
	}
	if fresh {
		all[at].New += n
	} else {
		all[at].Upcoming += n
	}
}

// solve finds room for everything that is left: on what is there when that is
// enough; else group by group, those first that need nothing new, then as the
// expander says, each packed together with what is there.
func (v *Solver) solve() {
	if v.placeAll() {
		return
	}
	for range 2 { // a second time for what a group had no machine left for when it was its turn
		v.takeOptions()
		if v.Solution.Unplaced() == 0 {
			return
		}
		clear(v.done)
	}
	v.placeOnExisting(v.left, false)
}

// takeOptions takes the best option of each group, one after the other, until none is left. Before those for headroom alone, pods take the
// room that is there: no machine comes for those that are left.
func (v *Solver) takeOptions() {
	placed := false
	for best := v.pick(); best != nil; best = v.pick() {
		if best.headroom && !placed {
			placed = true
			v.placeOnExisting(v.leftPods, false)
			continue
		}
		v.done[best.group] = true
		v.applyOption(best)
		v.options[best.group] = nil // it takes much memory, and stands no more
	}
}

// keepReservations keeps reservations: pods that were counted on a group's upcoming machines stay
// counted there, even when this round would pack them in another way, as long as
// the machines could hold them at all. First without the nodes that are there: what
// was reserved was reserved on the machines. When some of these have arrived since,
// with the nodes.
func (v *Solver) keepReservations() bool {
	any := false
	for g := range v.w.Groups {
		if v.w.Groups[g].Template.Unknown != "" || !v.expectsUpcoming(g) {
			continue
		}
		any = v.keepReserved(g, false) || v.keepReserved(g, true) || any
	}
	return any
}

// Reserved is how many pods of demand i count on group g.
func (v *Solver) Reserved(i, g int) int {
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
	return min(n+min(others, v.w.Memory.ReservedMissing[round.MissingPodsKey(v.w.Groups[g].ID, k.Owner)]), v.Solution.Left[i])
}

func (v *Solver) keepReserved(g int, nodes bool) bool {
	empty, _ := v.w.Template(&v.w.Groups[g])
	p, which := v.problemOf(v.w.TakenBy(g), func(i int) int { return v.Reserved(i, g) }, empty, v.upcoming[g])
	if len(p.Items) == 0 {
		return false
	}
	if !nodes {
		v.withoutNodes(p, g)
	}
	if p.LowerBound() > v.upcoming[g] || !p.EachFits(v.upcoming[g]) {
		return false
	}
	k := binpack.Pack(p)
	rest := slices.Clone(k.Left)
	v.apply(&k, which, g, []int{g})
	if nodes {
		return true // a pod that has no room beside the nodes any more is to be bought for anew
	}
	if k.Unplaced() > 0 { // what these pods will need of the machines is not known exactly
		v.upcoming[g] = 0
		for b := range v.Solution.Bins {
			if v.isUpcoming(&v.Solution.Bins[b], g) {
				clear(v.Solution.Bins[b].Room)
				v.tookRoom(b)
			}
		}
	}
	for i, n := range rest {
		v.add(which[i], g, n, false)
		v.Solution.Left[which[i]] -= n
	}
	return true
}

// withoutNodes takes the places that are no upcoming machines of a group out of a problem.
func (v *Solver) withoutNodes(p *binpack.Problem, g int) {
	none := make([]int64, len(p.Empty))
	p.Open = slices.Clone(p.Open)
	for b := range p.Open {
		if !v.isUpcoming(&v.Solution.Bins[b], g) {
			p.Open[b] = none
		}
	}
}

// isUpcoming tells a machine of a group that is still to come.
func (v *Solver) isUpcoming(p *Bin, g int) bool {
	return p.Group == g && (p.Node < 0 || v.w.Nodes[p.Node].State == round.StateUpcoming)
}

// expectsUpcoming tells whether anything of a group is still to come.
func (v *Solver) expectsUpcoming(g int) bool {
	return v.upcoming[g] > 0 || slices.ContainsFunc(v.Solution.Bins, func(p Bin) bool {
		return p.Group == g && p.Node >= 0 && v.w.Nodes[p.Node].State == round.StateUpcoming
	})
}

// passes tells whether a class may go on a place, room aside.
func (v *Solver) passes(class int, p *Bin) bool {
	w := v.w
	if p.Node < 0 {
		_, shape := w.Template(&w.Groups[p.Group])
		return w.Takes(class, p.Group, shape)
	}
	return w.Passes(class, p.Node)
}

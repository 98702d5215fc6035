package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// place is a bin that is there: a node, or a machine that is coming and already holds
// pods of this round.
type place struct {
	node  int // index into world.nodes, -1: a coming machine of group
	group int
	room  []int64
	used  bool
	fresh bool      // it is a machine that is bought
	parts []portion // what was put there in this answer, by want; only where pods are constrained
	spare []spare   // headroom that is kept free here
}

// share is what one group's coming and new machines take of one want.
type share struct{ group, coming, new int }

// answer says where all wanted pods would go.
type answer struct {
	places []place
	grow   []int       // new machines by group
	on     []int       // by want: pods on nodes that are Ready
	shares [][]share   // by want, in the order of the groups
	left   []int       // by want: pods that no group can help
	filled []filledBin // what the machines carry that it fills, as packed
}

func (a *answer) bought() int {
	n := 0
	for _, g := range a.grow {
		n += g
	}
	return n
}

func (a *answer) unhelped() int {
	n := 0
	for _, c := range a.left {
		n += c
	}
	return n
}

// solver answers one set of wants; several are tried in a round.
type solver struct {
	w          *roundState
	a          answer
	coming     []int // machines by group that are coming and still empty
	done       []bool
	which      []int     // of the last problem, as long as on stands
	items      []item    // the same
	fresh      bool      // the same: for new machines
	placed     int       // places then
	coalesced  coalesced // what they were merged to
	counts     []int     // by want: room for the next problem
	on         [][]bool  // by want: see mayGo; nil: places have changed
	seats      [][]bool  // room for on
	binDomains []int     // by place, as long as on stands; empty where nothing is constrained
	asked      []int     // by want, where on stands: one more than the places that it was asked for
	mayAsk     bool      // verify may ask for another answer
	all        bool      // verify places unconstrained pods that are left, too

	prices      []float64 // by group: what a mix of groups is held against; nil: none is wanted
	fromScratch bool      // the mix does not begin with what is coming
	first       *answer   // the expander's

	costOrder    []int   // see ladder
	costOrderMax []int64 // by rung, of each dimension the most that it or one below has
}

func (w *roundState) newSolver(withMarked bool) *solver {
	ints := &w.scratch.perRound.ints
	v := &solver{w: w, coming: ints.alloc(len(w.groups), 0), done: make([]bool, len(w.groups))}
	v.a.grow = ints.alloc(len(w.groups), 0)
	v.a.on, v.a.left = ints.alloc(len(w.want), 0), ints.alloc(len(w.want), 0)
	v.a.shares = make([][]share, len(w.want))
	for i := range w.want {
		v.a.left[i] = w.want[i].count()
	}
	for _, i := range w.roomy() {
		n := &w.nodes[i]
		if n.state == stateReady || n.state == stateComing || withMarked && n.state == stateMarked && n.Ready == "True" {
			v.a.places = append(v.a.places, place{node: i, group: n.group, room: slices.Clone(n.room)})
		}
	}
	for i := range w.groups {
		v.coming[i] = w.groups[i].coming + w.groups[i].grow
	}
	return v
}

// fits is how many pods of want i a group's machine may take at all.
func (v *solver) fits(i, g int) bool {
	empty, shape := v.w.template(&v.w.groups[g])
	k := &v.w.want[i]
	return fit.One(empty, v.w.size(k.class)) && v.w.topology.allowsGroup(k, g) && v.w.takes(k.class, g, shape)
}

// there places what it can on what is there and commits that.
func (v *solver) there(pick func(i int) int, whole bool) bool {
	p, which := v.problemOf(pick, nil, 0)
	if whole && len(p.items) > 0 && p.infeasible() {
		return false
	}
	k := pack(p)
	if whole && k.unplaced() > 0 {
		return false
	}
	v.commit(&k, which, -1, nil)
	return k.unplaced() == 0
}

// commit takes over an answer of the packer for group g, -1 for none, whose machines
// may as well be of the other groups of a set.
func (v *solver) commit(k *packing, which []int, chosen int, set []int) {
	v.take(k, which, chosen, set, nil)
}

func (v *solver) commitMix(o *option) { v.take(&o.k, o.which, o.group, o.set, o.groups) }

func (v *solver) take(k *packing, which []int, chosen int, set, mix []int) {
	v.on = nil
	take := func(i, n int) { v.a.left[which[i]] -= n }
	for b, parts := range k.open {
		for _, t := range parts {
			pl := &v.a.places[b]
			i := which[t.item]
			if v.w.want[i].spare == "" {
				pl.used = true
			} else {
				pl.spare = append(pl.spare, spare{class: v.w.want[i].class, count: t.n})
			}
			fit.Take(pl.room, v.w.size(v.w.want[i].class), t.n)
			take(t.item, t.n)
			if v.w.topology != nil {
				pl.parts = append(pl.parts, portion{which[t.item], t.n})
			}
			switch {
			case pl.node < 0, v.w.nodes[pl.node].state == stateComing:
				v.add(which[t.item], pl.group, t.n, pl.fresh)
			default:
				v.a.on[which[t.item]] += t.n
			}
		}
	}
	if chosen >= 0 {
		v.recordContents(k, which, chosen, mix)
	}
	v.a.places = slices.Grow(v.a.places, k.bins)
	for x, f := range k.fresh {
		for range f.times {
			g := 0
			if mix != nil && mix[x] != chosen {
				g = mix[x]
			} else {
				g = v.next(set, chosen)
			}
			fresh := v.coming[g] == 0
			if fresh {
				v.a.grow[g]++
			} else {
				v.coming[g]--
			}
			pl := place{node: -1, group: g, room: v.w.scratch.perRound.rooms.clone(f.room, 0), used: true, fresh: fresh}
			if v.w.topology != nil {
				pl.parts = v.w.scratch.perRound.portions.alloc(0, len(f.portions))
			}
			if g != chosen && mix != nil {
				v.convertRoom(pl.room, chosen, g)
			}
			for _, t := range f.portions {
				v.add(which[t.item], g, t.n, fresh)
				take(t.item, t.n)
				if v.w.topology != nil {
					pl.parts = append(pl.parts, portion{which[t.item], t.n})
				}
			}
			v.a.places = append(v.a.places, pl)
		}
	}
}

func (v *solver) add(i, g, n int, fresh bool) {
	all := v.a.shares[i]
	at := len(all)
	for at > 0 && all[at-1].group >= g {
		at--
	}
	if at == len(all) || all[at].group != g {
		if all == nil {
			all = v.w.scratch.allocations.alloc(0, 1)
		}
		all = slices.Insert(all, at, share{group: g})
		v.a.shares[i] = all
	}
	if fresh {
		all[at].new += n
	} else {
		all[at].coming += n
	}
}

// solve finds room for everything that is left: on what is there when that is
// enough; else group by group, those first that need nothing new, then as the
// expander says, each packed together with what is there.
func (v *solver) solve() {
	left := func(i int) int { return v.a.left[i] }
	if v.there(left, true) {
		return
	}
	if v.prices != nil {
		v.solveMixed()
	}
	for range 2 { // a second time for what a group had no machine left for when it was its turn
		for {
			best := v.pick()
			if best == nil {
				break
			}
			v.done[best.group] = true
			v.commitMix(best)
		}
		if v.a.unhelped() == 0 {
			return
		}
		clear(v.done)
	}
	v.there(left, false)
}

// inOrder lets groups take what they can onto what is coming, one after the other.
func (v *solver) inOrder(groups []int) {
	for _, g := range groups {
		if o := v.optionFor(g, v.coming[g]); o != nil {
			v.commit(&o.k, o.which, o.group, []int{o.group})
		}
	}
}

// orders are the first sequences, at most most, in which groups can be taken.
func orders(groups []int, most int) (out [][]int) {
	var next func(head, rest []int)
	next = func(head, rest []int) {
		if len(out) == most {
			return
		}
		if len(rest) == 0 {
			out = append(out, slices.Clone(head))
		}
		for i, g := range rest {
			next(append(head, g), slices.Delete(slices.Clone(rest), i, i+1))
		}
	}
	next(nil, groups)
	return out
}

// trust keeps promises: pods that were counted on a group's coming machines stay
// counted there, even when this round would pack them in another way, as long as
// the machines could hold them at all. First without the nodes that are there: what
// was promised was promised on the machines. When some of these have arrived since,
// with the nodes.
func (v *solver) trust() bool {
	any := false
	for g := range v.w.groups {
		if v.w.groups[g].Template.Unknown != "" || !v.expects(g) {
			continue
		}
		any = v.keep(g, false) || v.keep(g, true) || any
	}
	return any
}

// promised is how many pods of want i count on group g.
func (v *solver) promised(i, g int) int {
	k := &v.w.want[i]
	if !k.buys {
		return 0
	}
	n, others := 0, k.expected
	for _, key := range k.keys {
		switch v.w.promisedTo(key) {
		case v.w.groups[g].ID:
			n++
		case "":
			others++
		}
	}
	return min(n+min(others, v.w.in.PromisedMissing[unmade(v.w.groups[g].ID, k.owner)]), v.a.left[i])
}

func (v *solver) keep(g int, nodes bool) bool {
	empty, _ := v.w.template(&v.w.groups[g])
	p, which := v.problemOf(func(i int) int {
		if !v.fits(i, g) {
			return 0
		}
		return v.promised(i, g)
	}, empty, v.coming[g])
	if !nodes {
		for b := range p.open {
			if !v.awaited(&v.a.places[b], g) {
				p.open[b] = make([]int64, len(empty))
			}
		}
		p.items = slices.Clone(p.items)
		for l := range p.items {
			on := slices.Clone(p.items[l].on)
			for b := range on {
				on[b] = on[b] && v.awaited(&v.a.places[b], g)
			}
			if !slices.Contains(on, true) {
				on = nil
			}
			p.items[l].on = on
		}
	}
	if len(p.items) == 0 || p.lowerBound() > v.coming[g] || !p.eachFits(v.coming[g]) {
		return false
	}
	k := pack(p)
	rest := slices.Clone(k.left)
	v.commit(&k, which, g, []int{g})
	if nodes {
		return true // who has no room beside the nodes any more has been overtaken, and is to be asked for anew
	}
	if k.unplaced() > 0 { // what these pods will need of the machines is not known exactly
		v.coming[g], v.on = 0, nil
		for b := range v.a.places {
			if v.awaited(&v.a.places[b], g) {
				v.a.places[b].room = make([]int64, len(empty))
			}
		}
	}
	for i, n := range rest {
		v.add(which[i], g, n, false)
		v.a.left[which[i]] -= n
	}
	return true
}

// eachFits tells whether every class for itself would fit into the open bins and n fresh
// ones.
func (p *problem) eachFits(n int) bool {
	for i := range p.items {
		l := &p.items[i]
		room := n * fit.Most(p.empty, l.size)
		for b := range p.open {
			if l.goes(b) {
				room += min(fit.Most(p.open[b], l.size), l.count)
			}
		}
		if room < l.count {
			return false
		}
	}
	return true
}

// awaited tells a machine of a group that is still to come.
func (v *solver) awaited(p *place, g int) bool {
	return p.group == g && (p.node < 0 || v.w.nodes[p.node].state == stateComing)
}

// expects tells whether anything of a group is still to come.
func (v *solver) expects(g int) bool {
	return v.coming[g] > 0 || slices.ContainsFunc(v.a.places, func(p place) bool {
		return p.group == g && p.node >= 0 && v.w.nodes[p.node].state == stateComing
	})
}

package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Pods that are constrained to each other are divided among zones before machines are looked
// at, and a simple rule that takes pods as they come can be luckier than that. So the
// answer is held against what a few such rules would buy: group by group, as Cluster
// Autoscaler does (greedygroup.go), and with machines of which the group is still open,
// as Karpenter does (greedyclaim.go), in all zones and in some of them only. Where pods
// are spread, a zone without nodes is no domain, and who buys in fewer zones may need
// less. What the rules find is replayed like every other answer (verifier.go), and the
// best of all is given.
const (
	// greedyWork bounds the judgements of pods and machines by all rules of one round.
	greedyWork = 800_000
	// greedyPods and greedyLooks (wants by places) are what is worth looking at pod by
	// pod; more is decided well by counts.
	greedyPods  = 1_500
	greedyLooks = 20_000
	// greedyCells is up to how many zones all selections of them are tried.
	greedyCells = 3
	// mendTimes is how often the best answer is mended.
	mendTimes = 2
	// tiedPool is what packings may spend on columns in a round that these rules look at.
	tiedPool = columnPool / 5
)

// limitPackSteps takes work from the packer where what it finds is improved on in any case.
func (w *roundState) limitPackSteps() {
	if w.topology != nil && w.greedyFew() {
		w.pool = min(w.pool, tiedPool)
	}
}

// greedily returns the best of an answer and of what simple rules would buy.
func (w *roundState) greedily(best *answer) *answer {
	if w.topology == nil || best.bought()+best.unhelped() == 0 || len(w.groups) == 0 {
		return best
	}
	cost, margin := w.costs()
	if cost == nil || !w.greedyFew() {
		return best
	}
	thrifty := margin == 0 || !w.spreads()
	hard := make([]bool, len(w.want))
	for i := range w.want {
		hard[i] = w.want[i].perPod
	}
	// Nobody knows on which machine those are who were promised one, so that others may
	// be thought to be helped who are not: such an answer is only for buying less.
	if best.bought() > 0 {
		if a := w.remembered(); a != nil && a.bought() < best.bought() && a.unhelped() <= best.unhelped() {
			best = a
		}
	}
	under := w.underWay()
	if best.bought()+best.unhelped() == 0 || under && best.bought() == 0 {
		return best
	}
	work := greedyWork
	for _, cells := range w.selections() {
		for _, rule := range greedyRules {
			if work <= 0 {
				break
			}
			a := w.greedyAnswer(rule, cells, cost, &work)
			if a == nil {
				continue
			}
			for i := range w.want { // what was hard for this rule need not be for others
				w.want[i].perPod = hard[i]
			}
			if under && a.bought() > 0 {
				continue
			}
			if !thrifty && a.unhelped() >= best.unhelped() && !under {
				continue // who asks for a spread over zones gives it up for pods, not to spare a machine
			}
			if w.outdoes(a, best, cost) {
				best = a
			}
		}
	}
	for round := range mendTimes {
		if best.bought() == 0 || !thrifty || under { // mending may empty a zone
			break
		}
		best = w.relieved(best, cost, round)
	}
	return best
}

// underWay tells that machines are coming or are being emptied. Who stands on those is
// not known pod by pod, and a rule that counts pods one by one could buy for the same
// pods twice. What it may find then is that nothing need be bought, because what is
// coming is enough: after a restart nobody else remembers that. Both found by fuzzing.
func (w *roundState) underWay() bool {
	return w.promised() ||
		slices.ContainsFunc(w.groups, func(g group) bool { return g.coming+g.grow > 0 }) ||
		slices.ContainsFunc(w.nodes, func(n node) bool { return n.state == stateComing || n.state == stateMarked })
}

// spreads tells whether pods that buy are to be spread over zones.
func (w *roundState) spreads() bool {
	return slices.ContainsFunc(w.want, func(k want) bool { return k.buys && zoneSkew(&w.s.Classes[k.class]) > 0 })
}

// greedyFew tells whether there is little enough to look at it pod by pod, and whether
// no group is balanced with others: the rules know nothing of that.
func (w *roundState) greedyFew() bool {
	n := 0
	for i := range w.want {
		n += w.want[i].count()
	}
	if n > greedyPods || len(w.want)*len(w.roomy()) > greedyLooks || len(w.want)*len(w.groups) > greedyLooks {
		return false
	}
	for g := range w.groups {
		if len(w.peers(g)) > 1 {
			return false
		}
	}
	return true
}

// outdoes tells whether an answer helps more pods than another, those of the highest
// priority first, or as many for less.
func (w *roundState) outdoes(a, than *answer, cost []float64) bool {
	if a.unhelped() > than.unhelped() {
		return false
	}
	for from := 0; from < len(w.want); { // wants come by falling priority
		prio, more := w.s.Classes[w.want[from].class].Priority, 0
		for ; from < len(w.want) && w.s.Classes[w.want[from].class].Priority == prio; from++ {
			more += than.left[from] - a.left[from]
		}
		if more != 0 {
			return more > 0
		}
	}
	return a.price(cost) < than.price(cost)-1e-9
}

// selections are the domains that the rules may buy in: all of them and, where pods are
// spread over zones, fewer, as long as nothing stands in what is left out. By domain; nil
// stands for all.
func (w *roundState) selections() [][]bool {
	b := w.topology
	out := [][]bool{nil}
	if b.domains < 2 || !slices.ContainsFunc(w.want, func(k want) bool { return zoneSkew(&w.s.Classes[k.class]) > 0 }) {
		return out
	}
	there := make([]bool, b.domains+1)
	for n := range w.nodes {
		there[b.nodeDomain[n]] = true
	}
	var open []int // domains that may stay empty
	for g := range w.groups {
		there[b.groupDomain[g]] = there[b.groupDomain[g]] || w.groups[g].coming+w.groups[g].grow > 0
	}
	for cell := 1; cell <= b.domains; cell++ {
		if !there[cell] {
			open = append(open, cell)
		}
	}
	if len(open) > greedyCells {
		for _, one := range open {
			out = append(out, slices.Clone(there))
			out[len(out)-1][one] = true
		}
		return out
	}
	for set := 0; set < 1<<len(open)-1; set++ {
		cells := slices.Clone(there)
		for k, cell := range open {
			cells[cell] = set>>k&1 == 1
		}
		if slices.Contains(cells, true) {
			out = append(out, cells)
		}
	}
	return out
}

// greedy is one rule at work.
type greedy struct {
	v    *solver
	st   *fit.State
	cost []float64
	fits [][]bool // by want and group: whether an empty machine of it takes a pod
	bins []bin    // machines that are to be bought
	work *int
}

// bin is a machine that is to be bought.
type bin struct {
	group, node int // node: in the State
	room        []int64
	parts       []portion
	free        bool // it is coming already: it costs nothing and stays
}

// greedyRules are the rules, each of which fills g.bins; false: it would do the same as
// one before it.
var greedyRules = []func(g *greedy) bool{
	func(g *greedy) bool { return g.byGroup(leastWaste) },
	func(g *greedy) bool { return g.byGroup(leastCost) },
	func(g *greedy) bool { return g.byClaim(false) },
	func(g *greedy) bool { return g.byClaim(true) },
}

// greedyAnswer is what one rule buys in some domains: promises are kept first, then what
// is there and what is coming is filled, then the rule buys, and the whole is replayed. nil: see greedyRules.
func (w *roundState) greedyAnswer(rule func(*greedy) bool, cells []bool, cost []float64, work *int) *answer {
	marked := slices.ContainsFunc(w.nodes, func(n node) bool { return n.state == stateMarked })
	v := w.newSolver(marked)
	if w.promised() {
		v.trust()
	}
	var coming []int
	for g := range w.groups {
		if v.coming[g] > 0 {
			coming = append(coming, g)
		}
	}
	v.await(coming, true)
	g := &greedy{v: v, st: w.topology.state, cost: cost, work: work}
	mark := g.st.Mark()
	g.there()
	g.judge(cells)
	grow := slices.Clone(v.a.grow)
	applies := rule(g)
	v.a.grow = grow
	g.st.Rollback(mark)
	if !applies {
		return nil
	}
	g.commit()
	v.all = cells != nil
	v.verify()
	return &v.a
}

// there puts what it can on what is there and on what is coming.
func (g *greedy) there() {
	v := g.v
	r := &verifier{v: v, b: v.w.topology, st: g.st}
	for p := range v.a.places {
		pl := &v.a.places[p]
		node := pl.node
		if node < 0 {
			node = r.addMachine(pl.group)
		}
		r.nodes = append(r.nodes, node)
		for _, t := range pl.parts {
			g.st.Put(v.w.want[t.item].class, node, t.n)
		}
	}
	*g.work -= len(v.w.want) * len(v.a.places)
	for progress := len(v.a.places) > 0; progress; {
		progress = false
		for i := range v.w.want {
			progress = v.a.left[i] > 0 && r.placeOn(i) || progress
		}
	}
}

// judge finds out what goes on which group's machines, of those in some domains.
func (g *greedy) judge(cells []bool) {
	w := g.v.w
	g.fits = make([][]bool, len(w.want))
	for i := range w.want {
		g.fits[i] = make([]bool, len(w.groups))
	}
	for x := range w.groups {
		gr := &w.groups[x]
		if gr.Template.Unknown != "" || gr.rule != "" && gr.coming+gr.grow == 0 || cells != nil && !cells[w.topology.groupDomain[x]] {
			continue
		}
		empty, shape := w.template(gr)
		for i := range w.want {
			k := &w.want[i]
			g.fits[i][x] = k.buys && g.v.a.left[i] > 0 && fit.Most(empty, w.space.Class(k.class)) > 0 && w.takes(k.class, x, shape) && w.topology.reachable(k.class, x)
		}
	}
}

// most is how many of n pods of a want a machine takes now.
func (g *greedy) most(i, n int, room []int64, node int) int {
	class := g.v.w.want[i].class
	*g.work--
	if n = min(n, fit.Most(room, g.v.w.space.Class(class))); n > 0 && g.v.w.topology.constrained[class] {
		n = min(n, g.st.Most(class, node))
	}
	return n
}

// put puts pods of a want on a machine.
func (g *greedy) put(x *bin, i, n int) {
	w := g.v.w
	class := w.want[i].class
	fit.Take(x.room, w.size(class), n)
	if w.topology.constrained[class] {
		g.st.Put(class, x.node, n)
	}
	if at := slices.IndexFunc(x.parts, func(t portion) bool { return t.item == i }); at >= 0 {
		x.parts[at].n += n
		return
	}
	x.parts = append(x.parts, portion{i, n})
}

// open is a new machine of a group.
func (g *greedy) open(group int) bin {
	gr := &g.v.w.groups[group]
	empty, shape := g.v.w.template(gr)
	*g.work--
	return bin{group: group, node: g.st.AddNode(shape, gr.Template.VolumeLimits), room: slices.Clone(empty)}
}

// commit buys the machines, each of the cheapest group of its domain that holds what is
// on it.
func (g *greedy) commit() {
	v, w := g.v, g.v.w
	for _, x := range g.bins {
		if x.free {
			g.recall(x)
			continue
		}
		if len(x.parts) == 0 {
			continue
		}
		best := -1
		for o := range w.groups {
			if w.topology.groupDomain[o] == w.topology.groupDomain[x.group] && (best < 0 || g.cost[o] < g.cost[best]-1e-9 || o == x.group && g.cost[o] < g.cost[best]+1e-9) && g.holds(o, x.parts) && v.own(o) > 0 {
				best = o
			}
		}
		if best < 0 {
			continue // a limit is reached
		}
		empty, _ := w.template(&w.groups[best])
		pl := place{node: -1, group: best, room: slices.Clone(empty), used: true, fresh: true, parts: x.parts}
		for _, t := range x.parts {
			fit.Take(pl.room, w.size(w.want[t.item].class), t.n)
			v.add(t.item, best, t.n, true)
			v.a.left[t.item] -= t.n
		}
		v.a.grow[best]++
		v.a.places, v.on = append(v.a.places, pl), nil
	}
}

// recall puts a machine that is coming back into the answer.
func (g *greedy) recall(x bin) {
	v := g.v
	empty, _ := v.w.template(&v.w.groups[x.group])
	pl := place{node: -1, group: x.group, room: slices.Clone(empty), used: len(x.parts) > 0, parts: x.parts}
	for _, t := range x.parts {
		fit.Take(pl.room, v.w.size(v.w.want[t.item].class), t.n)
		v.add(t.item, x.group, t.n, false)
		v.a.left[t.item] -= t.n
	}
	v.a.places, v.on = append(v.a.places, pl), nil
}

// holds tells whether a machine of a group has room for a content and takes all of it.
func (g *greedy) holds(group int, parts []portion) bool {
	empty, _ := g.v.w.template(&g.v.w.groups[group])
	room := slices.Clone(empty)
	for _, t := range parts {
		size := g.v.w.space.Class(g.v.w.want[t.item].class)
		if !g.fits[t.item][group] || fit.Most(room, size) < t.n {
			return false
		}
		fit.Take(room, size, t.n)
	}
	return true
}

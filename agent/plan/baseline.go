package plan

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// Pods that are constrained to each other are divided among zones before machines are looked
// at, and a simple rule that takes pods as they come can be luckier than that. So the
// answer is held against what a few such rules would buy: group by group, as Cluster
// Autoscaler does (groupestimate.go), and with machines of which the group is still open,
// as Karpenter does (nodeclaims.go), in all zones and in some of them only. Where pods
// are spread, a zone without nodes is no domain, and who buys in fewer zones may need
// less. What the rules find is replayed like every other answer (verifier.go), and the
// best of all is given.
const (
	// baselineWork bounds the judgements of pods and machines by all rules of one round.
	baselineWork = 800_000
	// baselinePods and baselineSteps (demands by places) are what is worth looking at pod by
	// pod; more is decided well by counts.
	baselinePods  = 1_500
	baselineSteps = 20_000
	// baselineDomains is up to how many zones all selections of them are tried.
	baselineDomains = 3
	// improveTimes is how often the best answer is mended.
	improveTimes = 2
	// constrainedPool is what packings may spend on columns in a round that these rules look at.
	constrainedPool = columnPool / 5
)

// limitPackSteps takes work from the packer where what it finds is improved on in any case.
func (w *upPlanner) limitPackSteps() {
	if w.topology != nil && w.baselineFeasible() {
		w.pool = min(w.pool, constrainedPool)
	}
}

// baselineSolution returns the best of an answer and of what simple rules would buy.
func (w *upPlanner) baselineSolution(best *solution) *solution {
	if w.topology == nil || best.bought()+best.unplaced() == 0 || len(w.groups) == 0 {
		return best
	}
	cost, margin := w.costs()
	if cost == nil || !w.baselineFeasible() {
		return best
	}
	thrifty := margin == 0 || !w.anyZoneSpread()
	hard := make([]bool, len(w.demands))
	for i := range w.demands {
		hard[i] = w.demands[i].perPod
	}
	// Nobody knows on which machine those are who have one reserved, so that others may
	// be thought to be helped who are not: such an answer is only for buying less.
	if best.bought() > 0 {
		if a := w.reservedSolution(); a != nil && a.bought() < best.bought() && a.unplaced() <= best.unplaced() {
			best = a
		}
	}
	under := w.anyUpcoming()
	if best.bought()+best.unplaced() == 0 || under && best.bought() == 0 {
		return best
	}
	work := baselineWork
	for _, cells := range w.zoneSubsets() {
		for _, rule := range baselineRules {
			if work <= 0 {
				break
			}
			a := w.solveBaseline(rule, cells, cost, &work)
			if a == nil {
				continue
			}
			for i := range w.demands { // what was hard for this rule need not be for others
				w.demands[i].perPod = hard[i]
			}
			if under && a.bought() > 0 {
				continue
			}
			if !thrifty && a.unplaced() >= best.unplaced() && !under {
				continue // who asks for a spread over zones gives it up for pods, not to spare a machine
			}
			if w.betterThan(a, best, cost) {
				best = a
			}
		}
	}
	for round := range improveTimes {
		if best.bought() == 0 || !thrifty || under { // mending may empty a zone
			break
		}
		best = w.improvedSolution(best, cost, round)
	}
	return best
}

// anyUpcoming tells that machines are upcoming or are being emptied. Who stands on those is
// not known pod by pod, and a rule that counts pods one by one could buy for the same
// pods twice. What it may find then is that nothing need be bought, because what is
// coming is enough: after a restart nobody else remembers that. Both found by fuzzing.
func (w *upPlanner) anyUpcoming() bool {
	return w.hasReservations() ||
		slices.ContainsFunc(w.groups, func(g group) bool { return g.upcoming+g.grow > 0 }) ||
		slices.ContainsFunc(w.nodes, func(n node) bool { return n.state == stateUpcoming || n.state == stateMarked })
}

// anyZoneSpread tells whether pods that buy are to be spread over zones.
func (w *upPlanner) anyZoneSpread() bool {
	return slices.ContainsFunc(w.demands, func(k demand) bool { return k.buys && zoneSkew(&w.s.Classes[k.class]) > 0 })
}

// baselineFeasible tells whether there is little enough to look at it pod by pod, and whether
// no group is balanced with others: the rules know nothing of that.
func (w *upPlanner) baselineFeasible() bool {
	n := 0
	for i := range w.demands {
		n += w.demands[i].count()
	}
	if n > baselinePods || len(w.demands)*len(w.nodesWithRoom()) > baselineSteps || len(w.demands)*len(w.groups) > baselineSteps {
		return false
	}
	for g := range w.groups {
		if len(w.peers(g)) > 1 {
			return false
		}
	}
	return true
}

// betterThan tells whether an answer helps more pods than another, those of the highest
// priority first, or as many for less.
func (w *upPlanner) betterThan(a, than *solution, cost []float64) bool {
	if a.unplaced() > than.unplaced() {
		return false
	}
	for from := 0; from < len(w.demands); { // demands come by falling priority
		prio, more := w.s.Classes[w.demands[from].class].Priority, 0
		for ; from < len(w.demands) && w.s.Classes[w.demands[from].class].Priority == prio; from++ {
			more += than.left[from] - a.left[from]
		}
		if more != 0 {
			return more > 0
		}
	}
	return a.price(cost) < than.price(cost)-1e-9
}

// zoneSubsets are the domains that the rules may buy in: all of them and, where pods are
// spread over zones, fewer, as long as nothing stands in what is left out. By domain; nil
// stands for all.
func (w *upPlanner) zoneSubsets() [][]bool {
	b := w.topology
	out := [][]bool{nil}
	if b.domains < 2 || !slices.ContainsFunc(w.demands, func(k demand) bool { return zoneSkew(&w.s.Classes[k.class]) > 0 }) {
		return out
	}
	there := make([]bool, b.domains+1)
	for n := range w.nodes {
		there[b.nodeDomain[n]] = true
	}
	var open []int // domains that may stay empty
	for g := range w.groups {
		there[b.groupDomain[g]] = there[b.groupDomain[g]] || w.groups[g].upcoming+w.groups[g].grow > 0
	}
	for cell := 1; cell <= b.domains; cell++ {
		if !there[cell] {
			open = append(open, cell)
		}
	}
	if len(open) > baselineDomains {
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

// baseline is one rule at work.
type baseline struct {
	v        *solver
	st       *fit.State
	cost     []float64
	fits     [][]bool         // by demand and group: whether an empty machine of it takes a pod
	machines []plannedMachine // machines that are to be bought
	work     *int
}

// plannedMachine is a machine that is to be bought.
type plannedMachine struct {
	group, node int // node: in the State
	room        []int64
	portions    []portion
	upcoming    bool // it is upcoming already: it costs nothing and stays
}

// baselineRules are the rules, each of which fills g.bins; false: it would do the same as
// one before it.
var baselineRules = []func(g *baseline) bool{
	func(g *baseline) bool { return g.estimateByGroup(leastWaste) },
	func(g *baseline) bool { return g.estimateByGroup(leastCost) },
	func(g *baseline) bool { return g.claimNodes(false) },
	func(g *baseline) bool { return g.claimNodes(true) },
}

// solveBaseline is what one rule buys in some domains: reservations are kept first, then what
// is there and what is upcoming is filled, then the rule buys, and the whole is replayed. nil: see baselineRules.
func (w *upPlanner) solveBaseline(rule func(*baseline) bool, cells []bool, cost []float64, work *int) *solution {
	marked := slices.ContainsFunc(w.nodes, func(n node) bool { return n.state == stateMarked })
	v := w.newSolver(marked)
	if w.hasReservations() {
		v.keepReservations()
	}
	var coming []int
	for g := range w.groups {
		if v.upcoming[g] > 0 {
			coming = append(coming, g)
		}
	}
	v.openUpcoming(coming, true)
	g := &baseline{v: v, st: w.topology.state, cost: cost, work: work}
	mark := g.st.Mark()
	g.placeOnExisting()
	g.judgeGroups(cells)
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

// placeOnExisting puts what it can on what is there and on what is upcoming.
func (g *baseline) placeOnExisting() {
	v := g.v
	r := &verifier{v: v, b: v.w.topology, st: g.st}
	for p := range v.a.bins {
		pl := &v.a.bins[p]
		node := pl.node
		if node < 0 {
			node = r.addMachine(pl.group)
		}
		r.nodes = append(r.nodes, node)
		for _, t := range pl.portions {
			g.st.Put(v.w.demands[t.item].class, node, t.n)
		}
	}
	*g.work -= len(v.w.demands) * len(v.a.bins)
	for progress := len(v.a.bins) > 0; progress; {
		progress = false
		for i := range v.w.demands {
			progress = v.a.left[i] > 0 && r.placeOn(i) || progress
		}
	}
}

// judgeGroups finds out what goes on which group's machines, of those in some domains.
func (g *baseline) judgeGroups(cells []bool) {
	w := g.v.w
	g.fits = make([][]bool, len(w.demands))
	for i := range w.demands {
		g.fits[i] = make([]bool, len(w.groups))
	}
	for x := range w.groups {
		gr := &w.groups[x]
		if gr.Template.Unknown != "" || gr.rule != "" && gr.upcoming+gr.grow == 0 || cells != nil && !cells[w.topology.groupDomain[x]] {
			continue
		}
		empty, shape := w.template(gr)
		for i := range w.demands {
			k := &w.demands[i]
			g.fits[i][x] = k.buys && g.v.a.left[i] > 0 && fit.MaxFit(empty, w.space.Class(k.class)) > 0 && w.takes(k.class, x, shape) && w.topology.reachable(k.class, x)
		}
	}
}

// most is how many of n pods of a demand a machine takes now.
func (g *baseline) most(i, n int, room []int64, node int) int {
	class := g.v.w.demands[i].class
	*g.work--
	if n = min(n, fit.MaxFit(room, g.v.w.space.Class(class))); n > 0 && g.v.w.topology.constrained[class] {
		n = min(n, g.st.MaxFit(class, node))
	}
	return n
}

// put puts pods of a demand on a machine.
func (g *baseline) put(x *plannedMachine, i, n int) {
	w := g.v.w
	class := w.demands[i].class
	fit.Sub(x.room, w.size(class), n)
	if w.topology.constrained[class] {
		g.st.Put(class, x.node, n)
	}
	if at := slices.IndexFunc(x.portions, func(t portion) bool { return t.item == i }); at >= 0 {
		x.portions[at].n += n
		return
	}
	x.portions = append(x.portions, portion{i, n})
}

// open is a new machine of a group.
func (g *baseline) open(group int) plannedMachine {
	gr := &g.v.w.groups[group]
	empty, shape := g.v.w.template(gr)
	*g.work--
	return plannedMachine{group: group, node: g.st.AddNode(shape, gr.Template.VolumeLimits), room: slices.Clone(empty)}
}

// commit buys the machines, each of the cheapest group of its domain that holds what is
// on it.
func (g *baseline) commit() {
	v, w := g.v, g.v.w
	for _, x := range g.machines {
		if x.upcoming {
			g.restoreUpcoming(x)
			continue
		}
		if len(x.portions) == 0 {
			continue
		}
		best := -1
		for o := range w.groups {
			if w.topology.groupDomain[o] == w.topology.groupDomain[x.group] && (best < 0 || g.cost[o] < g.cost[best]-1e-9 || o == x.group && g.cost[o] < g.cost[best]+1e-9) && g.holds(o, x.portions) && v.own(o) > 0 {
				best = o
			}
		}
		if best < 0 {
			continue // a limit is reached
		}
		empty, _ := w.template(&w.groups[best])
		pl := bin{node: -1, group: best, room: slices.Clone(empty), used: true, fresh: true, portions: x.portions}
		for _, t := range x.portions {
			fit.Sub(pl.room, w.size(w.demands[t.item].class), t.n)
			v.add(t.item, best, t.n, true)
			v.a.left[t.item] -= t.n
		}
		v.a.grow[best]++
		v.a.bins, v.on = append(v.a.bins, pl), nil
	}
}

// restoreUpcoming puts a machine that is upcoming back into the answer.
func (g *baseline) restoreUpcoming(x plannedMachine) {
	v := g.v
	empty, _ := v.w.template(&v.w.groups[x.group])
	pl := bin{node: -1, group: x.group, room: slices.Clone(empty), used: len(x.portions) > 0, portions: x.portions}
	for _, t := range x.portions {
		fit.Sub(pl.room, v.w.size(v.w.demands[t.item].class), t.n)
		v.add(t.item, x.group, t.n, false)
		v.a.left[t.item] -= t.n
	}
	v.a.bins, v.on = append(v.a.bins, pl), nil
}

// holds tells whether a machine of a group has room for a content and takes all of it.
func (g *baseline) holds(group int, parts []portion) bool {
	empty, _ := g.v.w.template(&g.v.w.groups[group])
	room := slices.Clone(empty)
	for _, t := range parts {
		size := g.v.w.space.Class(g.v.w.demands[t.item].class)
		if !g.fits[t.item][group] || fit.MaxFit(room, size) < t.n {
			return false
		}
		fit.Sub(room, size, t.n)
	}
	return true
}

package scaleup

import (
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
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
	constrainedPool = binpack.ColumnPool / 5
)

// limitPackSteps takes work from the packer where what it finds is improved on in any case.
func (w *Planner) limitPackSteps() {
	if w.topology != nil && w.baselineFeasible() {
		w.pool = min(w.pool, constrainedPool)
	}
}

// baselineSolution returns the best of an answer and of what simple rules would buy.
func (w *Planner) baselineSolution(best *solution) *solution {
	if w.topology == nil || best.bought()+best.unplaced() == 0 || len(w.Groups) == 0 {
		return best
	}
	cost, margin := w.costs()
	if cost == nil || !w.baselineFeasible() {
		return best
	}
	thrifty := margin == 0 || !w.anyZoneSpread()
	hard := make([]bool, len(w.Demands))
	for i := range w.Demands {
		hard[i] = w.Demands[i].PerPod
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
			for i := range w.Demands { // what was hard for this rule need not be for others
				w.Demands[i].PerPod = hard[i]
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
func (w *Planner) anyUpcoming() bool {
	return w.HasReservations() ||
		slices.ContainsFunc(w.Groups, func(g round.Group) bool { return g.Upcoming+g.Grow > 0 }) ||
		slices.ContainsFunc(w.Nodes, func(n round.Node) bool { return n.State == round.StateUpcoming || n.State == round.StateMarked })
}

// anyZoneSpread tells whether pods that buy are to be spread over zones.
func (w *Planner) anyZoneSpread() bool {
	return slices.ContainsFunc(w.Demands, func(k round.Demand) bool { return k.Buys && topology.ZoneSkew(&w.Snapshot.Classes[k.Class]) > 0 })
}

// baselineFeasible tells whether there is little enough to look at it pod by pod, and whether
// no group is balanced with others: the rules know nothing of that.
func (w *Planner) baselineFeasible() bool {
	n := 0
	for i := range w.Demands {
		n += w.Demands[i].Count()
	}
	if n > baselinePods || len(w.Demands)*len(w.NodesWithRoom()) > baselineSteps || len(w.Demands)*len(w.Groups) > baselineSteps {
		return false
	}
	for g := range w.Groups {
		if len(w.Peers(g)) > 1 {
			return false
		}
	}
	return true
}

// betterThan tells whether an answer helps more pods than another, those of the highest
// priority first, or as many for less.
func (w *Planner) betterThan(a, than *solution, cost []float64) bool {
	if a.unplaced() > than.unplaced() {
		return false
	}
	for from := 0; from < len(w.Demands); { // demands come by falling priority
		prio, more := w.Snapshot.Classes[w.Demands[from].Class].Priority, 0
		for ; from < len(w.Demands) && w.Snapshot.Classes[w.Demands[from].Class].Priority == prio; from++ {
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
func (w *Planner) zoneSubsets() [][]bool {
	b := w.topology
	out := [][]bool{nil}
	if b.Domains < 2 || !slices.ContainsFunc(w.Demands, func(k round.Demand) bool { return topology.ZoneSkew(&w.Snapshot.Classes[k.Class]) > 0 }) {
		return out
	}
	there := make([]bool, b.Domains+1)
	for n := range w.Nodes {
		there[b.NodeDomain[n]] = true
	}
	var open []int // domains that may stay empty
	for g := range w.Groups {
		there[b.GroupDomain[g]] = there[b.GroupDomain[g]] || w.Groups[g].Upcoming+w.Groups[g].Grow > 0
	}
	for cell := 1; cell <= b.Domains; cell++ {
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
	portions    []binpack.Portion
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
func (w *Planner) solveBaseline(rule func(*baseline) bool, cells []bool, cost []float64, work *int) *solution {
	marked := slices.ContainsFunc(w.Nodes, func(n round.Node) bool { return n.State == round.StateMarked })
	v := w.newSolver(marked)
	if w.HasReservations() {
		v.keepReservations()
	}
	var coming []int
	for g := range w.Groups {
		if v.upcoming[g] > 0 {
			coming = append(coming, g)
		}
	}
	v.openUpcoming(coming, true)
	g := &baseline{v: v, st: w.topology.State, cost: cost, work: work}
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
			g.st.Put(v.w.Demands[t.Item].Class, node, t.N)
		}
	}
	*g.work -= len(v.w.Demands) * len(v.a.bins)
	for progress := len(v.a.bins) > 0; progress; {
		progress = false
		for i := range v.w.Demands {
			progress = v.a.left[i] > 0 && r.placeOn(i) || progress
		}
	}
}

// judgeGroups finds out what goes on which group's machines, of those in some domains.
func (g *baseline) judgeGroups(cells []bool) {
	w := g.v.w
	g.fits = make([][]bool, len(w.Demands))
	for i := range w.Demands {
		g.fits[i] = make([]bool, len(w.Groups))
	}
	for x := range w.Groups {
		gr := &w.Groups[x]
		if gr.Template.Unknown != "" || !gr.CanGrow() && gr.Upcoming+gr.Grow == 0 || cells != nil && !cells[w.topology.GroupDomain[x]] {
			continue
		}
		empty, shape := w.Template(gr)
		for i := range w.Demands {
			k := &w.Demands[i]
			g.fits[i][x] = k.Buys && g.v.a.left[i] > 0 && binpack.MaxFit(empty, w.Dimensions.Class(k.Class)) > 0 && w.Takes(k.Class, x, shape) && w.topology.Reachable(k.Class, x)
		}
	}
}

// most is how many of n pods of a demand a machine takes now.
func (g *baseline) most(i, n int, room []int64, node int) int {
	class := g.v.w.Demands[i].Class
	*g.work--
	if n = min(n, binpack.MaxFit(room, g.v.w.Dimensions.Class(class))); n > 0 && g.v.w.topology.Constrained[class] {
		n = min(n, g.st.MaxFit(class, node))
	}
	return n
}

// put puts pods of a demand on a machine.
func (g *baseline) put(x *plannedMachine, i, n int) {
	w := g.v.w
	class := w.Demands[i].Class
	binpack.Sub(x.room, w.size(class), n)
	if w.topology.Constrained[class] {
		g.st.Put(class, x.node, n)
	}
	if at := slices.IndexFunc(x.portions, func(t binpack.Portion) bool { return t.Item == i }); at >= 0 {
		x.portions[at].N += n
		return
	}
	x.portions = append(x.portions, binpack.Portion{Item: i, N: n})
}

// open is a new machine of a group.
func (g *baseline) open(group int) plannedMachine {
	gr := &g.v.w.Groups[group]
	empty, shape := g.v.w.Template(gr)
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
		for o := range w.Groups {
			if w.topology.GroupDomain[o] == w.topology.GroupDomain[x.group] && (best < 0 || g.cost[o] < g.cost[best]-1e-9 || o == x.group && g.cost[o] < g.cost[best]+1e-9) && g.holds(o, x.portions) && v.own(o) > 0 {
				best = o
			}
		}
		if best < 0 {
			continue // a limit is reached
		}
		empty, _ := w.Template(&w.Groups[best])
		pl := bin{node: -1, group: best, room: slices.Clone(empty), used: true, fresh: true, portions: x.portions}
		for _, t := range x.portions {
			binpack.Sub(pl.room, w.size(w.Demands[t.Item].Class), t.N)
			v.add(t.Item, best, t.N, true)
			v.a.left[t.Item] -= t.N
		}
		v.a.grow[best]++
		v.a.bins, v.on = append(v.a.bins, pl), nil
	}
}

// restoreUpcoming puts a machine that is upcoming back into the answer.
func (g *baseline) restoreUpcoming(x plannedMachine) {
	v := g.v
	empty, _ := v.w.Template(&v.w.Groups[x.group])
	pl := bin{node: -1, group: x.group, room: slices.Clone(empty), used: len(x.portions) > 0, portions: x.portions}
	for _, t := range x.portions {
		binpack.Sub(pl.room, v.w.size(v.w.Demands[t.Item].Class), t.N)
		v.add(t.Item, x.group, t.N, false)
		v.a.left[t.Item] -= t.N
	}
	v.a.bins, v.on = append(v.a.bins, pl), nil
}

// holds tells whether a machine of a group has room for a content and takes all of it.
func (g *baseline) holds(group int, parts []binpack.Portion) bool {
	empty, _ := g.v.w.Template(&g.v.w.Groups[group])
	room := slices.Clone(empty)
	for _, t := range parts {
		size := g.v.w.Dimensions.Class(g.v.w.Demands[t.Item].Class)
		if !g.fits[t.Item][group] || binpack.MaxFit(room, size) < t.N {
			return false
		}
		binpack.Sub(room, size, t.N)
	}
	return true
}

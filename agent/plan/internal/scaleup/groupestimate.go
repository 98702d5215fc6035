package scaleup

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// objective says how bad it is to buy the machines of an estimation; less is better.
type objective func(g *baseline, bins []plannedMachine) float64

// leastWaste is the expander least-waste: the shares of cpu and memory that stay unused.
func leastWaste(g *baseline, bins []plannedMachine) float64 {
	cpu, memory := g.content(bins)
	c := &g.v.w.Groups[bins[0].group].Template.Capacity
	return 2 - cpu/float64(max(c.MilliCPU, 1))/float64(len(bins)) - memory/float64(max(c.Memory, 1))/float64(len(bins))
}

// leastCost is what is paid for what is helped, in cores.
func leastCost(g *baseline, bins []plannedMachine) float64 {
	cpu, memory := g.content(bins)
	return float64(len(bins)) * g.cost[bins[0].group] / (binpack.CoreEquivalents(cpu, memory) + 0.01)
}

// content is the cpu and memory that the pods on some machines ask for.
func (g *baseline) content(bins []plannedMachine) (cpu, memory float64) {
	for x := range bins {
		for _, t := range bins[x].portions {
			size := g.v.w.Dimensions.Class(g.v.w.Demands[t.Item].Class)
			cpu += float64(size[0] * int64(t.N))
			memory += float64(size[1] * int64(t.N))
		}
	}
	return cpu, memory
}

// estimateByGroup estimates for every group what its machines could take, buys those of the
// best, and begins again with what is left.
func (g *baseline) estimateByGroup(bad objective) bool {
	g.buyFor(slices.Clone(g.v.a.left), bad)
	return true
}

// buyFor takes what it places off left.
func (g *baseline) buyFor(left []int, bad objective) {
	for *g.work > 0 {
		g.refill(left)
		best, least := -1, 0.0
		for x := range g.v.w.Groups {
			mark := g.st.Mark()
			bins := g.estimate(x, slices.Clone(left))
			g.st.Rollback(mark)
			if len(bins) > 0 {
				if b := bad(g, bins); best < 0 || b < least-1e-12 {
					best, least = x, b
				}
			}
		}
		if best < 0 {
			break
		}
		bins := g.estimate(best, left)
		g.machines = append(g.machines, bins...)
		g.v.a.grow[best] += len(bins)
	}
}

// refill puts what waits onto machines that are bought already.
func (g *baseline) refill(left []int) {
	for i := range left {
		for x := 0; x < len(g.machines) && left[i] > 0; x++ {
			g.pour(&g.machines[x], i, left)
		}
	}
}

// pour puts what it can of a demand on a machine.
func (g *baseline) pour(x *plannedMachine, i int, left []int) bool {
	if !g.fits[i][x.group] {
		return false
	}
	n := g.most(i, left[i], x.room, x.node)
	if n <= 0 {
		return false
	}
	g.put(x, i, n)
	left[i] -= n
	return true
}

// estimate fills new machines of a group: classes by falling share of a machine, each
// first onto the machines of this estimation, then onto new ones, of which only the
// newest is looked at. It takes what it places off left.
func (g *baseline) estimate(group int, left []int) []plannedMachine {
	limit := g.v.own(group)
	if limit <= 0 {
		return nil
	}
	var bins []plannedMachine
	for _, i := range g.helped(group, left) {
		for x := 0; x < len(bins) && left[i] > 0; x++ {
			g.pour(&bins[x], i, left)
		}
		for left[i] > 0 && *g.work > 0 {
			if n := len(bins); n > 0 && (g.pour(&bins[n-1], i, left) || g.elsewhere(bins[:n-1], i, left)) {
				continue
			}
			if len(bins) == limit {
				break
			}
			mark := g.st.Mark()
			x := g.open(group)
			if !g.pour(&x, i, left) { // no new machine helps this class now
				g.st.Rollback(mark)
				break
			}
			bins = append(bins, x)
		}
	}
	return bins
}

// elsewhere puts one pod on a machine but the newest: what is spread over machines
// fits on an older one again once the newest has some.
func (g *baseline) elsewhere(bins []plannedMachine, i int, left []int) bool {
	class := g.v.w.Demands[i].Class
	if g.v.w.topology.Rank[class] != topology.RankHosts {
		return false
	}
	for x := range bins {
		if g.most(i, 1, bins[x].room, bins[x].node) > 0 {
			g.put(&bins[x], i, 1)
			left[i]--
			return true
		}
	}
	return false
}

// helped are the demands of which a pod could go onto an empty machine of a group now, by
// falling share of the machine.
func (g *baseline) helped(group int, left []int) []int {
	w := g.v.w
	var order []int
	mark := g.st.Mark()
	x := g.open(group)
	for i, n := range left {
		if n > 0 && g.fits[i][group] && g.most(i, 1, x.room, x.node) > 0 {
			order = append(order, i)
		}
	}
	g.st.Rollback(mark)
	share := func(i int) float64 {
		size := w.Dimensions.Class(w.Demands[i].Class)
		return float64(size[0])/float64(max(x.room[0], 1)) + float64(size[1])/float64(max(x.room[1], 1))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(share(b), share(a)) })
	return order
}

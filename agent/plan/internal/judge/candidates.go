package judge

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/topology"
)

// candidate is a purchase that is worth a trial, and what it was found to cost.
type candidate struct {
	machines []int
	price    float64
}

// candidates are purchases found by simple methods: first machine by machine as the scheduler fills them, and
// Karpenter's; then one group as far as it goes, the cheapest first. Cluster Autoscaler's and some of the zones alone were
// candidates too: over 200 drawn worlds that saved less than half a percent.
// It costs covers and karpenterPurchase.
func (j *model) candidates() (out []candidate) {
	add := func(x []int) {
		if !slices.ContainsFunc(out, func(o candidate) bool { return slices.Equal(o.machines, x) }) && j.within(x) {
			out = append(out, candidate{machines: x, price: j.price(x)})
		}
	}
	covers := j.covers()
	add(covers[0])
	add(j.karpenterPurchase())
	rules := len(out)
	for _, x := range covers[1:] {
		add(x)
	}
	add(j.overZones(covers[0]))
	slices.SortStableFunc(out[rules:], func(a, b candidate) int { return cmp.Compare(a.price, b.price) })
	return out
}

// overZones is a purchase with the machines of equal groups shared out evenly, where pods are spread over zones: pods that may go anywhere
// leave room for them in each zone then. It costs the square of G.
func (j *model) overZones(x []int) []int {
	if j.zonesInUse == nil {
		return x
	}
	x = slices.Clone(x)
	for _, g := range j.groups {
		same := slices.DeleteFunc(slices.Clone(j.groups), func(o int) bool { return j.cost[o] != j.cost[g] || !slices.Equal(j.rooms[o], j.rooms[g]) })
		n := 0
		for _, o := range same {
			n += x[o]
		}
		for k, o := range same {
			x[o] = (n + k) / len(same)
		}
	}
	return x
}

// waiting counts the pods of the queue by class.
func (j *model) waiting() map[int]int {
	left := make(map[int]int)
	for _, r := range j.queue(0) {
		left[r.class] += r.n
	}
	return left
}

// covers are the purchases that fill machine after machine with what is left on the nodes
// that are there: of all groups, and of one group as far as it goes.
// It costs coverLeft for all groups, and for judgeFirst groups alone.
func (j *model) covers() (out [][]int) {
	sets := [][]int{j.groups}
	for _, g := range j.likely() {
		sets = append(sets, []int{g})
	}
	m := j.mark()
	defer j.rollback(m)
	left := j.waiting()
	for k, groups := range sets {
		if k > 0 && j.sim.Steps > j.limit {
			break
		}
		m := j.mark()
		x, rest := make([]int, len(j.cost)), maps.Clone(left)
		j.coverLeft(x, rest, groups)
		j.coverLeft(x, rest, j.groups)
		j.rollback(m)
		out = append(out, x)
	}
	return out
}

// collectZones finds the zones that are in use, where pods are spread over several. It costs the demands, N and G.
func (j *model) collectZones() {
	w, b := j.w, j.w.packer.Topology
	if b == nil || b.Domains < 2 || !slices.ContainsFunc(w.Demands, func(k round.Demand) bool { return topology.ZoneSkew(&w.Snapshot.Classes[k.Class]) > 0 }) {
		return
	}
	j.zonesInUse = make([]bool, b.Domains+1)
	for n := range w.Nodes {
		j.zonesInUse[b.NodeDomain[n]] = true
	}
	for g := range w.Groups {
		if w.Groups[g].Upcoming+w.Groups[g].Grow > 0 {
			j.zonesInUse[b.GroupDomain[g]] = true
		}
	}
}

// sameZones are the groups in zones that are in use or get a machine of a purchase, where pods are spread over zones;
// none where they are not, or where these are all groups. It costs G.
func (j *model) sameZones(x []int) (out []int) {
	if j.zonesInUse == nil {
		return nil
	}
	domains, used := j.w.packer.Topology.GroupDomain, j.usedZones(x)
	for _, g := range j.groups {
		if used[domains[g]] {
			out = append(out, g)
		}
	}
	if len(out) == len(j.groups) {
		return nil
	}
	return out
}

// judgeFirst is how many groups are tried as the first one.
const judgeFirst = 12

// likely are the groups that would be cheapest if all pods could be split.
func (j *model) likely() []int {
	need := j.needs()
	cost := func(g int) float64 { return share(need, j.rooms[g]) * j.cost[g] }
	out := slices.Clone(j.groups)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(cost(a), cost(b)) })
	return out[:min(len(out), judgeFirst)]
}

// needs sums up the requests of the pods of the queue. Where pods depend on each other, what has no
// place on a node now may have one later: less what the nodes have room for.
func (j *model) needs() []int64 {
	need := make([]int64, j.w.Dimensions.Len())
	for _, r := range j.queue(0) {
		if j.units[r.class] > 0 {
			binpack.Sub(need, j.w.Dimensions.Class(r.class), -r.n)
		}
	}
	for i := range j.nodes {
		if j.w.packer.Topology == nil && j.reserved == nil {
			break
		}
		for k := range need {
			need[k] -= max(j.sim.Room(i)[k], 0)
		}
	}
	return need
}

// missing is a lower bound of the price of the machines that a purchase still lacks: pods are
// counted as if they could be split.
func (j *model) missing(x []int, need []int64) (most float64) {
	for k, n := range need {
		for g, m := range x {
			if m > 0 {
				n -= int64(m) * j.rooms[g][k]
			}
		}
		least := math.Inf(1)
		for _, g := range j.groups {
			if room := j.rooms[g][k]; room > 0 {
				least = min(least, j.cost[g]*float64(n)/float64(room))
			}
		}
		if !math.IsInf(least, 1) {
			most = max(most, least)
		}
	}
	return most
}

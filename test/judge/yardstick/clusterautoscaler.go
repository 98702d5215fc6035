package yardstick

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
)

// ClusterAutoscaler buys as Cluster Autoscaler of July 2026 does with its defaults:
// every group's estimator says how many machines of it the waiting pods would need,
// least-waste takes one group, and what is left over waits for the next loop, where it
// first goes onto what has been bought. In its favour, pods stay where its estimator
// put them.
func (m *Mix) ClusterAutoscaler() Purchase {
	b := m.bins()
	out := Purchase{Machines: make([]int, len(m.empty))}
	for {
		b.refill()
		best, waste := -1, 0.0
		for g := range m.empty {
			e, ok := b.try(g)
			if ok && (best < 0 || e < waste) {
				best, waste = g, e
			}
		}
		if best < 0 {
			break
		}
		before := len(b.all)
		b.estimate(best)
		out.Machines[best] += len(b.all) - before
	}
	for _, n := range b.left {
		out.Left += n
	}
	return out
}

// refill puts waiting pods onto machines that have been bought.
func (b *bins) refill() {
	for c := range b.left {
		for _, x := range b.all {
			if b.left[c] == 0 {
				break
			}
			b.put(x, c, b.left[c])
		}
	}
}

// try is an estimation that leaves nothing behind. It returns the waste of the
// machines: the shares of cpu and memory that stay unused, added up.
func (b *bins) try(g int) (waste float64, ok bool) {
	left, before := slices.Clone(b.left), len(b.all)
	rooms := make([][]int64, before)
	pods := make([]int, before)
	for i, x := range b.all {
		rooms[i], pods[i] = slices.Clone(x.room), x.pods
	}
	mark := 0
	if b.state != nil {
		mark = b.state.Mark()
	}
	b.estimate(g)
	nodes := len(b.all) - before
	var cpu, memory int64
	for c, n := range left {
		size := b.m.space.Class(c)
		cpu += size[0] * int64(n-b.left[c])
		memory += size[1] * int64(n-b.left[c])
	}
	if b.state != nil {
		b.state.Rollback(mark)
	}
	b.all, b.left = b.all[:before], left
	for i, x := range b.all {
		x.room, x.pods = rooms[i], pods[i]
	}
	if nodes == 0 {
		return 0, false
	}
	t := b.m.Snapshot.Groups[g].Template.Capacity
	return 2 - float64(cpu)/float64(t.MilliCPU*int64(nodes)) - float64(memory)/float64(t.Memory*int64(nodes)), true
}

// estimate is the bin-packing estimator for one group: classes by falling score, each
// first onto the machines of this estimation, then onto new ones; for the latter only
// the newest machine is looked at.
func (b *bins) estimate(g int) {
	order := b.schedulable(g)
	first := len(b.all)
	for _, c := range order {
		for _, x := range b.all[first:] {
			if b.left[c] == 0 {
				break
			}
			b.put(x, c, b.left[c])
		}
		b.onNew(c, g, first)
	}
}

func (b *bins) onNew(c, g, first int) {
	for b.left[c] > 0 {
		if n := len(b.all); n > first {
			last := b.all[n-1]
			if b.put(last, c, b.left[c]) > 0 {
				continue
			}
			if b.m.Tie[c] == SpreadHost && binpack.MaxFit(last.room, b.m.space.Class(c)) > 0 && b.elsewhere(c, last) {
				continue
			}
		}
		mark := 0
		if b.state != nil {
			mark = b.state.Mark()
		}
		if b.put(b.open(g), c, 1) == 0 { // no new machine can help this class now
			b.all = b.all[:len(b.all)-1]
			if b.state != nil {
				b.state.Rollback(mark)
			}
			return
		}
	}
}

// elsewhere puts one pod on any machine but the newest.
func (b *bins) elsewhere(c int, last *bin) bool {
	for _, x := range b.all {
		if x != last && b.put(x, c, 1) > 0 {
			return true
		}
	}
	return false
}

// schedulable are the classes of which a pod could go onto an empty machine of a group
// now, by falling score: the sum of the shares of cpu and memory that a pod asks for.
func (b *bins) schedulable(g int) []int {
	var order []int
	for c, n := range b.left {
		if n == 0 || !b.m.fits[c][g] {
			continue
		}
		if b.state != nil {
			mark := b.state.Mark()
			ok := b.state.Passes(c, b.state.AddNode(&b.m.shapes[g], nil))
			b.state.Rollback(mark)
			if !ok {
				continue
			}
		}
		order = append(order, c)
	}
	score := func(c int) float64 {
		size, have := b.m.space.Class(c), b.m.empty[g]
		return float64(size[0])/float64(have[0]) + float64(size[1])/float64(have[1])
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(score(y), score(x)) })
	return order
}

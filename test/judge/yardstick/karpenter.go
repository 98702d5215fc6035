package yardstick

import (
	"cmp"
	"math"
	"slices"
)

// Karpenter buys as Karpenter of August 2026 does: pods by falling cpu and then memory,
// each onto the planned machine that has fewest pods and can still take it as some
// machine type, else onto a new one, which may become any type of its pool that still
// fits. At the end every planned machine becomes the cheapest type that it may be. A
// topology narrows a planned machine to one zone. What could not be placed is tried
// again as long as anything moves.
func (m *Mix) Karpenter() Purchase {
	k := &karpenter{m: m, left: slices.Clone(m.Count), inZone: make([]map[string]int, len(m.Count))}
	for c := range k.inZone {
		k.inZone[c] = map[string]int{}
	}
	order := make([]int, len(m.Count))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := m.space.Class(a), m.space.Class(b)
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	for moved := true; moved; {
		moved = false
		for _, c := range order {
			for k.left[c] > 0 && k.add(c) {
				k.left[c]--
				moved = true
			}
		}
	}
	out := Purchase{Machines: make([]int, len(m.empty))}
	for _, x := range k.claims {
		best := -1
		for _, g := range x.options {
			if best < 0 || m.Snapshot.Groups[g].Price < m.Snapshot.Groups[best].Price {
				best = g
			}
		}
		out.Machines[best]++
	}
	for _, n := range k.left {
		out.Left += n
	}
	return out
}

type karpenter struct {
	m      *Mix
	left   []int
	claims []*claim
	inZone []map[string]int // by like: pods of which the zone is settled
}

// like is under which class the pods of a class are counted.
func (k *karpenter) like(c int) int {
	if k.m.Like == nil {
		return c
	}
	return k.m.Like[c]
}

// claim is a machine of which the type is still open.
type claim struct {
	options []int // groups that it may still become
	used    []int64
	pods    int
	of      map[int]int // by like of classes with a tie
}

func (k *karpenter) add(c int) bool {
	var best *claim
	var options []int
	for _, x := range k.claims {
		if best != nil && x.pods >= best.pods {
			continue
		}
		if o := k.may(x, c); len(o) > 0 {
			best, options = x, o
		}
	}
	if best == nil {
		if best, options = k.fresh(c); best == nil {
			return false
		}
		k.claims = append(k.claims, best)
	}
	best.options = options
	best.pods++
	for j, v := range k.m.space.Class(c) {
		best.used[j] += v
	}
	if k.m.Tie[c] != Free {
		best.of[k.like(c)]++
		k.inZone[k.like(c)][k.m.Zone[options[0]]]++ // a zone's topology has narrowed it to one
	}
	return true
}

// fresh is a new planned machine of the first pool that can take a pod.
func (k *karpenter) fresh(c int) (*claim, []int) {
	var pools []string
	for _, p := range k.m.Pool {
		if !slices.Contains(pools, p) {
			pools = append(pools, p)
		}
	}
	slices.Sort(pools)
	for _, p := range pools {
		x := &claim{used: make([]int64, k.m.space.Len()), of: map[int]int{}}
		for g := range k.m.Pool {
			if k.m.Pool[g] == p {
				x.options = append(x.options, g)
			}
		}
		if o := k.may(x, c); len(o) > 0 {
			return x, o
		}
	}
	return nil, nil
}

// may returns what a planned machine could still become with one more pod of a class.
func (k *karpenter) may(x *claim, c int) []int {
	m := k.m
	switch {
	case m.Tie[c] == AntiHost && x.of[k.like(c)] > 0, m.Tie[c] == SpreadHost && x.of[k.like(c)]+1 > m.Skew[c]:
		return nil
	}
	size := m.space.Class(c)
	var out []int
next:
	for _, g := range x.options {
		if !m.fits[c][g] {
			continue
		}
		for j, v := range size {
			if v > 0 && x.used[j]+v > m.empty[g][j] {
				continue next
			}
		}
		out = append(out, g)
	}
	if m.Tie[c] != SpreadZone && m.Tie[c] != TogetherIn || len(out) == 0 {
		return out
	}
	zone, ok := k.zone(c, out)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(out, func(g int) bool { return m.Zone[g] != zone })
}

// zone is where the next pod of a class may go, among the zones of some groups.
func (k *karpenter) zone(c int, groups []int) (string, bool) {
	m := k.m
	least := math.MaxInt
	for g := range m.empty { // the zones that the class may be in at all
		if m.selected(c, g) {
			least = min(least, k.inZone[k.like(c)][m.Zone[g]])
		}
	}
	best, found := "", false
	some := len(k.inZone[k.like(c)]) > 0
	for _, g := range groups {
		z := m.Zone[g]
		n := k.inZone[k.like(c)][z]
		if m.Tie[c] == TogetherIn {
			if !some || n > 0 {
				return z, true
			}
			continue
		}
		if n+1-least <= m.Skew[c] && (!found || n < k.inZone[k.like(c)][best]) {
			best, found = z, true
		}
	}
	return best, found
}

// selected tells whether a class's node selector lets it into a group, room and taints
// aside: that is what counts for a spread's zones.
func (m *Mix) selected(c, g int) bool {
	for key, v := range m.Snapshot.Classes[c].NodeSelector {
		if m.Snapshot.Groups[g].Template.Labels[key] != v {
			return false
		}
	}
	return true
}

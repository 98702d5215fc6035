package purchase

import (
	"cmp"
	"math"
	"slices"
)

// exchange is a step of the search: n machines of a group go, m of another come.
type exchange struct {
	out, n, in, m int
	saves         float64
}

// exchanges are the steps from a purchase that save, what saves most first: up to three machines go, one or more come for them, or as
// many as hold the same by size come for all machines of a group, or for a half, a fourth and so on of them. It costs the groups of the
// purchase times G.
func (b *board) exchanges(x []int) (all []exchange) {
	for g, have := range x {
		if have == 0 && !slices.Contains(b.groups, g) {
			continue
		}
		numbers := []int{1, 2, 3}
		for n := have; n > 3; n /= 2 {
			numbers = append(numbers, n)
		}
		for _, n := range numbers {
			all = append(all, exchange{g, n, g, 0, float64(n) * b.cost[g]})
		}
		for _, in := range b.groups {
			if in == g {
				continue
			}
			add := func(n, m int) {
				if saves := float64(n)*b.cost[g] - float64(m)*b.cost[in]; saves > noise*b.cost[g] && m > 0 {
					all = append(all, exchange{g, n, in, m, saves})
				}
			}
			dearer := int(b.cost[in]/b.cost[g]) + 1 // so many cost more than one of the other
			for _, n := range []int{1, 2, 3, dearer, dearer + 1} {
				add(n, 1)
			}
			add(1, 2)
			add(1, int(b.cost[g]/b.cost[in]))
			for _, n := range numbers[1:] {
				add(n, n)
			}
			for _, n := range numbers[3:] {
				add(n, int(math.Ceil(float64(n)*share(b.rooms[g], b.rooms[in]))))
				add(n, int(float64(n)*b.cost[g]/b.cost[in]))
			}
		}
	}
	slices.SortStableFunc(all, func(x, y exchange) int { return cmp.Compare(y.saves, x.saves) })
	return slices.Compact(all)
}

// search exchanges machines for cheaper ones as long as that is better, within the limit of steps.
func (b *board) search(best trial, draws int) trial {
	moves, need := b.exchanges(best.x), b.needs()
	for i, failed := 0, 0; failed < len(moves) && b.sim.Steps < b.limit; {
		e := &moves[i]
		y := slices.Clone(best.x)
		y[e.out] -= e.n
		y[e.in] += e.m
		if y[e.out] >= 0 && b.price(y)+b.missing(y, need) < best.score && b.within(y) {
			if t, ok := b.try(y, draws, best.score); ok && t.draws >= best.draws && t.better(&best) {
				best, failed = t, 0
				continue // the same once more
			}
		}
		i, failed = (i+1)%len(moves), failed+1
	}
	return best
}

// Package exchange lists the steps of a local search among purchases: Saving(cost, groups, machines) and Equal(cost, groups,
// machines). An exchange takes machines of one group away and brings some of another, or none. Layer 1, pure. It refuses to know
// what a purchase is for: whether one is better afterwards is for the caller to see.
package exchange

import (
	"cmp"
	"math"
	"slices"
)

// Exchange is a step: machines of a group go, others come.
type Exchange struct {
	Out, N int // group, and how many of its machines go
	In, M  int // and come
	saves  float64
}

// Of is a purchase after an exchange; false: it has too few machines of the group.
func (e *Exchange) Of(machines []int) ([]int, bool) {
	if machines[e.Out] < e.N {
		return nil, false
	}
	y := slices.Clone(machines)
	y[e.Out] -= e.N
	y[e.In] += e.M
	return y, true
}

// Saving are the exchanges that save, what saves most first: some machines of a group for
// none, for fewer dear ones or for more cheap ones of another. It costs the square of the groups.
func Saving(cost []float64, groups, machines []int) (out []Exchange) {
	for _, g := range sold(groups, machines) {
		for n := 1; n <= 3; n++ {
			out = append(out, Exchange{g, n, g, 0, float64(n) * cost[g]})
		}
		for _, in := range groups {
			if in == g {
				continue
			}
			least := int(cost[in]/cost[g]) + 1 // so many cost more than one of the other
			for _, n := range []int{1, 2, 3, least, least + 1} {
				for m := 1; m <= 3; m++ {
					if saves := float64(n)*cost[g] - float64(m)*cost[in]; saves > 1e-9 && (n == 1 || m == 1) && (m < 3 || m == int(cost[g]/cost[in])) {
						out = append(out, Exchange{g, n, in, m, saves})
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Exchange) int { return cmp.Compare(b.saves, a.saves) })
	return slices.Compact(out)
}

// noise is the share by which sums differ that are equal but for the order of their parts.
const noise = 1e-9

// Equal are the exchanges that cost nothing and save nothing, the largest first: all machines of a group, or a few.
// It costs the square of the groups.
func Equal(cost []float64, groups, machines []int) (out []Exchange) {
	for _, g := range sold(groups, machines) {
		for _, in := range groups {
			for _, n := range []int{machines[g], 1, 2, 3, int(math.Round(cost[in] / cost[g]))} {
				goes := float64(n) * cost[g]
				m := int(math.Round(goes / cost[in]))
				if in != g && m > 0 && math.Abs(goes-float64(m)*cost[in]) <= noise*goes {
					out = append(out, Exchange{Out: g, N: n, In: in, M: m})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Exchange) int { return cmp.Compare(b.N, a.N) })
	return slices.Compact(out)
}

// sold are the groups that may be bought, and those of which some machines are.
func sold(groups, machines []int) []int {
	out := slices.Clone(groups)
	for g, n := range machines {
		if n > 0 && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

package growth

import (
	"math"
	"sort"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// A purchase is a number of machines by group. Scale-up asks here whether the limits allow one, what a group may add beside
// one, and how the machines of a balanced set are shared out, whichever way it has found the purchase.

// Allows tells whether the limits allow a purchase. It costs G, and G for each group that is bought where the whole cluster
// has limits.
func Allows(w *round.State, purchase []int) bool {
	plan(w, purchase, 1)
	defer plan(w, purchase, -1)
	for g, n := range purchase {
		if n == 0 {
			continue
		}
		gr := &w.Groups[g]
		gr.Grow -= n
		few := Count(w, gr, n) < n
		if gr.Grow += n; few {
			return false
		}
	}
	return true
}

// Beside is how many machines a group may add beside a purchase. It costs G where the whole cluster has limits.
func Beside(w *round.State, purchase []int, g int) int {
	gr := &w.Groups[g]
	if HasTotals(w) || gr.Pool != "" {
		plan(w, purchase, 1)
		defer plan(w, purchase, -1)
	} else {
		gr.Grow += purchase[g]
		defer func() { gr.Grow -= purchase[g] }()
	}
	return Count(w, gr, math.MaxInt32)
}

// plan adds the machines of a purchase to the groups, times so often. It costs G.
func plan(w *round.State, purchase []int, times int) {
	for g, n := range purchase {
		w.Groups[g].Grow += times * n
	}
}

// Share gives n machines of a purchase to the groups of a balanced set up to one level of sizes, and those above it to the first
// groups; false: their maxima do not allow it. It costs the groups of the set for each step of a binary search for the level.
func Share(w *round.State, purchase, set []int, n int) bool {
	most := 0
	for _, g := range set {
		most = max(most, w.Groups[g].Max)
	}
	if upTo(w, set, most) < n {
		return false
	}
	level := sort.Search(most, func(level int) bool { return upTo(w, set, level+1) > n })
	for _, g := range set {
		purchase[g] = lacks(w, g, level)
		n -= purchase[g]
	}
	for _, g := range set {
		if n > 0 && lacks(w, g, level+1) > purchase[g] {
			purchase[g]++
			n--
		}
	}
	return true
}

// upTo is how many machines bring all groups of a set that can grow to a size, as far as their maxima allow it.
func upTo(w *round.State, set []int, size int) (n int) {
	for _, g := range set {
		n += lacks(w, g, size)
	}
	return n
}

// lacks is how many machines a group lacks to a size, as far as its maximum allows it.
func lacks(w *round.State, g, size int) int {
	gr := &w.Groups[g]
	if !gr.CanGrow() {
		return 0
	}
	return max(min(size, gr.Max)-gr.Size-gr.Grow, 0)
}

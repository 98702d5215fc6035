package purchase

import (
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// reasons tells by group what kube-scheduler has to do with a purchase: pods that it is expected to leave at first, which have room by size, and
// machines that size alone would not ask for. The board is as it was at the mark while it looks. It costs two
// trials for each group that is bought, as long as steps are left.
func (b *board) reasons(x []int, left int) []string {
	out := make([]string, len(x))
	first := slices.IndexFunc(x, func(n int) bool { return n > 0 })
	if first < 0 {
		return out
	}
	if left > 0 {
		out[first] = fmt.Sprintf("kube-scheduler may leave %s at first: they have room by size, and machines of their own are bought if it does", round.Pods(left))
	}
	for g, n := range x {
		if n == 0 || out[g] != "" || b.sim.Steps > b.limit+leastSteps {
			continue
		}
		less := slices.Clone(x)
		less[g]--
		if n := b.leaves(less); n > 0 && b.holdsBySize(less) {
			out[g] = fmt.Sprintf("by size alone one machine less would do: kube-scheduler would leave %s", round.Pods(n))
		}
	}
	return out
}

// leaves is how many pods that a machine helps are left of a purchase.
func (b *board) leaves(x []int) int {
	m := b.mark()
	defer b.rollback(m)
	return b.lacks(b.bind(x, 0))
}

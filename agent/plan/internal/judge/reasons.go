package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// reasons tells by group what kube-scheduler has to do with a purchase: machines that size
// alone would not ask for, and pods that it is expected to leave at first, which have room by size. It costs as many
// trials as groups are bought of, within a share of the steps that the purchase took.
func (j *model) reasons(x []int, left int) []string {
	out := make([]string, len(x))
	first := slices.IndexFunc(x, func(n int) bool { return n > 0 })
	most := min(j.sim.Steps+max(j.sim.Steps, judgeSteps)/allShares, j.most)
	if first < 0 || j.sim.Steps > most {
		return out
	}
	if left > 0 {
		out[first] = fmt.Sprintf("kube-scheduler may leave %s at first: they have room by size, and machines of their own are bought if it does", round.Pods(left))
	}
	for g, n := range x {
		if n == 0 || j.sim.Steps > most {
			continue
		}
		less := slices.Clone(x)
		less[g]--
		if n := j.leaves(less); n > 0 && out[g] == "" {
			out[g] = fmt.Sprintf("by size alone one machine less would do: kube-scheduler would leave %s", round.Pods(n))
		}
	}
	return out
}

// leaves is how many pods a purchase strands.
func (j *model) leaves(x []int) int {
	m := j.mark()
	defer j.rollback(m)
	left, _ := j.run(x, 0, math.Inf(1))
	return j.stranded(left)
}

// stranded is how many of the pods that are left a machine would help, where the new machines have room for all of them
// by size; 0 where they have not.
func (j *model) stranded(left map[int]int) (n int) {
	left = maps.Clone(left)
	for c, k := range left {
		if !j.helps(c, k) || j.w.HeadroomName(c) != "" {
			delete(left, c)
			continue
		}
		if j.constrained(c) {
			return 0
		}
		n += k
	}
	j.keepOnNew(left)
	for _, k := range left {
		if k > 0 {
			return 0
		}
	}
	return n
}

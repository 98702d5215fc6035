package judge

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
)

// TellBudget counts what the parts of scale-up have spent, and says in the Plan which of them
// ended for lack of steps. A search that ends because more of it costs more than it saves
// is no such part (see judge.choose), and neither is a round that buys nothing: finding room
// on nodes and packing have no budget. Every solution helps all pods that a machine helps; a coarse one may
// be dearer. The next round has a budget of its own, and only the pods that are left then.
func (w *Judge) TellBudget(best *packing.Solution) {
	w.Spent.Add(budget.Search, w.Steps)
	if best.Bought() == 0 {
		return
	}
	if cost, _ := w.packer.Costs(); cost != nil && w.tooLarge != "" {
		w.BudgetSpent(budget.Search, "%s are too many to hold purchases against a model of kube-scheduler; what packing finds is bought", w.tooLarge)
	}
	if w.cut {
		w.BudgetSpent(budget.Search, "the best purchase that was found by then is made")
	}
}

// exceedsJudging names the number by which a round is too large to be judged; empty: the round is judged.
func exceedsJudging(pods, classes, nodes, groups int) string {
	switch {
	case groups > judgeGroups:
		return fmt.Sprintf("%d node groups", groups)
	case pods > judgePods:
		return fmt.Sprintf("%d pods", pods)
	case classes*classes > judgePairs:
		return fmt.Sprintf("%d classes of pods", classes)
	case classes*(nodes+groups) > judgePairs:
		return fmt.Sprintf("%d classes of pods on %d nodes and %d node groups", classes, nodes, groups)
	}
	return ""
}

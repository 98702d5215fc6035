package purchase

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// mostPods, mostPairs (classes by places, and by classes) and mostGroups bound the rounds whose pods are bound one by one.
const mostPods, mostPairs, mostGroups = 6_000, 40_000, 64

// tooLarge names the number by which a round is too large for its pods to be bound one by one; empty: it is not. It costs C + G.
func tooLarge(w *round.State, worthwhile []bool) string {
	pods, classes, nodes, groups := 0, len(w.Demands), len(w.Nodes), 0
	for i := range w.Demands {
		pods += w.Demands[i].Count()
	}
	for g := range w.Groups {
		nodes += w.Groups[g].Upcoming + w.Groups[g].Grow
		if worthwhile[g] {
			groups++
		}
	}
	switch {
	case groups > mostGroups:
		return fmt.Sprintf("%d node groups", groups)
	case pods > mostPods:
		return fmt.Sprintf("%d pods", pods)
	case classes*classes > mostPairs:
		return fmt.Sprintf("%d classes of pods", classes)
	case classes*(nodes+groups) > mostPairs:
		return fmt.Sprintf("%d classes of pods on %d nodes and %d node groups", classes, nodes, groups)
	}
	return ""
}

// sizeOf tells how large a round is whose pods cannot be bound once within the steps of a round.
func sizeOf(w *round.State) string {
	pods := 0
	for i := range w.Demands {
		pods += w.Demands[i].Count()
	}
	return fmt.Sprintf("%d pods of %d classes on %d nodes", pods, len(w.Demands), len(w.Nodes))
}

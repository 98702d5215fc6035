package scaleup

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestBudgetIsTold: the Plan says which part of scale-up was decided for lack of steps, and
// every pod is helped all the same. A search that ends by itself, or because more of it
// does not pay, says nothing.
func TestBudgetIsTold(t *testing.T) {
	for _, c := range []struct {
		name                  string
		pods, classes, groups int
		told                  string
	}{
		{"a small search", 69, 55, 6, ""},
		{"a search that does not pay any more", 500, 5, 12, ""},
		{"a search that is cut short", 5500, 190, 12, "the budget of scale-up's search is spent: the best purchase that was found by then is made"},
		{"too many pods", 6001, 2, 2, "the budget of scale-up's search is spent: the round is too large to simulate (6001 pods), and is packed by size"},
		{"too many classes", 600, 201, 2, "the budget of scale-up's search is spent: the round is too large to simulate (201 classes of pods), and is packed by size"},
		{"too many groups", 10, 1, 65, "the budget of scale-up's search is spent: the round is too large to simulate (65 node groups), and is packed by size"},
		{"nothing to buy", 0, 1, 65, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := burst(1, c.pods, c.classes, c.groups, 0)
			for g := range w.Groups {
				if c.groups > 12 { // none has machines for all pods, and so none replaces another
					w.Groups[g].Max = max(0, c.pods-1)
				}
			}
			w.Decide()
			told, helped := "", 0
			for _, h := range w.Plan.Held {
				if h.Rule == decision.RuleBudget && strings.Contains(h.Why, "search") {
					told += h.Why
				}
			}
			for _, a := range w.Plan.Actions {
				helped += len(a.(decision.Grow).Pods)
			}
			if told != c.told || helped != c.pods {
				t.Errorf("%d of %d pods are helped, told %q, want %q", helped, c.pods, told, c.told)
			}
		})
	}
}

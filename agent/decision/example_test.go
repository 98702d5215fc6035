package decision_test

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// A Plan is what to do, in order, and what was not done and why. Its text is the journal.
func Example() {
	p := decision.Plan{
		Actions: []decision.Action{
			decision.Grow{Group: "workers", From: 0, To: 8, Pods: []cluster.PodKey{"default/web-1"}, Expected: 299, Rule: decision.RuleGrow, Why: "no room for 300 pods of 1 classes"},
		},
		Held: []decision.Held{
			{Kind: "node", Name: "w-1", Rule: decision.RuleBusy, Why: "utilisation 80% is above 50%"},
		},
	}
	fmt.Print(p)
	// Output:
	// grow workers 0->8 for 300 pods [U3] no room for 300 pods of 1 classes
	// held node w-1 [D4] utilisation 80% is above 50%
}

package budget_test

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
)

// A part counts its steps against its budget and tells once that it has none left.
func Example() {
	var spent budget.Spent
	spent.Add(budget.Search, 1_000_000)
	spent.Add(budget.Search, 300_000)
	for range 2 {
		if spent.Of(budget.Search) > budget.Search.Budget() && spent.TellOnce(budget.Search) {
			fmt.Println("the budget of", budget.Search, "is spent")
		}
	}
	// Output: the budget of scale-up's search is spent
}

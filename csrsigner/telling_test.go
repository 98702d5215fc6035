package csrsigner

import (
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// TestEveryRuleIsClassified: how the journal tells that a rule holds a request was decided for
// each rule. csr_decisions_total has each by its ID.
func TestEveryRuleIsClassified(t *testing.T) {
	all := rules.Rules()
	if len(all) < 30 {
		t.Fatalf("%d rules", len(all))
	}
	for _, id := range all {
		if tellings[id] == 0 {
			t.Errorf("%s has no line in tellings: does what it holds heal, or does it wait for an operator?", id)
		}
	}
	for id := range tellings {
		if !slices.Contains(all, id) {
			t.Errorf("tellings has %s, which is no rule", id)
		}
	}
}

package report

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestHeldIsToldByItsLevel: a rule of level Info has a line at the start and at the end, the others have none at info.
func TestHeldIsToldByItsLevel(t *testing.T) {
	for _, rule := range decision.Rules {
		if rule.Level == decision.ByAction {
			continue
		}
		log, lines := newHeldLog()
		log.Write([]decision.Held{{Kind: "group", Name: "g", Rule: rule.ID, Why: "why"}})
		log.Write(nil)
		want := 0
		if rule.Level == decision.Info {
			want = 2
		}
		if got := lines(); len(got) != want {
			t.Errorf("%s: %d lines, want %d: %q", rule.ID, len(got), want, got)
		}
	}
}

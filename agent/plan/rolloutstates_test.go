package plan

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestRolloutStatesPage compares the table of docs/scaling-rules.md with decision.RolloutStates; -update writes it.
func TestRolloutStatesPage(t *testing.T) {
	const page, head = "../../docs/scaling-rules.md", "| evidence | state | rule | what the agent does | until |\n|---|---|---|---|---|\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), head)
	_, after, ends := strings.Cut(rest, "\n\n")
	if rest = "\n" + rest; strings.HasPrefix(rest, "\n\n") {
		after, ends = strings.TrimPrefix(rest, "\n\n"), true
	}
	if !found || !ends {
		t.Fatal(page + " has no table of the states")
	}
	rows := head
	for _, r := range decision.RolloutStates {
		rule := ""
		if r.Rule != "" {
			rule = "`" + r.Rule + "`"
		}
		rows += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.Evidence, r.State, rule, strings.ReplaceAll(r.Does, "AUTOSCALER_SCALING_REPLACE_SETTLE_TIME", "`AUTOSCALER_SCALING_REPLACE_SETTLE_TIME`"), strings.ReplaceAll(r.Until, "AUTOSCALER_SCALING_REPLACE_SETTLE_TIME", "`AUTOSCALER_SCALING_REPLACE_SETTLE_TIME`"))
	}
	want := before + rows + "\n" + after
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatal(page + " differs from decision.RolloutStates: run this test with -update")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

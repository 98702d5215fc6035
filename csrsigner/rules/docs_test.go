package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestManualHasEveryRule keeps the tables of docs/security-rules.md what the code says, in its
// order.
func TestManualHasEveryRule(t *testing.T) {
	page, err := os.ReadFile("../../docs/security-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]check{checks, joinChecks} {
		var want strings.Builder
		for _, c := range list {
			fmt.Fprintf(&want, "| `%s` | %s |\n", c.rule, c.what)
		}
		if !strings.Contains(string(page), want.String()) {
			t.Errorf("docs/security-rules.md has not this table:\n%s", want.String())
		}
	}
}

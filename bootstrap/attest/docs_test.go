package attest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestManualHasEveryRule keeps the table of docs/attested-join.md what the code says.
func TestManualHasEveryRule(t *testing.T) {
	page, err := os.ReadFile("../../docs/attested-join.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, c := range Checks {
		fmt.Fprintf(&want, "| `%s` | %s |\n", c.Rule, c.Must)
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/attested-join.md has not this table:\n%s", want.String())
	}
}

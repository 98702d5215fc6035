package reaper

import (
	"os"
	"strings"
	"testing"
)

// TestManualHasEveryRule keeps the table of docs/security-rules.md what the code says.
func TestManualHasEveryRule(t *testing.T) {
	page, err := os.ReadFile("../../docs/security-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rules() {
		says, proof := strings.CutPrefix(r.Says, "proof: ")
		row := "| `" + r.ID + "` | " + r.Says + " |"
		if proof || r.ID == "S1" {
			row = "`" + r.ID + "` (" + says + ")"
		}
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/security-rules.md has no %q", row)
		}
	}
	for _, w := range witnesses {
		line := "\n- " + w.of + "\n"
		if w.yields {
			line = "\n- " + w.of + " (unless the instance had this Node's name and one of its addresses)\n"
		}
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/security-rules.md has no witness %q", line)
		}
	}
}

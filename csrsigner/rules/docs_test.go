package rules

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/security-rules.md")

// TestManualHasEveryRule keeps the tables of docs/security-rules.md what the code says, in its
// order.
func TestManualHasEveryRule(t *testing.T) {
	const file = "../../docs/security-rules.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for letter, list := range map[string][]check{"R": checks, "J": joinChecks} {
		var want strings.Builder
		for _, c := range list {
			fmt.Fprintf(&want, "| `%s` | %s |\n", c.rule, c.what)
		}
		rows := regexp.MustCompile("(?:\\| `" + letter + "[0-9]+` \\| [^|\n]+ \\|\n)+")
		text = rows.ReplaceAllLiteralString(text, want.String())
		if !strings.Contains(text, want.String()) {
			t.Errorf("docs/security-rules.md has no table of rules %s", letter)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(page) {
		t.Error("docs/security-rules.md has not the tables of the source: go test ./csrsigner/rules -run TestManual -update")
	}
}

// TestEveryRuleIsTold: each rule of a check has its row in Rules, and each row a check.
func TestEveryRuleIsTold(t *testing.T) {
	for _, c := range slices.Concat(checks, joinChecks) {
		if !slices.ContainsFunc(Rules, func(r Rule) bool { return r.ID == c.rule }) {
			t.Errorf("%s has no row in servingRules (decide.go) or joinRules (joinrules.go): does what it holds heal, or does it wait for an operator, and what does that one do?", c.rule)
		}
	}
	for _, r := range Rules {
		if !slices.ContainsFunc(slices.Concat(checks, joinChecks), func(c check) bool { return c.rule == r.ID }) {
			t.Errorf("Rules has %s, which no check has", r.ID)
		}
	}
}

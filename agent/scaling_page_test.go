package agent

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

var updatePages = flag.Bool("update", false, "rewrite what tests keep in the manual")

// TestScalingPage: docs/scaling-rules.md has the rules of the engine with the words of the source.
func TestScalingPage(t *testing.T) {
	page := filepath.Join("..", "docs", "scaling-rules.md")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- the table of rules begins: go test ./agent -run TestScalingPage -update -->\n", "<!-- the table of rules ends -->\n"
	head, rest, ok := strings.Cut(string(raw), begin)
	old, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the marks of the table of rules are not there")
	}
	table := rulesTable(t)
	if *updatePages && old != table {
		if err := os.WriteFile(page, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table {
		t.Errorf("the table of rules is not that of the source; run: go test ./agent -run TestScalingPage -update\n%s", table)
	}
}

type ruleRow struct{ id, words string }

// rulesTable renders the rules of decision.Rules and of fit: constants whose names begin with Rule,
// and their comments.
func rulesTable(t *testing.T) string {
	var rows []ruleRow
	for _, f := range fit.Filters {
		rows = append(rows, ruleRow{f.Rule, f.Name})
	}
	for _, file := range []string{"fit/filters.go", "fit/state.go"} {
		rows = append(rows, rulesOf(t, file)...)
	}
	for _, r := range decision.Rules {
		rows = append(rows, ruleRow{r.ID, r.Says})
	}
	slices.SortStableFunc(rows, func(a, b ruleRow) int {
		if a.id[0] != b.id[0] {
			return strings.IndexByte("FUIDH", a.id[0]) - strings.IndexByte("FUIDH", b.id[0])
		}
		x, _ := strconv.Atoi(a.id[1:])
		y, _ := strconv.Atoi(b.id[1:])
		return x - y
	})
	var out strings.Builder
	out.WriteString("\n")
	for i, r := range rows {
		if r.words == "" || i > 0 && rows[i-1].id == r.id {
			t.Errorf("rule %s has no words, or is there twice", r.id)
		}
		fmt.Fprintf(&out, "- `%s`: %s\n", r.id, r.words)
	}
	out.WriteString("\n")
	return out.String()
}

func rulesOf(t *testing.T, file string) []ruleRow {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var rows []ruleRow
	for _, d := range parsed.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if !strings.HasPrefix(v.Names[0].Name, "Rule") || len(v.Values) != 1 {
				continue
			}
			id, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, ruleRow{id, strings.TrimSpace(v.Comment.Text())})
		}
	}
	return rows
}

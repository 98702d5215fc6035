package decision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestRules: each constant has one row, and a reason that an operator sees says what to do about it.
func TestRules(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Rule") && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				id, err := strconv.Unquote(lit.Value)
				if err != nil || constants[id] != "" {
					t.Errorf("%s: %v, or its ID is that of %s", v.Names[0].Name, err, constants[id])
				}
				constants[id] = v.Names[0].Name
			}
		}
		return true
	})
	rows := map[string]bool{}
	for _, r := range Rules {
		if constants[r.ID] == "" || rows[r.ID] {
			t.Errorf("Rules has %s twice, or no constant has this ID", r.ID)
		}
		rows[r.ID] = true
		if r.Says == "" {
			t.Errorf("%s: Says is empty", r.ID)
		}
		if (r.Level == Info || r.Title != "") && r.Remedy == "" {
			t.Errorf("%s is told to an operator: its Remedy says what to do, or why there is nothing to do", r.ID)
		}
	}
	for id, name := range constants {
		if !rows[id] {
			t.Errorf("%s (%s) has no row in Rules", name, id)
		}
	}
	if len(rows) < 60 {
		t.Errorf("%d rules", len(rows))
	}
}

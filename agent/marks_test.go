package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"go/ast"
	"go/token"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestMarksPage: the table of docs/marks.md is cluster.Marks, row for row.
func TestMarksPage(t *testing.T) {
	page, err := os.ReadFile("../docs/marks.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, m := range cluster.Marks {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s | %s | %s |\n", m.Name, m.Kind, m.Agent, m.SetBy, m.Meaning, m.Rule)
	}
	if _, rows, _ := strings.Cut(string(page), "|---|---|---|---|---|---|\n"); !strings.HasPrefix(rows, want.String()) {
		t.Errorf("docs/marks.md does not have the table of cluster.Marks; it is:\n%s", want.String())
	}
}

// TestMarksAreConstants: no other package of the product writes the name of a mark anew.
func TestMarksAreConstants(t *testing.T) {
	names := map[string]bool{}
	for _, m := range cluster.Marks {
		names[m.Name] = true
	}
	for _, s := range sources(t) {
		if s.file == "agent/cluster/marks.go" || s.pkg == "agent/fit" || strings.HasPrefix(s.pkg, "agent/provider/") {
			continue // fit has the names of kube-scheduler's own taints; providers speak to a cloud
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if v, err := strconv.Unquote(l.Value); err == nil && names[v] {
					t.Errorf("%s writes %q: take the constant of agent/cluster/marks.go", s.fset.Position(l.Pos()), v)
				}
			}
			return true
		})
	}
}

package agent

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// What a reader can take in at once. A package of the engine stays below these sizes; tests do
// not count.
const (
	functionLines = 60
	fileLines     = 400
	packageLines  = 2500
)

// TestSizes measures the packages that follow docs/vocabulary.md. agent/plan/internal/scaleup
// may be larger as a package until a model of the scheduler replaces its inside.
func TestSizes(t *testing.T) {
	lines := map[string]int{}
	for _, s := range sources(t) {
		if !slices.Contains(converted, s.pkg) {
			continue
		}
		file := s.fset.File(s.ast.Pos())
		lines[s.pkg] += file.LineCount()
		if n := file.LineCount(); n > fileLines {
			t.Errorf("%s has %d lines, more than %d: split it by its concepts", s.file, n, fileLines)
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := span(s.fset, f); n > functionLines {
					t.Errorf("%s: %s has %d lines, more than %d", s.file, f.Name.Name, n, functionLines)
				}
			}
		}
	}
	for pkg, n := range lines {
		if n > packageLines && pkg != "agent/plan/internal/scaleup" {
			t.Errorf("%s has %d lines, more than %d: a part of it is a package of its own", pkg, n, packageLines)
		}
	}
	if len(lines) != len(converted) {
		t.Errorf("%d packages were measured of %d", len(lines), len(converted))
	}
}

func span(fset *token.FileSet, n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

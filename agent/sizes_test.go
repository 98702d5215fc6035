package agent

import (
	"go/ast"
	"go/token"
	"testing"
)

// What a reader can take in at once. A package of the product stays below these sizes; tests
// and generated files do not count.
const (
	functionLines = 60
	fileLines     = 400
	packageLines  = 2500
)

// TestSizes measures the product.
func TestSizes(t *testing.T) {
	lines := map[string]int{}
	for _, s := range sources(t) {
		if ast.IsGenerated(s.ast) {
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
		if n > packageLines {
			t.Errorf("%s has %d lines, more than %d: a part of it is a package of its own", pkg, n, packageLines)
		}
	}
}

func span(fset *token.FileSet, n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

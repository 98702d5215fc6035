package agent

import (
	"go/ast"
	"go/token"
	"os"
	"strings"
	"testing"
)

// What a reader can take in at once. A package of the product stays below these sizes; tests
// and generated files do not count.
const (
	functionLines = 60
	fileLines     = 400
	packageLines  = 2500
	// A package of fewer lines than smallPackage is a file of another, unless its doc says why it is apart.
	smallPackage = 60
	// The listing of agent/ is read like a table of contents.
	agentFolders = 25
)

const reasonApart = "Small and apart:"

// TestSizes measures the product.
func TestSizes(t *testing.T) {
	lines, all, apart := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, s := range sources(t) {
		all[s.pkg] += s.fset.File(s.ast.Pos()).LineCount()
		apart[s.pkg] = apart[s.pkg] || strings.Contains(s.ast.Doc.Text(), reasonApart)
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
		if all[pkg] < smallPackage && !apart[pkg] {
			t.Errorf("%s has %d lines: make it a file of another package, or write into its doc why it is a package (%q)", pkg, n, reasonApart)
		}
	}
}

// TestAgentFolders counts the folders of agent/.
func TestAgentFolders(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if e.IsDir() {
			n++
		}
	}
	if n > agentFolders {
		t.Errorf("agent/ has %d folders, more than %d: what the services share is in internal/", n, agentFolders)
	}
}

func span(fset *token.FileSet, n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

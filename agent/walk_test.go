package agent

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWalks holds the walks of docs/architecture.md against the code: each line is a function of the file or
// package that it names, and the package of the line above it calls a function of that name.
func TestWalks(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	declared, called := functions(t)
	walks, calls := 0, 0
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		if !strings.HasPrefix(part, "A walk: ") {
			continue
		}
		walks++
		for _, block := range fence.FindAllString(part, -1) {
			calls += checkWalk(t, block, declared, called)
		}
	}
	if walks < 3 || calls < 30 {
		t.Errorf("only %d calls of %d walks were found: the pattern no longer fits the page", calls, walks)
	}
}

var walkLine = regexp.MustCompile(`(?m)^( *)(?:(\w+)\.)?(\w+) +((?:agent|bootstrap|csrsigner|nodecleaner)\S*)`)

func checkWalk(t *testing.T, block string, declared, called map[string]bool) int {
	type step struct{ pkg, name string }
	var callers []step // by depth
	lines := walkLine.FindAllStringSubmatch(block, -1)
	for _, m := range lines {
		depth, pkg := len(m[1])/2, m[4]
		if strings.HasSuffix(pkg, ".go") {
			pkg = filepath.Dir(pkg)
		}
		name := m[3]
		if m[2] != "" {
			name = m[2] + "." + name
		}
		if !declared[pkg+" "+name] {
			t.Errorf("%s has no %s", pkg, name)
		}
		if depth > len(callers) {
			t.Fatalf("%s stands too far to the right", m[0])
		}
		callers = append(callers[:depth], step{pkg, name})
		if depth > 0 {
			if by := callers[depth-1]; !called[by.pkg+" "+m[3]] {
				t.Errorf("%s, the package of %s, calls no %s", by.pkg, by.name, m[3])
			}
		}
	}
	return len(lines)
}

// functions are what the packages of the product declare, methods as TYPE.NAME, and the names that they call.
func functions(t *testing.T) (declared, called map[string]bool) {
	declared, called = map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					typ := d.Recv.List[0].Type
					if star, ok := typ.(*ast.StarExpr); ok {
						typ = star.X
					}
					if id, ok := typ.(*ast.Ident); ok {
						name = id.Name + "." + name
					}
				}
				declared[s.pkg+" "+name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						if i, ok := typ.Type.(*ast.InterfaceType); ok {
							for _, f := range i.Methods.List {
								for _, id := range f.Names {
									declared[s.pkg+" "+typ.Name.Name+"."+id.Name] = true
								}
							}
						}
					}
				}
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				switch f := c.Fun.(type) {
				case *ast.SelectorExpr:
					called[s.pkg+" "+f.Sel.Name] = true
				case *ast.Ident:
					called[s.pkg+" "+f.Name] = true
				}
			}
			return true
		})
	}
	return declared, called
}

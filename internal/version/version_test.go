package version

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// TestMakefileStampsTheseVariables: the linker ignores -X for a variable that does not
// exist, so that a moved package would only show as a build of an unknown version.
func TestMakefileStampsTheseVariables(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	stamp := regexp.MustCompile(`(?m)^STAMP +:= (\S+)$`).FindSubmatch(text)
	if own := reflect.TypeFor[Info]().PkgPath(); stamp == nil || string(stamp[1]) != own {
		t.Fatalf("the Makefile stamps %q, and the variables are in %s", stamp, own)
	}
	var stamped []string
	for _, m := range regexp.MustCompile(`-X \$\(STAMP\)\.(\w+)=`).FindAllSubmatch(text, -1) {
		stamped = append(stamped, string(m[1]))
	}
	if declared := stringVariables(t); !slices.Equal(stamped, declared) {
		t.Errorf("the Makefile stamps %v, and the package declares %v", stamped, declared)
	}
}

// stringVariables are the package's variables of type string, as they are declared.
func stringVariables(t *testing.T) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "version.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "string" {
				for _, n := range v.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

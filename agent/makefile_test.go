package agent

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variable is the value of a variable of the Makefile, its lines joined.
func variable(t *testing.T, makefile, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(makefile, "\n"+name+" := ")
	if !ok {
		t.Fatalf("the Makefile has no %s", name)
	}
	value, _, _ := strings.Cut(strings.ReplaceAll(rest, "\\\n", " "), "\n")
	return value
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// TestMainTests: each test of MAIN_TESTS is in one package of MAIN_PACKAGES and has no namesake elsewhere in test/, which
// neither make test nor make test-all would run; and each of the packages has one.
func TestMainTests(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(variable(t, string(text), "MAIN_PACKAGES"))
	where := map[string][]string{}
	err = filepath.WalkDir("../test", func(file string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		for _, m := range testFunc.FindAllStringSubmatch(string(source), -1) {
			where[m[1]] = append(where[m[1]], strings.Replace(filepath.Dir(file), "../test", ".", 1))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range strings.Fields(variable(t, string(text), "MAIN_TESTS")) {
		if in := where[name]; len(in) != 1 || !slices.Contains(packages, in[0]) {
			t.Errorf("%s of MAIN_TESTS is in %q, not in one package of %q", name, in, packages)
			continue
		}
		used[where[name][0]] = true
	}
	for _, p := range packages {
		if !used[p] {
			t.Errorf("%s of MAIN_PACKAGES has no test of MAIN_TESTS", p)
		}
	}
}

// TestEngineIsSequential: the packages that make test-all does not run under the race detector start no goroutine and
// share nothing.
func TestEngineIsSequential(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	sequential := regexp.MustCompile(strings.ReplaceAll(variable(t, string(text), "SEQUENTIAL"), "$$", "$"))
	found := map[string]bool{}
	for _, s := range sources(t) {
		if !sequential.MatchString("/" + s.pkg) {
			continue
		}
		found[s.pkg] = true
		for _, i := range s.imports() {
			if i == "sync" || i == "sync/atomic" {
				t.Errorf("%s imports %s", s.file, i)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine: %v", s.file, g.Call.Fun)
			}
			return true
		})
	}
	if len(found) < 10 {
		t.Errorf("only %d packages: the pattern no longer fits", len(found))
	}
}

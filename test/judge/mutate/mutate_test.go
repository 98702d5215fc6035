package mutate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a package whose tests watch all of its checks but one.
var sample = map[string]string{
	"go.mod": "module sample\n\ngo 1.26\n",
	"sample.go": `package sample

type check func(n int, s string) string

var checks = []check{tooLarge, negative, unwatched}

func tooLarge(n int, _ string) string {
	if n > 9 {
		return "large"
	}
	return ""
}

func negative(n int, _ string) string {
	switch {
	case n < 0, n == 7:
		return "bad"
	}
	return ""
}

func unwatched(n int, s string) string {
	if s == "x" && n == 3 {
		return "x"
	}
	return ""
}

// Judge names what is wrong.
func Judge(n int, s string) string {
	for _, c := range checks {
		if why := c(n, s); why != "" {
			return why
		}
	}
	return ""
}
`,
	"sample_test.go": `package sample

import "testing"

func TestJudge(t *testing.T) {
	for n, want := range map[int]string{-1: "bad", 0: "", 3: "", 7: "bad", 9: "", 10: "large"} {
		if got := Judge(n, ""); got != want {
			t.Fatalf("%d: %q, want %q", n, got, want)
		}
	}
}
`,
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun(t *testing.T) {
	dir := write(t, sample)
	var survived []string
	caught := 0
	err := Run(t.Context(), dir, Target{Package: ".", Files: []string{"sample.go"}, Lists: []string{"checks"}}, 2, func(r Result) {
		if !r.Caught {
			survived = append(survived, r.Key())
			return
		}
		caught++
		if r.By != "TestJudge" {
			t.Errorf("%s is caught by %q", r.Mutant, r.By)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sample.go checks: drop unwatched",
		`sample.go unwatched: never s == "x" && n == 3`,
		// Nothing asks with an x and a 3, nor with an x at all.
		"sample.go unwatched: always n == 3",
		// All that is returned where nothing is wrong is "" again.
		`sample.go Judge: always why != ""`,
	}
	for _, w := range want[:3] {
		if !strings.Contains(strings.Join(survived, "\n"), w) {
			t.Errorf("%s is caught, which cannot be", w)
		}
	}
	for _, s := range survived {
		if !strings.Contains(strings.Join(want, "\n"), s) {
			t.Errorf("%s survives", s)
		}
	}
	// 3 dropped, 5 conditions never and always, 2 operands of an &&, 2 edges.
	if total := caught + len(survived); total != 17 {
		t.Errorf("%d mutants: survived\n%s", total, strings.Join(survived, "\n"))
	}
}

func TestRunUnwell(t *testing.T) {
	files := map[string]string{"go.mod": sample["go.mod"], "sample.go": sample["sample.go"],
		"sample_test.go": "package sample\n\nimport \"testing\"\n\nfunc TestNo(t *testing.T) { t.Error(\"no\") }\n"}
	err := Run(t.Context(), write(t, files), Target{Package: ".", Files: []string{"sample.go"}}, 1, func(Result) { t.Error("a result") })
	if !errors.Is(err, ErrUnwell) {
		t.Errorf("got %v", err)
	}
}

// TestTargets keeps the list of equivalents to packages and mutants that exist.
func TestTargets(t *testing.T) {
	for _, target := range Targets {
		m, err := mutateDir(filepath.Join("..", "..", "..", target.Package), target)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, x := range m.mutants {
			keys[x.Key()] = true
		}
		for key, why := range Equivalent[target.Package] {
			if !keys[key] || why == "" {
				t.Errorf("%s: no mutant %q, or no reason", target.Package, key)
			}
		}
	}
}

// Command house prints, for each package of the product, its lines, exported names and types, and what
// changed since another commit. The figures are read, not enforced: caps shaped packages by their
// size in place of their subject. It refuses to count generated files and tests.
//
//	make house              beside the last tag, or alone where there is none
//	make house SINCE=main~20
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
)

type figures struct{ lines, exported, types, tests int }

func (f *figures) add(g figures) {
	f.lines, f.exported, f.types, f.tests = f.lines+g.lines, f.exported+g.exported, f.types+g.types, f.tests+g.tests
}

func main() {
	since := flag.String("since", "", "the `commit` to compare with (default: the last tag)")
	flag.Parse()
	if err := run(os.Stdout, *since); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, since string) error {
	if since == "" {
		tag, err := git("describe", "--tags", "--abbrev=0")
		if err == nil {
			since = strings.TrimSpace(tag)
		}
	}
	now, err := measure("HEAD")
	if err != nil {
		return err
	}
	before := map[string]figures{}
	if since != "" {
		if before, err = measure(since); err != nil {
			return err
		}
	}
	print(out, since, now, before)
	return nil
}

func print(out io.Writer, since string, now, before map[string]figures) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "lines\tchange\texported\tchange\ttypes\tchange\ttest lines\tchange\t  package")
	var sum, sumBefore figures
	names := map[string]bool{}
	for name := range now {
		names[name] = true
	}
	for name := range before {
		names[name] = true
	}
	row := func(name string, n, b figures) {
		change := func(now, before int) string {
			if since == "" || now == before {
				return ""
			}
			return fmt.Sprintf("%+d", now-before)
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%d\t%s\t%d\t%s\t  %s\n", n.lines, change(n.lines, b.lines), n.exported, change(n.exported, b.exported),
			n.types, change(n.types, b.types), n.tests, change(n.tests, b.tests), name)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row(name, now[name], before[name])
		sum.add(now[name])
		sumBefore.add(before[name])
	}
	row("all", sum, sumBefore)
	w.Flush()
}

// measure reads the Go files of a commit from git. It calls git once for each file.
func measure(commit string) (map[string]figures, error) {
	list, err := git("ls-tree", "-r", "--name-only", commit)
	if err != nil {
		return nil, err
	}
	out := map[string]figures{}
	for name := range strings.FieldsSeq(list) {
		top, _, _ := strings.Cut(name, "/")
		if !strings.HasSuffix(name, ".go") || slices.Contains([]string{"test", "tools", "examples"}, top) {
			continue
		}
		source, err := git("show", commit+":"+name)
		if err != nil {
			return nil, err
		}
		f, err := count(name, source)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, commit, err)
		}
		sum := out[path.Dir(name)]
		sum.add(f)
		out[path.Dir(name)] = sum
	}
	return out, nil
}

func count(name, source string) (figures, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		return figures{}, err
	}
	lines := strings.Count(source, "\n")
	switch {
	case ast.IsGenerated(file):
		return figures{}, nil
	case strings.HasSuffix(name, "_test.go"):
		return figures{tests: lines}, nil
	}
	f := figures{lines: lines}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				f.exported++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				f.exported += exported(s)
				if d.Tok == token.TYPE {
					f.types++
				}
			}
		}
	}
	return f, nil
}

func exported(s ast.Spec) (n int) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			n++
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

// Command mutants removes every check of the packages that decide over trust and
// Nodes, one at a time, and fails if the package's tests do not notice: see package
// mutate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/mutate"
)

func main() { os.Exit(run()) }

func run() int {
	pkg := flag.String("package", "", "mutate this package only")
	only := flag.String("only", "", "mutate this file of it only")
	tests := flag.String("run", "", "run these tests of the package only, as in go test -run, and no story: quicker while they are written")
	verbose := flag.Bool("v", false, "print every mutant with the test that caught it")
	parallel := flag.Int("parallel", runtime.NumCPU(), "runs at a time")
	flag.Usage = func() {
		out := flag.CommandLine.Output()
		fmt.Fprint(out, "mutants breaks one check at a time and asks the package's tests whether they notice.\n\n  go run ./cmd/mutants\n  go run ./cmd/mutants -package csrsigner/rules -v\n  go run ./cmd/mutants -package nodecleaner/reaper -only asked.go\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..", "..")
	code, found := 0, false
	for _, t := range mutate.Targets {
		if *pkg != "" && *pkg != t.Package {
			continue
		}
		if *only != "" {
			if !slices.Contains(t.Files, *only) {
				continue
			}
			t.Files = []string{*only}
		}
		found, t.Run = true, *tests
		if *tests != "" {
			t.Stories = ""
		}
		survived, err := one(ctx, root, t, *parallel, *verbose)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
			return 1
		}
		if survived > 0 {
			code = 1
		}
	}
	if !found {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", errors.New("no such package, or no such file in it: see mutate.Targets"))
		return 2
	}
	return code
}

// one runs the mutants of one package and returns how many no test noticed.
func one(ctx context.Context, root string, t mutate.Target, parallel int, verbose bool) (survived int, err error) {
	start := time.Now()
	caught, equivalent := 0, 0
	kinds := map[mutate.Kind]int{}
	known := mutate.Equivalent[t.Package]
	used := map[string]bool{}
	err = mutate.Run(ctx, root, t, parallel, func(r mutate.Result) {
		why, same := known[r.Key()]
		kinds[r.Kind]++
		used[r.Key()] = true
		switch {
		case r.Caught && same:
			survived++
			fmt.Printf("%s %s\n  is caught by %s, but listed as equivalent: take it off the list\n", t.Package, r.Mutant, r.By)
		case r.Caught:
			caught++
			if verbose {
				fmt.Printf("%s %s\n  caught by %s in %s\n", t.Package, r.Mutant, r.By, r.Took.Round(10*time.Millisecond))
			}
		case same:
			equivalent++
			if verbose {
				fmt.Printf("%s %s\n  equivalent: %s\n", t.Package, r.Mutant, why)
			}
		default:
			survived++
			fmt.Printf("%s %s\n  SURVIVES: no test of the package notices\n", t.Package, r.Mutant)
		}
	})
	if err != nil {
		return survived, err
	}
	for key := range known {
		file, _, _ := strings.Cut(key, " ")
		if !used[key] && slices.Contains(t.Files, file) {
			survived++
			fmt.Printf("%s: there is no mutant %q any more: take it off the list of equivalents\n", t.Package, key)
		}
	}
	fmt.Printf("%s: %d mutants (%d checks dropped, %d never, %d always, %d edges): %d caught, %d equivalent, %d survive, in %s\n", t.Package,
		caught+equivalent+survived, kinds[mutate.Drop], kinds[mutate.Never], kinds[mutate.Always], kinds[mutate.Edge],
		caught, equivalent, survived, time.Since(start).Round(time.Second))
	return survived, nil
}

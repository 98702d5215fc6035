package mutate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Result is what the tests said of a mutant.
type Result struct {
	Mutant
	Caught bool
	By     string // the first test that failed, or "timeout"
	Took   time.Duration
}

// ErrUnwell tells that the tests fail without any mutant.
var ErrUnwell = errors.New("the tests fail without any mutant")

// hangs is how long the tests of one mutant may take where the target says nothing else; a mutant that hangs is caught.
const hangs = 2 * time.Minute

// suite is a built binary of tests with the mutants in it, and the directory that it is run in.
type suite struct {
	binary, dir, run, skip string
	hangs                  time.Duration
}

// storiesDir is the package of Target.Stories.
const storiesDir = "agent/plan"

// Run builds the target with its mutants and runs its tests once for each, several
// at a time. root is the directory of the product's module; each gets every result
// as it comes, in the order of the mutants.
func Run(ctx context.Context, root string, t Target, parallel int, each func(Result)) error {
	dir := filepath.Join(root, filepath.FromSlash(t.Package))
	m, err := mutateDir(dir, t)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("mutate %s: %w", t.Package, err)
	}
	defer os.RemoveAll(temp)
	suites := []suite{{filepath.Join(temp, "own.test"), dir, t.Run, t.Skip, cmp.Or(t.Hangs, hangs)}}
	if t.Stories != "" {
		suites = append(suites, suite{filepath.Join(temp, "stories.test"), filepath.Join(root, filepath.FromSlash(storiesDir)), t.Stories, "", hangs})
	}
	if err := m.write(dir, temp); err != nil {
		return err
	}
	for i := range suites {
		if err := suites[i].build(ctx, root, temp); err != nil {
			return err
		}
	}
	if r, err := test(ctx, suites, Mutant{}); err != nil {
		return err
	} else if r.Caught {
		return fmt.Errorf("test %s: %w: %s", t.Package, ErrUnwell, r.By)
	}
	return m.each(ctx, suites, parallel, each)
}

// write writes the changed files, and the list that puts them in place of the package's own.
func (m *mutated) write(dir, temp string) error {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, source := range m.files {
		to := filepath.Join(temp, name)
		if err := os.WriteFile(to, source, 0o600); err != nil {
			return fmt.Errorf("write mutants: %w", err)
		}
		overlay.Replace[filepath.Join(dir, name)] = to
	}
	index, err := json.Marshal(overlay)
	if err != nil {
		return fmt.Errorf("write mutants: %w", err)
	}
	if err := os.WriteFile(filepath.Join(temp, "overlay.json"), index, 0o600); err != nil {
		return fmt.Errorf("write mutants: %w", err)
	}
	return nil
}

// build compiles the tests with the mutants.
func (s *suite) build(ctx context.Context, root, temp string) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", filepath.Join(temp, "overlay.json"), "-o", s.binary, s.dir)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build mutants: %w\n%s", err, out)
	}
	if _, err := os.Stat(s.binary); err != nil { // go test -c writes nothing where there are no tests
		s.binary = ""
	}
	return nil
}

func (m *mutated) each(ctx context.Context, suites []suite, parallel int, each func(Result)) error {
	results := make([]Result, len(m.mutants))
	errs := make([]error, len(m.mutants))
	done := make([]chan struct{}, len(m.mutants))
	slots := make(chan struct{}, max(parallel, 1))
	var running sync.WaitGroup
	defer running.Wait()
	for i := range m.mutants {
		done[i] = make(chan struct{})
	}
	running.Go(func() {
		for i, x := range m.mutants {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { close(done[i]); <-slots }()
				results[i], errs[i] = test(ctx, suites, x)
			})
		}
	})
	for i := range m.mutants {
		<-done[i]
		if errs[i] != nil {
			continue
		}
		each(results[i])
	}
	return errors.Join(errs...)
}

// test runs the suites with one mutant alive, until one notices it; number 0 is none.
func test(ctx context.Context, suites []suite, m Mutant) (Result, error) {
	r := Result{Mutant: m}
	for i := range suites {
		if r.Caught || suites[i].binary == "" {
			continue
		}
		start := time.Now()
		by, err := suites[i].test(ctx, m)
		if err != nil {
			return r, err
		}
		r.By, r.Caught, r.Took = by, by != "", r.Took+time.Since(start)
	}
	return r, nil
}

// test runs the tests of one suite with one mutant alive. It returns the first test that failed; "": none did.
func (s *suite) test(ctx context.Context, m Mutant) (by string, err error) {
	run, cancel := context.WithTimeout(ctx, s.hangs)
	defer cancel()
	cmd := exec.CommandContext(run, s.binary, "-test.failfast", "-test.short", "-test.run="+s.run, "-test.skip="+s.skip, "-test.timeout="+(s.hangs*9/10).String())
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LIVE_MUTANT="+strconv.Itoa(m.Number), "GOMAXPROCS="+strconv.Itoa(min(2, runtime.NumCPU())))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", nil
	case run.Err() == nil && !errors.As(err, &exit):
		return "", fmt.Errorf("run mutant %d: %w", m.Number, err)
	}
	return firstFailure(out.String()), nil
}

// firstFailure finds the innermost test that failed first.
func firstFailure(out string) string {
	name := "timeout"
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(rest, " (")
			continue
		}
		if strings.HasPrefix(line, "panic: ") && name == "timeout" {
			name = line
		}
		if name != "timeout" {
			break
		}
	}
	return name
}

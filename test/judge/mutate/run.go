package mutate

import (
	"bytes"
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

// hangs is how long the tests of one mutant may take; a mutant that hangs is caught.
const hangs = 2 * time.Minute

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
	binary, err := m.build(ctx, root, dir, temp)
	if err != nil {
		return err
	}
	if r, err := test(ctx, binary, dir, t, Mutant{}); err != nil {
		return err
	} else if r.Caught {
		return fmt.Errorf("test %s: %w: %s", t.Package, ErrUnwell, r.By)
	}
	return m.each(ctx, binary, dir, t, parallel, each)
}

// build compiles the package's tests with the changed files in place of its own.
func (m *mutated) build(ctx context.Context, root, dir, temp string) (string, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, source := range m.files {
		to := filepath.Join(temp, name)
		if err := os.WriteFile(to, source, 0o600); err != nil {
			return "", fmt.Errorf("write mutants: %w", err)
		}
		overlay.Replace[filepath.Join(dir, name)] = to
	}
	index, err := json.Marshal(overlay)
	if err != nil {
		return "", fmt.Errorf("write mutants: %w", err)
	}
	if err := os.WriteFile(filepath.Join(temp, "overlay.json"), index, 0o600); err != nil {
		return "", fmt.Errorf("write mutants: %w", err)
	}
	binary := filepath.Join(temp, "mutants.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", filepath.Join(temp, "overlay.json"), "-o", binary, dir)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build mutants: %w\n%s", err, out)
	}
	return binary, nil
}

func (m *mutated) each(ctx context.Context, binary, dir string, t Target, parallel int, each func(Result)) error {
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
				results[i], errs[i] = test(ctx, binary, dir, t, x)
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

// test runs the tests with one mutant alive; number 0 is none.
func test(ctx context.Context, binary, dir string, t Target, m Mutant) (Result, error) {
	start := time.Now()
	run, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	cmd := exec.CommandContext(run, binary, "-test.failfast", "-test.short", "-test.run="+t.Run, "-test.skip="+t.Skip, "-test.timeout="+(hangs-10*time.Second).String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LIVE_MUTANT="+strconv.Itoa(m.Number), "GOMAXPROCS="+strconv.Itoa(min(2, runtime.NumCPU())))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	r := Result{Mutant: m, Caught: err != nil, Took: time.Since(start)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil && run.Err() == nil && !errors.As(err, &exit):
		return r, fmt.Errorf("run mutant %d: %w", m.Number, err)
	case err != nil:
		r.By = firstFailure(out.String())
	}
	return r, nil
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

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// progressEvery is how often a running build says how far it is.
const progressEvery = 10 * time.Second

// build makes packages into a directory beside dir and gives what came out the names of the
// programs in dir, so that a program there is always whole. One package is all programs: they are
// links to it. The caller holds the lock of dir.
func build(ctx context.Context, p pins, dir string, packages, programs []string, progress io.Writer) error {
	stale, _ := filepath.Glob(dir + ".building-*")
	for _, old := range stale {
		os.RemoveAll(old)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".building-")
	if err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	defer os.RemoveAll(tmp)

	fmt.Fprintf(progress, "controlplane: building the control plane from Go modules: %s (Kubernetes %s; once, %s, cached in %s)\n",
		strings.Join(programs, ", "), p.kube, guess(), dir)
	began := time.Now()
	if err := goBuild(ctx, p, tmp, packages, began, progress); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	for i, program := range programs {
		made, to := filepath.Join(tmp, path.Base(packages[min(i, len(packages)-1)])), filepath.Join(dir, program)
		_ = os.Remove(to)
		if err := os.Link(made, to); err != nil {
			return fmt.Errorf("build the control plane: %w", err)
		}
	}
	fmt.Fprintf(progress, "controlplane: built in %s\n", time.Since(began).Round(time.Second/10))
	return nil
}

// guess is from a measurement: a quarter of an hour of processor time with an empty build cache,
// half a minute with a full one.
func guess() string {
	minutes := max(1, 15/max(1, runtime.NumCPU()))
	return fmt.Sprintf("about %d minutes on %d cores", minutes, runtime.NumCPU())
}

func buildArgs(p pins, out string, packages []string) []string {
	ld := []string{"-s", "-w"}
	minor := strings.SplitN(p.minor(), ".", 2)
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		ld = append(ld,
			"-X", pkg+".gitVersion="+p.kube,
			"-X", pkg+".gitMajor="+minor[0],
			"-X", pkg+".gitMinor="+minor[1],
			"-X", pkg+".gitTreeState=clean")
	}
	mode := "-mod=readonly"
	if p.generated {
		mode = "-mod=mod" // sums of the staging modules are added
	}
	return append([]string{"build", mode, "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(ld, " "), "-o", out + string(filepath.Separator)}, packages...)
}

// goBuild runs one go build for all packages: the go command shares what they have in
// common and keeps every core busy.
func goBuild(ctx context.Context, p pins, out string, packages []string, began time.Time, progress io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", buildArgs(p, out, packages)...)
	cmd.Dir = p.module
	// The go command does not always remove its work directory when it is interrupted,
	// and never when it is killed. Inside out, the caller or the next build does.
	work := filepath.Join(out, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTMPDIR="+work, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "PWD="+p.module)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// The interrupt reaches the compilers too; after WaitDelay go is killed.
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	c, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("start go build: %w", err)
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if c.err != nil {
				return errors.Join(fmt.Errorf("go build in %s: %w", p.module, c.err), errors.New(tail(said.String(), 40)))
			}
			return nil
		case <-tick.C:
			fmt.Fprintf(progress, "controlplane: building, %s so far\n", time.Since(began).Round(time.Second))
		}
	}
}

package world

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// AgentUser is the user that units/rbac.yaml binds.
const AgentUser = "autoscaler-agent"

// stopLimit is systemd's own patience with a unit that was asked to stop
// (DefaultTimeoutStopSec=).
const stopLimit = 90 * time.Second

// BuildAgent copies to a file the product's binary, built from the module that this test module
// stands in. The binary is kept beside the cached control plane, where go build links it anew
// only when a source changed, so that all suites of a run link it once; with flags of go build it
// is built for the caller alone. It is built as the tests themselves are (no -trimpath), so that no package
// is compiled twice.
func BuildAgent(ctx context.Context, to string, flags ...string) error {
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "..", "..", "..")
	if len(flags) > 0 {
		return buildAgent(ctx, module, to, flags)
	}
	cache, err := controlplane.CacheDir("agent")
	if err != nil {
		return err
	}
	kept := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256([]byte(module)))[:12])
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	unlock, err := controlplane.Lock(ctx, kept+".lock", os.Stderr)
	if err != nil {
		return err
	}
	defer unlock()
	if !linked.Load() { // sources stay as they are while a test runs
		if err := buildAgent(ctx, module, kept, nil); err != nil {
			return err
		}
		linked.Store(true)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// cp, since a file that this process has open for writing while it starts a child cannot be executed (ETXTBSY).
	if out, err := exec.CommandContext(ctx, "cp", kept, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy autoscaler-agent: %w\n%s", err, out)
	}
	return nil
}

var linked atomic.Bool

func buildAgent(ctx context.Context, module, to string, flags []string) error {
	build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-ldflags", "-s -w", "-o", to}, flags...), "./cmd/autoscaler-agent")...)
	build.Dir = module
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build autoscaler-agent: %w\n%s", err, out)
	}
	return nil
}

// Process is a running agent, its output in a file.
type Process struct {
	cmd    *exec.Cmd
	binary string
	Log    string        // path
	Done   chan struct{} // closed when it has ended
	Err    error         // how it ended, valid after Done
	peak   string
}

func startProcess(log string, env []string, name string, args ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(name), err)
	}
	defer f.Close()
	p := &Process{cmd: exec.Command(name, args...), binary: name, Log: log, Done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = f, f, env
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(name), err)
	}
	go func() {
		p.Err = p.cmd.Wait()
		close(p.Done)
	}()
	return p, nil
}

// Stop asks the process to end and waits; one that does not end is killed, and that
// is an error.
func (p *Process) Stop(ctx context.Context) error {
	p.peak = p.Usage()
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.Done:
		return nil
	case <-time.After(stopLimit):
	case <-ctx.Done():
	}
	_ = p.cmd.Process.Kill()
	<-p.Done
	return fmt.Errorf("%s did not end within %s of SIGINT and was killed", filepath.Base(p.binary), stopLimit)
}

// Usage reads the process's memory and CPU time from /proc, "" where there is none.
func (p *Process) Usage() string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return p.peak
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return p.peak
	}
	value := func(key string) int {
		for line := range strings.Lines(string(status)) {
			if rest, ok := strings.CutPrefix(line, key+":"); ok {
				kb, _ := strconv.Atoi(strings.Fields(rest)[0])
				return kb / 1024
			}
		}
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	return fmt.Sprintf("RSS %d MB (peak %d MB), %.1f s of CPU", value("VmRSS"), value("VmHWM"), float64(user+system)/ticksPerSecond)
}

// Tail returns the last n lines of the log.
func (p *Process) Tail(n int) string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// PID is the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process as a crash would (SIGKILL) and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.Done
}

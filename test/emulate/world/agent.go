package world

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// AgentUser is the user that units/rbac.yaml binds.
const AgentUser = "autoscaler-agent"

// stopLimit is systemd's own patience with a unit that was asked to stop
// (DefaultTimeoutStopSec=).
const stopLimit = 90 * time.Second

// BuildAgent builds the product's binary from the module that this test module
// stands in.
func BuildAgent(ctx context.Context, to string, flags ...string) error {
	_, here, _, _ := runtime.Caller(0)
	build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", to}, flags...), "./cmd/autoscaler-agent")...)
	build.Dir = filepath.Join(filepath.Dir(here), "..", "..", "..")
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

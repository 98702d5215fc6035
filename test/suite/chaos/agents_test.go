package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// agent is one of the two. Its state, socket and published values are its own, as on a machine
// of its own.
type agent struct {
	t      *testing.T
	w      *world.World
	binary string
	name   string

	trouble sync.Mutex // held by the trouble that it is in
	mu      sync.Mutex // guards the rest
	process *world.Process
	frozen  bool
	down    bool // on purpose: nobody starts it again
}

func (a *agent) dir() string {
	if a.name == "leader" {
		return a.w.Dir // where the world looks for what an agent publishes
	}
	return filepath.Join(a.w.Dir, a.name)
}

func (a *agent) state() string { return filepath.Join(a.dir(), "state") }

func (a *agent) start() error {
	if err := os.MkdirAll(a.state(), 0o700); err != nil {
		return err
	}
	env := append([]string{"AUTOSCALER_NODE_NAME=" + a.name, "AUTOSCALER_STATE_DIR=" + a.state(), "AUTOSCALER_SOCKET=" + filepath.Join(a.dir(), "agent.sock"),
		"AUTOSCALER_BOOTSTRAP_FILE=" + filepath.Join(a.dir(), "worker.env")}, quick...)
	p, err := a.w.StartAgentAs(context.Background(), a.name, a.binary, env...)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.process, a.down = p, false
	a.mu.Unlock()
	return nil
}

// kill ends the process as a crash does, and keeps it down.
func (a *agent) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = true
	a.process.Kill()
}

// stop ends the process as systemctl stop does, and keeps it down.
func (a *agent) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = true
	if err := a.process.Stop(context.Background()); err != nil {
		a.t.Errorf("agent %s: %v", a.name, err)
	}
}

// freeze stops the process where it stands (SIGSTOP): it believes what it believed when it
// goes on.
func (a *agent) freeze() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frozen = syscall.Kill(a.process.PID(), syscall.SIGSTOP) == nil
}

func (a *agent) thaw() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.frozen {
		_ = syscall.Kill(a.process.PID(), syscall.SIGCONT)
		a.frozen = false
	}
}

// revive starts a process that has ended of itself, as the unit does it.
func (a *agent) revive() {
	a.mu.Lock()
	ended := false
	if a.process != nil && !a.down {
		select {
		case <-a.process.Done:
			ended = true
		default:
		}
	}
	a.mu.Unlock()
	if !ended {
		return
	}
	a.t.Logf("agent %s has ended (%v) and is started again", a.name, a.process.Err)
	if err := a.start(); err != nil {
		a.t.Logf("start agent %s: %v", a.name, err)
	}
}

func (a *agent) tail() string {
	if a.process == nil {
		return ""
	}
	return a.process.Tail(80)
}

// panics are the lines of a crash in the log.
func (a *agent) panics() (out []string) {
	text, _ := os.ReadFile(a.process.Log)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "DATA RACE") {
			out = append(out, line)
		}
	}
	return out
}

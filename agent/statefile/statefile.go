// Package statefile keeps what a restart of the agent must not forget: the engine's memory,
// the specs of instances and the corrections of templates, in <StateDir>/state.json, and the
// lock that keeps a second agent off the same directory.
//
// It refuses a file that is torn, of another version or not ours: such a file is set aside
// and reported, and the agent starts empty. Every rule is safe without it.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

// version changes when a field changes its meaning; a file of another version
// is set aside like a torn one.
const version = 1

// State is what a restart must not forget. Every rule is safe without it.
type State struct {
	Version     int                            `json:"version"`
	Memory      decision.Memory                `json:"memory"`
	Specs       map[cluster.InstanceID]string  `json:"specs,omitempty"`
	Corrections map[string]template.Correction `json:"lessons,omitempty"`
}

// File keeps a State in <StateDir>/state.json.
type File struct{ path string }

// In is the state file of a state directory.
func In(dir string) File { return File{path: filepath.Join(dir, "state.json")} }

// Load reads the state, and removes what a crash left beside it. A missing file is an
// empty state. A torn or foreign one, or a directory in its place, is moved aside and
// reported; the state is empty then too, and the error says where the old bytes are.
func (f File) Load(now time.Time) (State, error) {
	s, err := atomicfile.Load(f.path, now, func(data []byte, to *State) error { return atomicfile.Exactly(data, version, to) })
	if err != nil {
		return s, fmt.Errorf("read state: %w", err)
	}
	return s, nil
}

// Save writes the state; unchanged bytes are not written again.
func (f File) Save(s State) error {
	s.Version = version
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if _, err := atomicfile.Write(f.path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// Peek reads the state for an onlooker: what cannot be read is empty, and nothing is
// moved aside.
func (f File) Peek() State {
	data, err := os.ReadFile(f.path)
	var s State
	if err != nil || json.Unmarshal(data, &s) != nil || s.Version != version {
		return State{}
	}
	return s
}

// Lock keeps a second agent from running on this machine: both would hold the
// Lease, by the same name. The kernel gives the lock back when the process ends,
// however it ends. A directory that cannot be written to is reported elsewhere and
// locks nothing.
func Lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, config.LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}, nil
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return func() { _ = f.Close() }, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		_ = f.Close()
		return nil, fmt.Errorf("another autoscaler-agent is running with state directory %s: stop it (systemctl status autoscaler-agent), or give this one another %s_STATE_DIR and %s_NODE_NAME", dir, config.Prefix, config.Prefix)
	default: // a file system without locks
		return func() { _ = f.Close() }, nil
	}
}

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Host is the machine that is changed.
type Host struct {
	Root   string // before every path; empty: the machine itself
	Binary string // path of the running binary
	// Run executes a program and returns its output.
	Run func(ctx context.Context, stdin string, words ...string) (string, error)
	// GroupID is the number of a group; found is false where there is none.
	GroupID func(name string) (id int, found bool)
}

// execute runs a program of this machine. The error holds what the program said.
func execute(ctx context.Context, stdin string, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) // #nosec G204 -- no shell; the words are of this package
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

func (h Host) path(name string) string { return filepath.Join(h.Root, name) }

func (h Host) exists(name string) bool {
	_, err := os.Lstat(h.path(name))
	return err == nil
}

// own gives a file to root and the agent's group.
func (h Host) own(name string) error {
	id, found := h.GroupID(User)
	if !found {
		return fmt.Errorf("there is no group %s", User)
	}
	return os.Chown(h.path(name), 0, id)
}

// Step is one change, or the statement that nothing has to be changed.
type Step struct {
	State string `json:"state"` // "present", "would" or "done"
	About string `json:"about"`
	Text  string `json:"text"`
	do    func(ctx context.Context) error
}

// The states of a step.
const (
	Present = "present"
	Would   = "would"
	Done    = "done"
)

func present(about, format string, args ...any) Step {
	return Step{State: Present, About: about, Text: fmt.Sprintf(format, args...)}
}

func change(about, text string, do func(ctx context.Context) error) Step {
	return Step{State: Would, About: about, Text: text, do: do}
}

// Apply does the steps in order and stops at the first that fails; tell hears of each. A
// repetition goes on where a failure stopped.
func Apply(ctx context.Context, steps []Step, tell func(Step)) error {
	for _, s := range steps {
		if s.do != nil {
			if err := s.do(ctx); err != nil {
				return fmt.Errorf("%s: %w (the steps before it are done: mend this and repeat the command)", s.About, err)
			}
			s.State = Done
		}
		tell(s)
	}
	return nil
}

// remove deletes a file or a directory if it is there.
func (h Host) remove(about, name string) []Step {
	if !h.exists(name) {
		return nil
	}
	return []Step{change(about, "remove "+name, func(context.Context) error { return os.RemoveAll(h.path(name)) })}
}

// readIf reads a file; a missing one is empty.
func (h Host) readIf(name string) ([]byte, error) {
	data, err := os.ReadFile(h.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

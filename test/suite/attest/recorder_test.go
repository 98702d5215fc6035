package attest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
)

// recorder makes a directory of programs for a machine's PATH. Each of them writes its
// arguments to a file and then becomes the program of its name. A process of a machine
// lives for a few milliseconds, and samples of /proc miss it.
type recorder struct{ dir, file string }

func newRecorder(t *testing.T) recorder {
	t.Helper()
	dir := t.TempDir()
	return recorder{dir: dir, file: filepath.Join(dir, "arguments")}
}

// tune gives a machine the recorder's programs in front of its own and the host's.
func (r recorder) tune(c *machine.Config) {
	if err := r.build(c); err != nil {
		panic(err) // no machine could run without it
	}
}

func (r recorder) build(c *machine.Config) error {
	programs, err := os.MkdirTemp(r.dir, "programs-")
	if err != nil {
		return err
	}
	path := c.Tools.Dir + ":" + os.Getenv("PATH")
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$0 $*\" >>'%s'\nPATH='%s'\nexec \"${0##*/}\" \"$@\"\n", r.file, path)
	one := filepath.Join(programs, ".record")
	if err := os.WriteFile(one, []byte(script), 0o755); err != nil {
		return err
	}
	for _, dir := range strings.Split(path, ":") {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // a PATH may name directories that are not there
		}
		for _, e := range entries {
			if err := os.Symlink(one, filepath.Join(programs, e.Name())); err != nil && !os.IsExist(err) {
				return err
			}
		}
	}
	c.Tools.Dir = programs
	return nil
}

// arguments are those of all programs that the machines called.
func (r recorder) arguments(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

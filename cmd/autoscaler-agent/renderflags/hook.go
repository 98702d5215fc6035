package renderflags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// shells read a script without running it where they get -n.
var shells = []string{"sh", "dash", "bash", "ash", "ksh"}

// interpreterWithin is much longer than a shell takes to read a script.
const interpreterWithin = 10 * time.Second

// syntax asks the script's own interpreter for faults of syntax, where that is a shell of this machine. Nothing of the
// script runs.
func syntax(file string, text []byte) error {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	words := strings.Fields(strings.TrimPrefix(string(first), "#!"))
	if len(words) == 0 || !bytes.HasPrefix(text, []byte("#!/")) {
		return nil // the specification says what is wrong with it
	}
	shell := words[0]
	if filepath.Base(shell) == "env" && len(words) > 1 {
		shell = "/bin/" + words[1]
	}
	if _, err := os.Stat(shell); err != nil || !slices.Contains(shells, filepath.Base(shell)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), interpreterWithin)
	defer cancel()
	c := exec.CommandContext(ctx, shell, "-n") // #nosec G204 -- one of the machine's shells, which runs nothing with -n
	c.Stdin, c.Env = bytes.NewReader(text), []string{"LC_ALL=C"}
	said, err := c.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return nil // the shell could not be asked
	}
	told, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return fmt.Errorf("%s has a fault of syntax: correct it (%s -n %s): %s", file, filepath.Base(shell), file, told)
}

package controlplane

import (
	"os/exec"
	"runtime"
	"strings"
)

// child is one started process. err is valid once done is closed.
type child struct {
	cmd  *exec.Cmd
	pid  int
	done chan struct{}
	err  error
}

// spawn starts cmd in a process group of its own (a Ctrl-C at the terminal must
// not reach it before we decide what to do) and so that it dies with us. On Linux
// the death signal is tied to the thread that forked, not to the process, so the
// goroutine keeps its thread until the child is gone.
func spawn(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// tail is the last n lines of a text, each cut to a readable length.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	for i, line := range lines {
		if len(line) > 600 {
			lines[i] = line[:600] + "..."
		}
	}
	return strings.Join(lines, "\n")
}

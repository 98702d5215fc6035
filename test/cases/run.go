package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// run lets the agent itself run, and the machines that it buys join.
func (s *scene) run(ctx context.Context, length time.Duration) (err error) {
	state := filepath.Join(s.dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("run the agent: %w", err)
	}
	log, err := os.Create(filepath.Join(s.dir, "agent.log"))
	if err != nil {
		return fmt.Errorf("run the agent: %w", err)
	}
	defer log.Close()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.t.run(running, s.env, log) }()
	over := time.After(length)
	for done := false; !done && err == nil; {
		select {
		case err = <-ended:
			err = fmt.Errorf("the agent has ended: %w", errors.Join(err, errors.New(tail(log.Name()))))
			ended <- nil
		case <-over:
			done = true
		case <-time.After(100 * time.Millisecond):
			err = s.joinNew(ctx)
		}
	}
	stop()
	<-ended
	s.say("the agent's journal of %s:", length)
	s.warnings(tail(log.Name()))
	return errors.Join(err, s.bound(ctx))
}

// runProcess runs the agent's binary until ctx ends.
func (t *Table) runProcess(ctx context.Context, env []string, log io.Writer) error {
	agent := exec.CommandContext(ctx, t.agent, "run")
	agent.Cancel = func() error { return agent.Process.Signal(os.Interrupt) }
	agent.Env, agent.Stdout, agent.Stderr = env, log, log
	return agent.Run()
}

// tail is the end of a file.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "")
}

// appOf is what the pods of one workload have in common: their label app, else their name.
func appOf(p corev1.Pod) string {
	if app := p.Labels["app"]; app != "" {
		return app
	}
	return p.Name
}

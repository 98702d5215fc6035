package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// buffer may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestUpKillStatusDown(t *testing.T) {
	dir, err := os.MkdirTemp("", "cp") // short: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	var out buffer
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"up", "--fast", "--dir", dir}, &out, os.Stderr) }()
	for !strings.Contains(out.String(), "export KUBECONFIG='"+filepath.Join(dir, "conf", "admin.conf")+"'") {
		select {
		case err := <-ended:
			t.Fatalf("up ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	say := func(want string, args ...string) {
		t.Helper()
		var said bytes.Buffer
		err := run(ctx, append(args, "--dir", dir), &said, io.Discard)
		if err != nil {
			said.WriteString(err.Error())
		}
		if !strings.Contains(said.String(), want) {
			t.Errorf("%v: %q, want %q", args, said.String(), want)
		}
	}
	say("kube-apiserver is stopped", "kill", "kube-apiserver")
	say("it does not run", "pause", "kube-apiserver")
	say("kube-scheduler is paused", "pause", "kube-scheduler")
	say("kube-scheduler is running", "resume", "kube-scheduler")
	say("stopped", "status")
	say("kube-apiserver is running", "start", "kube-apiserver")
	say("no such part", "kill", "kubelet")
	say("stopped", "down")
	if err := <-ended; err != nil {
		t.Errorf("up: %v", err)
	}
	say("no control plane runs", "status")
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"fly", "no such command"},
		{"kill", "takes 1 arguments"},
		{"up now", "takes 0 arguments"},
		{"up --extra kube-apiserver", "PART=--flag=value"},
		{"up --quickly", "quickly"},
	} {
		var bad usageError
		err := run(t.Context(), strings.Fields(c.args), io.Discard, io.Discard)
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a usage error with %q", c.args, err, c.want)
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"up", "-h"}, {"help"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out, io.Discard); err != nil || !strings.Contains(out.String(), "Examples:") {
			t.Errorf("%v: %v %q", args, err, out.String())
		}
	}
}

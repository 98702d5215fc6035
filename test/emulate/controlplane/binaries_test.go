package controlplane

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPins(t *testing.T) {
	p, err := readPins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(p.kube, "v1.") || !strings.HasPrefix(p.etcd, "v3.") || len(p.hash) != 12 {
		t.Errorf("%+v", p)
	}
	if p.minor() != majorMinor(p.kube) || p.minor() == "" {
		t.Errorf("minor %q of %s", p.minor(), p.kube)
	}
}

// TestPrograms: each name of the one binary is the program that says so itself.
func TestPrograms(t *testing.T) {
	bin, err := Binaries(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for program, question := range map[string][]string{
		Etcd:              {"--version", "etcd Version: " + strings.TrimPrefix(p.etcd, "v")},
		APIServer:         {"--version", "Kubernetes " + bin.Version},
		ControllerManager: {"--version", "Kubernetes " + bin.Version},
		Scheduler:         {"--version", "Kubernetes " + bin.Version},
		Kubeadm:           {"version", bin.Version},
		Kubectl:           {"version", "Client Version: " + bin.Version},
		Admission:         {"-help", "-manifests"},
	} {
		said, _ := exec.CommandContext(t.Context(), bin.Path(program), question[0]).CombinedOutput()
		if !strings.Contains(string(said), question[1]) {
			t.Errorf("%s %s lacks %q:\n%s", program, question[0], question[1], said)
		}
	}
}

// TestBuild links kubectl alone; its packages are in the build cache, since
// Binaries has built them.
func TestBuild(t *testing.T) {
	if _, err := Binaries(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	p, err := readPins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const small = "k8s.io/kubernetes/cmd/kubectl"
	root := t.TempDir()
	dir := filepath.Join(root, "cache")
	stale := dir + ".building-123"
	for _, d := range []string{dir, stale} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	if err := build(t.Context(), p, dir, []string{small}, []string{"one", "two"}, &said); err != nil {
		t.Fatal(err)
	}
	if !executable(filepath.Join(dir, "one")) || !executable(filepath.Join(dir, "two")) {
		t.Error("a program lacks")
	}
	for _, want := range []string{"building the control plane from Go modules: one, two", "minutes", dir, "built in"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, said.String())
		}
	}
	if left, _ := filepath.Glob(dir + ".building-*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := build(ctx, p, dir, []string{small}, []string{Kubeadm}, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled build: %v", err)
	}
	if executable(filepath.Join(dir, Kubeadm)) {
		t.Error("a cancelled build left a program")
	}
}

func TestLockWaits(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cache.lock")
	unlock, err := Lock(t.Context(), name, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var said bytes.Buffer
	if _, err := Lock(ctx, name, &said); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held lock was taken: %v", err)
	}
	if !strings.Contains(said.String(), "waiting") {
		t.Errorf("a wait was not told: %q", said.String())
	}
	got := make(chan error)
	go func() {
		again, err := Lock(t.Context(), name, io.Discard)
		if err == nil {
			again()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestFreePortsAreBelowTheEphemeralRange(t *testing.T) {
	ports, err := freePorts(8)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p >= ephemeralStart() || p < 1024 {
			t.Errorf("port %d of %v (ephemeral from %d)", p, ports, ephemeralStart())
		}
		seen[p] = true
	}
}

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
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

func TestFits(t *testing.T) {
	p := pins{kube: "v1.36.3", etcd: "v3.6.8"}
	for _, c := range []struct {
		program, version string
		want             bool
	}{
		{APIServer, "1.36.0", true},
		{APIServer, "1.36.3-dispatcher", true},
		{APIServer, "1.35.9", false},
		{APIServer, "1.3.6", false},
		{APIServer, "", false},
		{Kubectl, "2.36.3", false},
		{Etcd, "3.4.23", false},
		{Etcd, "3.5.0", true},
		{Etcd, "3.10.1", true},
		{Etcd, "4.0.0", false},
		{Etcd, "latest", false},
	} {
		if got := fits(p, c.program, c.version); got != c.want {
			t.Errorf("fits(%s %s) = %v, want %v", c.program, c.version, got, c.want)
		}
	}
}

// script puts a program into dir that says text whatever it is asked.
func script(t *testing.T, dir, program, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\nprintf '%s\\n' '"+text+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestLookAround(t *testing.T) {
	assets, path := t.TempDir(), t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	t.Setenv("PATH", path+":/bin:/usr/bin")
	p := pins{kube: "v1.36.3", etcd: "v3.6.8"}
	script(t, assets, Etcd, "etcd Version: 3.5.21")
	script(t, assets, APIServer, "Kubernetes v1.35.0") // too old: PATH has a better one
	script(t, path, APIServer, "Kubernetes v1.36.1")
	script(t, path, Kubectl, "Client Version: v1.36.3")
	script(t, path, Scheduler, "no version here")
	found := lookAround(t.Context(), p, []string{Etcd, APIServer, Kubectl, Scheduler})
	want := map[string]string{
		Etcd:      filepath.Join(assets, Etcd),
		APIServer: filepath.Join(path, APIServer),
		Kubectl:   filepath.Join(path, Kubectl),
	}
	if len(found) != len(want) {
		t.Errorf("found %v, want %v", found, want)
	}
	for program, file := range want {
		if found[program] != file {
			t.Errorf("%s: %s, want %s", program, found[program], file)
		}
	}
	cache := t.TempDir()
	links, err := linkAll(cache, filepath.Join(cache, "built"), found)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(filepath.Join(links, Kubeadm)); err != nil || got != filepath.Join(cache, "built", Kubeadm) {
		t.Errorf("kubeadm -> %s, %v: what was not found is linked to the cache", got, err)
	}
	if again, err := linkAll(cache, filepath.Join(cache, "built"), found); err != nil || again != links {
		t.Errorf("linked twice: %s, %v", again, err)
	}
}

// TestBuild links the smallest program; its packages are in the build cache, since
// Binaries has built them.
func TestBuild(t *testing.T) {
	if _, err := Binaries(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	p, err := readPins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "cache")
	stale := dir + ".building-123"
	for _, d := range []string{dir, stale} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	if err := build(t.Context(), p, dir, []string{Etcd}, &said); err != nil {
		t.Fatal(err)
	}
	if v := versionOf(t.Context(), Etcd, filepath.Join(dir, Etcd)); "v"+v != p.etcd {
		t.Errorf("etcd says version %q, want %s", v, p.etcd)
	}
	for _, want := range []string{"building the control plane from Go modules: etcd", "minutes", dir, "built 1 programs in"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, said.String())
		}
	}
	if left, _ := filepath.Glob(dir + ".building-*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := build(ctx, p, dir, []string{Kubeadm}, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled build: %v", err)
	}
	if executable(filepath.Join(dir, Kubeadm)) {
		t.Error("a cancelled build left a program")
	}
}

func TestLockWaits(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cache.lock")
	unlock, err := lockFile(t.Context(), name, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var said bytes.Buffer
	if _, err := lockFile(ctx, name, &said); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a held lock was taken: %v", err)
	}
	if !strings.Contains(said.String(), "waiting") {
		t.Errorf("a wait was not told: %q", said.String())
	}
	got := make(chan error)
	go func() {
		again, err := lockFile(t.Context(), name, io.Discard)
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

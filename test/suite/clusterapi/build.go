package clusterapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

const corePackage = "sigs.k8s.io/cluster-api"

var pin = regexp.MustCompile(`(?m)^\s*(?:require )?sigs\.k8s\.io/cluster-api (v\S+)`)

// Manager is the built core manager.
type Manager struct {
	File    string // the program
	Source  string // directory of the module that it was built from
	Version string // "v1.13.6"
}

// Build returns the core manager of the pinned version: from the cache, else built with
// go build, which takes about five minutes of CPU once and is told on progress.
func Build(ctx context.Context, progress io.Writer) (Manager, error) {
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "core")
	h := sha256.New()
	var m Manager
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return m, fmt.Errorf("read the pinned version of Cluster API: %w", err)
		}
		if found := pin.FindSubmatch(text); found != nil {
			m.Version = string(found[1])
		}
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	if m.Version == "" {
		return m, errors.New("read the pinned version of Cluster API: core/go.mod does not name it")
	}
	source, err := run(ctx, module, "list", "-m", "-f", "{{.Dir}}", corePackage)
	if err != nil {
		return m, err
	}
	if m.Source = strings.TrimSpace(source); m.Source == "" {
		if _, err := run(ctx, module, "mod", "download", corePackage); err != nil {
			return m, err
		}
		if source, err = run(ctx, module, "list", "-m", "-f", "{{.Dir}}", corePackage); err != nil {
			return m, err
		}
		m.Source = strings.TrimSpace(source)
	}
	root, err := controlplane.CacheDir("clusterapi")
	if err != nil {
		return m, err
	}
	dir := filepath.Join(root, m.Version+"-"+hex.EncodeToString(h.Sum(nil))[:12])
	m.File = filepath.Join(dir, "manager")
	if info, err := os.Stat(m.File); err == nil && info.Mode().IsRegular() {
		return m, nil
	}
	return m, compile(ctx, module, dir, m, progress)
}

// compile builds into a temporary file and renames it, so that the program in the cache
// is always whole.
func compile(ctx context.Context, module, dir string, m Manager, progress io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	tmp, err := os.MkdirTemp(dir, "building-")
	if err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintf(progress, "clusterapi: building Cluster API's core manager %s from its Go module (about 3 minutes on 2 cores, once, cached in %s)\n", m.Version, dir)
	began, to := time.Now(), filepath.Join(tmp, "manager")
	flags := "-s -w -X sigs.k8s.io/cluster-api/version.gitVersion=" + m.Version
	if _, err := run(ctx, module, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", to, corePackage); err != nil {
		return err
	}
	if err := os.Rename(to, m.File); err != nil {
		return fmt.Errorf("build the core manager: %w", err)
	}
	fmt.Fprintf(progress, "clusterapi: built in %s\n", time.Since(began).Round(time.Second))
	return nil
}

func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "PWD="+dir)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args[:min(2, len(args))], " "), err, said.String())
	}
	return out.String(), nil
}

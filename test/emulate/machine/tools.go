package machine

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed vmtools/curl/main.go
var curlSource []byte

//go:embed vmtools/kubeadm.sh
var kubeadmScript []byte

//go:embed vmtools/sleep.sh
var sleepScript []byte

// Tools is a directory of programs that a machine's PATH starts with.
type Tools struct {
	Dir string
	// sleep is the host's own program, which ours calls.
	sleep string
}

// BuildTools makes the machines' tools in a cache outside the checkout, keyed by
// their sources, and returns at once when they are there. curl is built only for
// a host that has none, or when ownCurl asks for it.
func BuildTools(ctx context.Context, ownCurl bool) (Tools, error) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return Tools{}, fmt.Errorf("make tools: %w", err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		ownCurl = true
	}
	root, err := cacheRoot()
	if err != nil {
		return Tools{}, err
	}
	sum := sha256.New()
	for _, b := range [][]byte{curlSource, kubeadmScript, sleepScript, {bit(ownCurl)}} {
		sum.Write(b)
		sum.Write([]byte{0})
	}
	t := Tools{Dir: filepath.Join(root, hex.EncodeToString(sum.Sum(nil)[:8])), sleep: sleep}
	if _, err := os.Stat(t.Dir); err == nil {
		return t, nil
	}
	if err := t.build(ctx, root, ownCurl); err != nil {
		return Tools{}, fmt.Errorf("make tools: %w", err)
	}
	return t, nil
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// cacheRoot is where the built control plane lies too.
func cacheRoot() (string, error) {
	dir := os.Getenv("AUTOSCALER_TEST_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache: %w: set HOME or AUTOSCALER_TEST_CACHE", err)
		}
		dir = filepath.Join(base, "autoscaler-agent")
	}
	abs, err := filepath.Abs(filepath.Join(dir, "machine"))
	if err != nil {
		return "", fmt.Errorf("find the cache: %w", err)
	}
	return abs, nil
}

// build works in a directory of its own and renames it, so that two processes that
// build at once do not see each other's half of it.
func (t Tools) build(ctx context.Context, root string, ownCurl bool) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(root, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "bin")
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	for name, script := range map[string][]byte{"kubeadm": kubeadmScript, "sleep": sleepScript} {
		if err := os.WriteFile(filepath.Join(out, name), script, 0o755); err != nil {
			return err
		}
	}
	if ownCurl {
		src := filepath.Join(tmp, "curl.go")
		if err := os.WriteFile(src, curlSource, 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(out, "curl"), src)
		cmd.Dir = tmp
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off", "GOFLAGS=", "GOWORK=off")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build curl: %w: %s", err, text)
		}
	}
	if err := os.Rename(out, t.Dir); err != nil {
		if _, statErr := os.Stat(t.Dir); statErr != nil {
			return err
		}
	}
	return nil
}

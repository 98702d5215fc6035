package leader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// etcdTools builds etcdctl and etcdutl once, and returns their directory in the user's cache.
func etcdTools(ctx context.Context) (string, error) {
	pins, err := os.ReadFile("etcdtools/go.sum")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "autoscaler-agent", fmt.Sprintf("etcdtools-%x", sha256.Sum256(pins))[:22])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fmt.Fprintln(os.Stderr, "building etcdctl and etcdutl (minutes, once)")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "etcdtools-")
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", made, "go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3")
	build.Dir, build.Env = "etcdtools", append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build etcdctl and etcdutl: %w: %s", err, out), os.RemoveAll(made))
	}
	if err := os.Rename(made, dir); err != nil && !os.IsExist(err) {
		return "", err
	}
	return dir, nil
}

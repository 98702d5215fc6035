package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Bin says where the programs are.
type Bin struct {
	// Dir holds every program under its own name: put it in front of PATH.
	Dir string
	// Version is that of Kubernetes, "v1.36.3".
	Version string
}

// Path is the file of one program.
func (b Bin) Path(program string) string { return filepath.Join(b.Dir, program) }

// DefaultDir is where the command for people keeps its control plane: beside the
// cached programs, so that every terminal finds it.
func DefaultDir() (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "run"), nil
}

func cacheRoot() (string, error) { return CacheDir("controlplane") }

// CacheDir is where one part of test/ keeps what is slow to build: outside the checkout,
// so that a clean clone finds what an older one built. It is absolute.
func CacheDir(part string) (string, error) {
	if dir := os.Getenv("AUTOSCALER_TEST_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("find the cache: AUTOSCALER_TEST_CACHE: %w", err)
		}
		return filepath.Join(abs, part), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache: %w: set HOME or AUTOSCALER_TEST_CACHE", err)
	}
	return filepath.Join(dir, "autoscaler-agent", part), nil
}

// Binaries returns the programs of the pinned control plane, or of the minor that KubernetesEnv
// names. They come from the cache; what is missing there is built with go build, which takes
// minutes once and is told on progress. Processes that ask at the same time wait for one build. A
// cancelled context stops the build and leaves no half-written program.
func Binaries(ctx context.Context, progress io.Writer) (Bin, error) {
	return BinariesOf(ctx, os.Getenv(KubernetesEnv), progress)
}

// BinariesOf returns the programs of a minor, "1.30", and of the pinned one for "".
func BinariesOf(ctx context.Context, minor string, progress io.Writer) (Bin, error) {
	if progress == nil {
		progress = io.Discard
	}
	bin, err := pinnedBinaries(ctx, progress)
	if err != nil {
		return Bin{}, err
	}
	other, err := otherMinor(minor, majorMinor(bin.Version))
	if err != nil || other == nil {
		return bin, err
	}
	return otherBinaries(ctx, bin, other, progress)
}

// FirstBuild says how long Binaries will build the pinned control plane; "" when the cache has it.
func FirstBuild(ctx context.Context) (string, error) {
	_, bin, err := pinned(ctx)
	if err != nil || bin.has(Programs()) {
		return "", err
	}
	return guess(), nil
}

// pinned is what k8s/ pins and where the cache has it.
func pinned(ctx context.Context) (pins, Bin, error) {
	p, err := readPins(ctx)
	if err != nil {
		return pins{}, Bin{}, err
	}
	root, err := cacheRoot()
	return p, Bin{Dir: filepath.Join(root, p.kube+"-"+p.etcd+"-"+p.hash), Version: p.kube}, err
}

func pinnedBinaries(ctx context.Context, progress io.Writer) (Bin, error) {
	p, bin, err := pinned(ctx)
	if err != nil {
		return Bin{}, err
	}
	return bin, provide(ctx, bin, Programs(), progress, func() error {
		return build(ctx, p, bin.Dir, []string{multiCall}, Programs(), progress)
	})
}

func (b Bin) has(programs []string) bool {
	for _, program := range programs {
		if !executable(b.Path(program)) {
			return false
		}
	}
	return true
}

// provide calls build unless the directory has every program. One process builds, others wait.
func provide(ctx context.Context, bin Bin, programs []string, progress io.Writer, build func() error) error {
	if bin.has(programs) {
		return nil
	}
	if err := os.MkdirAll(bin.Dir, 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	unlock, err := Lock(ctx, bin.Dir+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	if bin.has(programs) {
		return nil
	}
	return build()
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && info.Size() > 0
}

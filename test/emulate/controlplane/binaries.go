package controlplane

import (
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
	"strings"
	"time"
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
// names. The pinned ones come from the cache; else, each where its version fits, from
// KUBEBUILDER_ASSETS or PATH; what is then missing is built with go build, which takes minutes
// once and is told on progress. Processes that ask at the same time wait for one build. A
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

func pinnedBinaries(ctx context.Context, progress io.Writer) (Bin, error) {
	p, err := readPins(ctx)
	if err != nil {
		return Bin{}, err
	}
	root, err := cacheRoot()
	if err != nil {
		return Bin{}, err
	}
	dir := filepath.Join(root, p.kube+"-"+p.etcd+"-"+p.hash)
	if len(missing(dir, nil)) == 0 {
		return Bin{Dir: dir, Version: p.kube}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Bin{}, fmt.Errorf("make the cache: %w", err)
	}
	unlock, err := lockFile(ctx, dir+".lock", progress)
	if err != nil {
		return Bin{}, err
	}
	defer unlock()
	found := lookAround(ctx, p, missing(dir, nil))
	if need := missing(dir, found); len(need) > 0 {
		if err := build(ctx, p, dir, need, progress); err != nil {
			return Bin{}, err
		}
	}
	if len(missing(dir, nil)) == 0 {
		return Bin{Dir: dir, Version: p.kube}, nil
	}
	links, err := linkAll(root, dir, found)
	if err != nil {
		return Bin{}, err
	}
	return Bin{Dir: links, Version: p.kube}, nil
}

// missing lists the programs that neither the cache directory nor found has.
func missing(dir string, found map[string]string) []string {
	var out []string
	for _, program := range Programs() {
		if found[program] == "" && !executable(filepath.Join(dir, program)) {
			out = append(out, program)
		}
	}
	return out
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && info.Size() > 0
}

// lookAround finds programs of a fitting version that the machine already has.
func lookAround(ctx context.Context, p pins, want []string) map[string]string {
	found := map[string]string{}
	for _, program := range want {
		var candidates []string
		if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
			candidates = append(candidates, filepath.Join(assets, program))
		}
		if path, err := exec.LookPath(program); err == nil {
			candidates = append(candidates, path)
		}
		for _, file := range candidates {
			abs, err := filepath.Abs(file)
			if err == nil && executable(abs) && fits(p, program, versionOf(ctx, program, abs)) {
				found[program] = abs
				break
			}
		}
	}
	return found
}

var versionNumber = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+\S*)`)

// versionOf asks a program for its version; "" when it does not say one in time.
func versionOf(ctx context.Context, program, file string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	args := []string{"--version"}
	switch program {
	case Kubeadm:
		args = []string{"version", "-o", "short"}
	case Kubectl:
		args = []string{"version", "--client"}
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	m := versionNumber.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}

// fits: the Kubernetes programs must be of the pinned minor. etcd must be 3.5 or
// newer: 3.4 lacks the progress requests that consistent reads from the cache need.
func fits(p pins, program, version string) bool {
	if version == "" {
		return false
	}
	if program != Etcd {
		return majorMinor(version) == p.minor()
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major == 3 && minor >= 5
}

// linkAll makes one directory that names every program, for a set that is partly
// built and partly found. Its name is a hash of the targets: two sets never share.
func linkAll(root, dir string, found map[string]string) (string, error) {
	h := sha256.New()
	target := map[string]string{}
	for _, program := range Programs() {
		target[program] = found[program]
		if target[program] == "" {
			target[program] = filepath.Join(dir, program)
		}
		fmt.Fprintf(h, "%s=%s\n", program, target[program])
	}
	links := filepath.Join(root, "links-"+hex.EncodeToString(h.Sum(nil))[:12])
	if err := os.MkdirAll(links, 0o755); err != nil {
		return "", fmt.Errorf("link programs: %w", err)
	}
	for program, file := range target {
		err := os.Symlink(file, filepath.Join(links, program))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("link programs: %w", err)
		}
	}
	return links, nil
}

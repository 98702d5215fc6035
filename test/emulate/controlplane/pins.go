package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// The programs, by the names that they have everywhere.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubeadm           = "kubeadm"
	Kubectl           = "kubectl"
	// Judge is kube-scheduler's framework as a filter between two pipes (k8s/judge), Admission
	// the API server's evaluation of admission policies (k8s/admission).
	Judge     = "judge"
	Admission = "admission"
)

// multiCall is the package, seen from the pinned module, that is every program by its name.
const multiCall = "./programs"

// Programs lists every program that Binaries provides of the pinned control plane.
func Programs() []string {
	return append([]string{Etcd, Judge, Admission}, ofKubernetes...)
}

// ofKubernetes are the programs that another minor has too.
var ofKubernetes = []string{APIServer, ControllerManager, Scheduler, Kubeadm, Kubectl}

// buildRecipe changes whenever the flags of the build change, so that a cache
// filled by an older recipe is not taken for a fresh one.
const buildRecipe = "2"

// pins is what the nested module k8s/ fixes: its go.mod is the only place where
// the versions are written.
type pins struct {
	module string // directory of the nested module
	kube   string // "v1.36.3"
	etcd   string // "v3.6.8"
	hash   string // of the module's files, platform and recipe
	// generated tells that the module was made of Kubernetes' own go.mod.
	generated bool
}

var requireLine = map[string]*regexp.Regexp{
	"kube": regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`),
	"etcd": regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/server/v3 (v\S+)`),
}

func readPins(ctx context.Context) (pins, error) {
	dir, err := moduleDir(ctx)
	if err != nil {
		return pins{}, err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return pins{}, fmt.Errorf("read pins: %w", err)
	}
	p := pins{module: dir}
	for name, into := range map[string]*string{"kube": &p.kube, "etcd": &p.etcd} {
		m := requireLine[name].FindSubmatch(mod)
		if m == nil {
			return pins{}, fmt.Errorf("read pins: %s: no requirement for %s", filepath.Join(dir, "go.mod"), name)
		}
		*into = string(m[1])
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.GOOS, runtime.GOARCH, buildRecipe)
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		fmt.Fprintf(h, "%s %d:", strings.TrimPrefix(file, dir), len(text))
		h.Write(text)
		return err
	})
	if err != nil {
		return pins{}, fmt.Errorf("read pins: %w", err)
	}
	p.hash = hex.EncodeToString(h.Sum(nil))[:12]
	return p, nil
}

// minor is "1.36" for v1.36.3.
func (p pins) minor() string {
	return majorMinor(p.kube)
}

func majorMinor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// moduleDir finds k8s/ beside this source file. Under -trimpath the file name is
// an import path, so the working directory's module graph is asked next.
func moduleDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if dir := filepath.Join(filepath.Dir(file), "k8s"); holdsModule(dir) {
			return dir, nil
		}
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/autoscaler-agent/autoscaler-agent/test")
	if out, err := cmd.Output(); err == nil {
		if dir := filepath.Join(strings.TrimSpace(string(out)), "emulate", "controlplane", "k8s"); holdsModule(dir) {
			return dir, nil
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the pinned control-plane module: %w", err)
	}
	for ; ; wd = filepath.Dir(wd) {
		for _, below := range []string{"test/emulate/controlplane/k8s", "emulate/controlplane/k8s"} {
			if dir := filepath.Join(wd, filepath.FromSlash(below)); holdsModule(dir) {
				return dir, nil
			}
		}
		if wd == filepath.Dir(wd) {
			return "", errors.New("find the pinned control-plane module: no test/emulate/controlplane/k8s/go.mod beside the source, in the module graph or above the working directory: run this inside the repository")
		}
	}
}

func holdsModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

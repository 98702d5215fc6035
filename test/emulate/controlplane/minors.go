package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// KubernetesEnv names another minor than the pinned one, "1.30": every test that asks for
// Binaries then runs against the programs of that minor.
const KubernetesEnv = "AUTOSCALER_TEST_KUBERNETES"

// minor is a release of an older minor.
type minor struct {
	version string
	// staging has the modules of Kubernetes' staging directory that the module proxy did not
	// serve of this release, with the nearest release of the minor that it did.
	staging map[string]string
}

// minors are releases of the older minors, oldest first: the newest that the module proxy served
// when the list was made. The pinned minor is k8s/go.mod's.
var minors = []minor{
	{version: "v1.30.14"},
	{"v1.31.14", map[string]string{"endpointslice": "v0.31.13", "kube-controller-manager": "v0.31.13", "kube-proxy": "v0.31.11", "kube-scheduler": "v0.31.13"}},
	{"v1.32.13", map[string]string{"endpointslice": "v0.32.12", "sample-apiserver": "v0.32.3"}},
	{version: "v1.33.13"},
	{version: "v1.34.4"},
	{version: "v1.35.4"},
}

// Kubelet is built beside the control plane of another minor only: the worker of that minor
// needs it, and both are made of one module.
const Kubelet = "kubelet"

// otherMinor finds a minor in the list; nil stands for the pinned one.
func otherMinor(want, pinned string) (*minor, error) {
	want = strings.TrimPrefix(want, "v")
	if want == "" || want == pinned {
		return nil, nil
	}
	var known []string
	for i := range minors {
		if majorMinor(minors[i].version) == want {
			return &minors[i], nil
		}
		known = append(known, majorMinor(minors[i].version))
	}
	return nil, fmt.Errorf("the programs of Kubernetes %q cannot be built: use one of %s (%s)", want, strings.Join(append(known, pinned), ", "), KubernetesEnv)
}

// otherBinaries are the programs of another minor, with the pinned etcd. Each is a binary of its
// own, since the functions that one binary calls changed over the minors. They are built from a module that is made of k8s.io/kubernetes' own go.mod and go.sum: the
// same versions of everything, the staging modules by their releases. Sums that go.sum lacks
// come from Go's checksum database.
func otherBinaries(ctx context.Context, pinned Bin, m *minor, progress io.Writer) (Bin, error) {
	root, err := cacheRoot()
	if err != nil {
		return Bin{}, err
	}
	bin := Bin{Dir: filepath.Join(root, m.version+"-"+buildRecipe), Version: m.version}
	programs := append([]string{Kubelet}, ofKubernetes...)
	return bin, provide(ctx, bin, append([]string{Etcd}, programs...), progress, func() error {
		module, err := writeModule(ctx, m)
		if err != nil {
			return fmt.Errorf("build Kubernetes %s: %w", m.version, err)
		}
		defer os.RemoveAll(module)
		var packages []string
		for _, program := range programs {
			packages = append(packages, "k8s.io/kubernetes/cmd/"+program)
		}
		if err := build(ctx, pins{module: module, kube: m.version, generated: true}, bin.Dir, packages, programs, progress); err != nil {
			return err
		}
		_ = os.Remove(bin.Path(Etcd)) // of a cache whose pinned etcd went
		return os.Symlink(pinned.Path(Etcd), bin.Path(Etcd))
	})
}

// writeModule makes a module in a temporary directory whose build list is that of a release of
// Kubernetes.
func writeModule(ctx context.Context, m *minor) (dir string, err error) {
	version := m.version
	dir, err = os.MkdirTemp("", "kubernetes-"+version+"-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &got); err != nil || jsonErr != nil || got.Error != "" {
		return dir, errors.Join(fmt.Errorf("fetch k8s.io/kubernetes %s: %s%s", version, got.Error, said.String()), err, jsonErr)
	}
	mod, err := os.ReadFile(filepath.Join(got.Dir, "go.mod"))
	if err != nil {
		return dir, err
	}
	sum, err := os.ReadFile(filepath.Join(got.Dir, "go.sum"))
	if err != nil {
		return dir, err
	}
	return dir, errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(m.moduleText(string(mod))), 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
}

var (
	moduleLine  = regexp.MustCompile(`(?m)^module .*$`)
	stagingNone = regexp.MustCompile(`(?m)(k8s\.io/[a-z-]+) v0\.0\.0(\s)`)
	stagingPath = regexp.MustCompile(`(k8s\.io/[a-z-]+) => \./staging/src/\S+`)
)

// moduleText turns Kubernetes' own go.mod into that of a module beside it: what it takes from
// its staging directory comes from the modules that are published from there.
func (m *minor) moduleText(mod string) string {
	staging := "v0" + strings.TrimPrefix(m.version, "v1")
	mod = moduleLine.ReplaceAllString(mod, "module example.net/kubernetes\n\nrequire k8s.io/kubernetes "+m.version)
	mod = stagingNone.ReplaceAllString(mod, "${1} "+staging+"${2}")
	return stagingPath.ReplaceAllStringFunc(mod, func(replace string) string {
		name, _, _ := strings.Cut(replace, " ")
		return name + " => " + name + " " + cmp.Or(m.staging[strings.TrimPrefix(name, "k8s.io/")], staging)
	})
}

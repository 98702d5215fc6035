package worker

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

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// Parts is what a worker is made of, in the cache.
type Parts struct {
	Bin        string // directory of programs
	Tree       string // root file system of a bare Debian with cloud-init
	Kubernetes string // version, "v1.36.3"
	Containerd string // version, "v2.2.5"
	// other is the directory of kubelet and kubeadm where they are not in Bin.
	other string
}

// programs are built from the nested modules, whose go.mod fixes their versions.
var programs = map[string][]string{
	"kubernetes": {"k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kubeadm"},
	"runtime": {
		"github.com/containerd/containerd/v2/cmd/containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/ctr",
		"github.com/containernetworking/plugins/plugins/ipam/host-local", "github.com/containernetworking/plugins/plugins/main/bridge",
		"github.com/containernetworking/plugins/plugins/main/loopback", "github.com/containernetworking/plugins/plugins/meta/portmap",
		"sigs.k8s.io/cri-tools/cmd/crictl",
	},
}

var versionOf = regexp.MustCompile(`(?m)^\s*(?:require )?(k8s\.io/kubernetes|github\.com/containerd/containerd/v2) (v\S+)`)

// Prepare builds what the cache lacks: the programs (8 minutes of CPU once), runc from
// Debian's package, and the root file system (2 minutes).
func Prepare(ctx context.Context, progress io.Writer) (Parts, error) {
	_, here, _, _ := runtime.Caller(0)
	root, err := controlplane.CacheDir("worker")
	if err != nil {
		return Parts{}, err
	}
	var p Parts
	h := sha256.New()
	for _, module := range []string{"kubernetes", "runtime"} {
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(here), module, name))
			if err != nil {
				return Parts{}, fmt.Errorf("read the pinned versions of a worker: %w", err)
			}
			h.Write(text)
			for _, m := range versionOf.FindAllSubmatch(text, -1) {
				if name == "go.sum" {
					continue
				}
				if strings.HasPrefix(string(m[1]), "k8s") {
					p.Kubernetes = string(m[2])
				} else {
					p.Containerd = string(m[2])
				}
			}
		}
	}
	p.Bin = filepath.Join(root, "bin-"+hex.EncodeToString(h.Sum(nil))[:12])
	err = whole(p.Bin, func(to string) error { return p.build(ctx, filepath.Dir(here), to, progress) })
	kind, packages := "", []string(nil)
	if err == nil && os.Getenv(controlplane.KubernetesEnv) != "" {
		kind, packages, err = p.olderMinor(ctx, progress)
	}
	if err == nil {
		p.Tree, err = Tree(ctx, progress, kind, packages...)
	}
	return p, err
}

// Tree makes the root file system of a bare Debian that has some packages besides, once for each
// kind of it, and returns its directory in the cache. Nothing of this machine's own packages is in it.
func Tree(ctx context.Context, progress io.Writer, kind string, packages ...string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	root, err := controlplane.CacheDir("worker")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "tree-bookworm-2"+kind)
	return dir, whole(dir, func(to string) error {
		fmt.Fprintf(progress, "worker: making a root file system with debootstrap (once, about 2 minutes)\n")
		return command(ctx, "", nil, append([]string{"sh", filepath.Join(filepath.Dir(here), "tree.sh"), to}, packages...)...)
	})
}

// olderMinor takes kubelet and kubeadm of the minor that is asked for, and has the image bring
// the packages that an older kubeadm looks for: the machine reaches no package mirror.
func (p *Parts) olderMinor(ctx context.Context, progress io.Writer) (kind string, packages []string, err error) {
	bin, err := controlplane.Binaries(ctx, progress)
	if err != nil || bin.Version == p.Kubernetes {
		return "", nil, err
	}
	p.Kubernetes, p.other = bin.Version, bin.Dir
	return "-older", []string{"conntrack", "iptables"}, nil
}

// With is p with kubelet and kubeadm of the release that a control plane has.
func (p Parts) With(bin controlplane.Bin) Parts {
	p.Kubernetes, p.other = bin.Version, ""
	if _, err := os.Stat(bin.Path(controlplane.Kubelet)); err == nil {
		p.other = bin.Dir // the pinned release's are in Bin
	}
	return p
}

// whole makes a directory once: under another name first, so that it is there whole or not.
func whole(dir string, fill func(to string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

func (p Parts) build(ctx context.Context, here, to string, progress io.Writer) error {
	fmt.Fprintf(progress, "worker: building kubelet, kubeadm, containerd, crictl and CNI plugins from Go modules (once, about 8 minutes of CPU)\n")
	number := strings.Split(strings.TrimPrefix(p.Kubernetes, "v"), ".")
	flags := []string{"-s", "-w", "-X github.com/containerd/containerd/v2/version.Version=" + p.Containerd}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+pkg+".gitVersion="+p.Kubernetes, "-X "+pkg+".gitMajor="+number[0], "-X "+pkg+".gitMinor="+number[1], "-X "+pkg+".gitTreeState=clean")
	}
	for _, module := range []string{"runtime", "kubernetes"} {
		args := append([]string{"go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " "), "-o", to + "/"}, programs[module]...)
		if err := command(ctx, filepath.Join(here, module), []string{"CGO_ENABLED=0", "GOWORK=off"}, args...); err != nil {
			return err
		}
	}
	return command(ctx, to, nil, "sh", "-ec", `tmp=$(mktemp -d); cd "$tmp"; apt-get download -qq runc; dpkg -x runc_*.deb .; mv usr/sbin/runc "$0/runc"; rm -rf "$tmp"`, to)
}

func command(ctx context.Context, dir string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := out.String()
		return errors.Join(fmt.Errorf("%s: %w", strings.Join(args[:min(len(args), 3)], " "), err), errors.New(text[max(0, len(text)-4000):]))
	}
	return nil
}

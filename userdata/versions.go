package userdata

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed versions.txt
var versionsText string

// Pin is one line of a Table: the checksum of one published file.
type Pin struct {
	Name, Version, Arch, SHA256 string
	// Source tells where the checksum was read; the head of versions.txt lists the words.
	Source string
}

// Table holds checksums of published files.
type Table []Pin

// Versions is the table of this package.
func Versions() (Table, error) { return ParseTable(versionsText) }

// ParseTable reads the form of versions.txt: NAME VERSION ARCH SHA256 SOURCE, with # for
// comments.
func ParseTable(text string) (Table, error) {
	var t Table
	seen := map[[3]string]bool{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 5 || !known(f[0]) || !slices.Contains(Arches, f[2]) || !isSHA256(f[3]) || !isVersion(f[1]) {
			return nil, fmt.Errorf("userdata: table of versions, line %d: want NAME VERSION ARCH SHA256 SOURCE, for example: kubelet v1.36.3 amd64 (64 hex digits) publisher", n)
		}
		if key := [3]string{f[0], f[1], f[2]}; seen[key] {
			return nil, fmt.Errorf("userdata: table of versions, line %d: %s %s %s is listed twice", n, f[0], f[1], f[2])
		} else {
			seen[key] = true
		}
		t = append(t, Pin{Name: f[0], Version: f[1], Arch: f[2], SHA256: f[3], Source: f[4]})
	}
	return t, nil
}

// Sum is the checksum of one file, "" when the table lacks it.
func (t Table) Sum(name, version, arch string) string {
	i := slices.IndexFunc(t, func(p Pin) bool { return p.Name == name && p.Version == version && p.Arch == arch })
	if i < 0 {
		return ""
	}
	return t[i].SHA256
}

// Files are the programs that a machine may have to fetch.
var Files = []string{"cni", "containerd", "crictl", "kubeadm", "kubelet", "runc"}

// LeaderFiles are the programs that a leader has beside Files.
var LeaderFiles = []string{"kubectl"}

// ecrProvider is the program by which the kubelet gets credentials for images of ECR, a worker's where its version is given.
const ecrProvider = "ecr-credential-provider"

// files are those of Files that machines of s may have to fetch, and ecrProvider.
func (s Spec) files() []string {
	if s.Downloads.ECR == "" {
		return Files
	}
	return append(slices.Clone(Files), ecrProvider)
}

// known tells whether a file of the name may have a checksum.
func known(name string) bool {
	return name == ecrProvider || slices.Contains(Files, name) || slices.Contains(LeaderFiles, name)
}

// Arches are the processor architectures that are known.
var Arches = []string{"amd64", "arm64"}

// Default versions of what surrounds Kubernetes. crictl follows the minor of Kubernetes.
const (
	defaultContainerd = "v2.3.4"
	defaultRunc       = "v1.4.3"
	defaultCNI        = "v1.9.1"
)

// Oldest and newest minor of Kubernetes 1 that user data can be made for.
const (
	OldestMinor = 30
	NewestMinor = 36
)

// version is the version of one of Files.
func (s Spec) version(name string) string {
	d := s.Downloads
	switch name {
	case "containerd":
		return or(d.Containerd, defaultContainerd)
	case "runc":
		return or(d.Runc, defaultRunc)
	case "cni":
		return or(d.CNI, defaultCNI)
	case ecrProvider:
		return d.ECR
	case "crictl":
		n, _ := minor(s.KubernetesVersion)
		return or(d.Crictl, crictlDefaults[n])
	}
	return s.KubernetesVersion
}

var crictlDefaults = map[int]string{30: "v1.30.1", 31: "v1.31.1", 32: "v1.32.0", 33: "v1.33.0", 34: "v1.34.0", 35: "v1.35.0", 36: "v1.36.0"}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// path is a file's address without its scheme; $ARCH is the shell's.
func (s Spec) path(name string) string {
	tag := s.version(name)
	switch name {
	case "containerd":
		return "github.com/containerd/containerd/releases/download/" + tag + "/containerd-" + tag[1:] + "-linux-$ARCH.tar.gz"
	case "runc":
		return "github.com/opencontainers/runc/releases/download/" + tag + "/runc.$ARCH"
	case "cni":
		return "github.com/containernetworking/plugins/releases/download/" + tag + "/cni-plugins-linux-$ARCH-" + tag + ".tgz"
	case "crictl":
		return "github.com/kubernetes-sigs/cri-tools/releases/download/" + tag + "/crictl-" + tag + "-linux-$ARCH.tar.gz"
	case ecrProvider:
		return "artifacts.k8s.io/binaries/cloud-provider-aws/" + tag + "/linux/$ARCH/" + name + "-linux-$ARCH"
	}
	return "dl.k8s.io/release/" + tag + "/bin/linux/$ARCH/" + name
}

// arches are those whose checksums the script holds.
func (s Spec) arches() []string {
	if s.Arch != "" {
		return []string{s.Arch}
	}
	return Arches
}

// Download is one file that a machine may fetch.
type Download struct {
	Name, URL, SHA256 string
	// Path is the file's place below a mirror.
	Path string
}

// DownloadsOf lists what machines made from s may fetch, for whoever fills a mirror.
func DownloadsOf(s Spec) ([]Download, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return s.downloads(s.files())
}

func (s Spec) downloads(names []string) ([]Download, error) {
	sums, err := s.sums(names)
	if err != nil {
		return nil, err
	}
	var out []Download
	for _, arch := range s.arches() {
		for _, name := range names {
			path := strings.ReplaceAll(s.path(name), "$ARCH", arch)
			out = append(out, Download{Name: name, Path: path, URL: "https://" + path, SHA256: sums[name+"/"+arch]})
		}
	}
	return out, nil
}

// sums are the checksums of every file that the script may fetch; a file without one is an
// error: an unchecked program would run as root.
func (s Spec) sums(names []string) (map[string]string, error) {
	own, err := Versions()
	if err != nil {
		return nil, err
	}
	return s.sumsBy(own, names)
}

func (s Spec) sumsBy(own Table, names []string) (map[string]string, error) {
	sums := map[string]string{}
	var missing []string
	for _, arch := range s.arches() {
		for _, name := range names {
			key := name + "/" + arch
			sum := or(s.Downloads.SHA256[key], or(s.Downloads.Table.Sum(name, s.version(name), arch), own.Sum(name, s.version(name), arch)))
			if sum == "" {
				missing = append(missing, name+" "+s.version(name)+" "+arch)
			}
			sums[key] = sum
		}
	}
	if missing != nil {
		return nil, Faultf("userdata", "kubernetesVersion", "no checksum is known for %s: give --checksum NAME/ARCH=SHA256 for each, or a table with --versions (make versions writes one from the publishers' sites), or choose a version of the table: %s",
			strings.Join(missing, ", "), strings.Join(own.near(s.KubernetesVersion), ", "))
	}
	return sums, nil
}

// near lists the newest versions of Kubernetes that the table holds, of the asked minor
// first.
func (t Table) near(version string) []string {
	want, _, _ := strings.Cut(strings.TrimPrefix(version, "v1."), ".")
	var out []string
	for _, p := range t {
		if p.Name == "kubelet" && p.Arch == Arches[0] && strings.HasPrefix(p.Version, "v1."+want+".") && len(out) < 3 {
			out = append(out, p.Version)
		}
	}
	return out
}

// NewestUpTo is the newest version of a minor of Kubernetes, up to one, of which every checksum is known that the Spec
// needs; empty: none is.
func (s Spec) NewestUpTo(minor int, version string) string {
	own, err := Versions()
	if err != nil {
		return ""
	}
	patch := func(of string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(of, fmt.Sprintf("v1.%d.", minor)))
		if err != nil {
			return -1 // of another minor
		}
		return n
	}
	best := ""
	for _, p := range own {
		if n := patch(p.Version); p.Name != "kubelet" || n < 0 || n > patch(version) || best != "" && n <= patch(best) {
			continue
		}
		if _, err := s.For(p.Version).sumsBy(own, s.files()); err == nil {
			best = p.Version
		}
	}
	return best
}

func isVersion(s string) bool {
	rest, ok := strings.CutPrefix(s, "v")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return false
	}
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 16); err != nil {
			return false
		}
	}
	return true
}

// PublishedPath is the address of one published file without its scheme.
func PublishedPath(name, version, arch string) string {
	s := Spec{KubernetesVersion: version, Downloads: Downloads{Containerd: version, Runc: version, CNI: version, Crictl: version, ECR: version}}
	return strings.ReplaceAll(s.path(name), "$ARCH", arch)
}

// LeaderDownloads lists the programs that a leader of s may fetch.
func LeaderDownloads(s Spec) ([]Download, error) {
	if _, err := s.Install(LeaderFiles, nil); err != nil {
		return nil, err
	}
	return s.downloads(append(slices.Clone(Files), LeaderFiles...))
}

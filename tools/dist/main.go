// Command dist packs the binaries that make dist has built: a deb, an rpm, a tarball, a
// system extension for Flatcar and an SPDX list of the modules for each architecture, and
// the checksums of everything. The same commit makes the same bytes: every time is the
// commit's, every list is sorted, no name of the building machine is kept.
//
// It refuses to build and to sign: a signature needs a key, which no build has.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// build is what every artifact is made from.
type build struct {
	root, out, man, completion string
	described                  string // of git describe
	version                    string // a semantic version
	date                       time.Time
	from                       command // what the binaries were built from
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run() error {
	var b build
	var date string
	flag.StringVar(&b.root, "root", "..", "the checkout")
	flag.StringVar(&b.out, "out", "../dist", "directory with the binaries; the packages go there")
	flag.StringVar(&b.man, "man", "../dist/man", "directory with the man pages")
	flag.StringVar(&b.completion, "completion", "../dist/completion", "directory with bash, zsh and fish")
	flag.StringVar(&b.described, "version", "", "what git describe says")
	flag.StringVar(&date, "date", "", "time of the commit, RFC 3339")
	flag.Parse()
	var err error
	if b.date, err = time.Parse(time.RFC3339, date); err != nil {
		return fmt.Errorf("-date: %w (give the commit's time, such as 2026-11-22T10:00:00Z)", err)
	}
	b.date = b.date.UTC()
	b.version = semantic(b.described, b.date)
	b.from = command{b.root, []string{"./cmd/autoscaler-agent"}}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := b.pack(arch); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	return checksums(b.out)
}

// pack makes every artifact of one architecture.
func (b *build) pack(arch string) error {
	stage, err := os.MkdirTemp("", "autoscaler-agent-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	licences, err := b.licences(arch)
	if err != nil {
		return fmt.Errorf("licences: %w", err)
	}
	if err := b.put(stage, "usr/share/doc/autoscaler-agent/NOTICES", notices(licences), 0o644); err != nil {
		return err
	}
	if err := b.lay(stage, arch); err != nil {
		return err
	}
	return errors.Join(
		b.packages(stage, arch),
		b.tarball(stage, arch),
		b.extension(stage, arch),
		b.modules(arch, licences),
	)
}

// name is the file name of an artifact.
func (b *build) name(arch, suffix string) string {
	return filepath.Join(b.out, "autoscaler-agent-"+b.version+"-linux-"+arch+suffix)
}

var released = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)$`)

// semantic returns the version of the packages. A commit without a tag of its own is a
// development version whose order is that of the commits' times, so that an upgrade from
// one to the next is an upgrade to the package managers as well.
func semantic(described string, date time.Time) string {
	if m := released.FindStringSubmatch(described); m != nil {
		return m[1]
	}
	base := "0.0.0"
	if m := regexp.MustCompile(`^v?(\d+\.\d+\.\d+)-`).FindStringSubmatch(described); m != nil {
		base = m[1]
	}
	version := base + "-dev." + date.Format("20060102150405")
	if strings.HasSuffix(described, "-dirty") {
		version += ".dirty"
	}
	return version
}

// checksums writes SHA256SUMS over every file of the directory, in the order of their names.
func checksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	names := []string{}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != "SHA256SUMS" {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names {
		sum, err := digest(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blakesmith/ar"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/squashfs"
	"github.com/spdx/tools-golang/json"
)

// TestSemantic: commits without a tag are ordered by their times, and none is newer than
// the release that follows.
func TestSemantic(t *testing.T) {
	date := time.Date(2026, 11, 22, 19, 13, 31, 0, time.UTC)
	for described, want := range map[string]string{
		"v1.4.0": "1.4.0", "1.4.0": "1.4.0", "v1.4.0-rc.1": "1.4.0-rc.1",
		"d8e76db": "0.0.0-dev.20261122191331", "d8e76db-dirty": "0.0.0-dev.20261122191331.dirty",
		"unknown": "0.0.0-dev.20261122191331", "": "0.0.0-dev.20261122191331",
	} {
		if got := semantic(described, date); got != want {
			t.Errorf("%q: %q, want %q", described, got, want)
		}
	}
	if got := semantic("v1.4.0-12-gd8e76db", date); got != "1.4.0-dev.20261122191331" {
		t.Errorf("after a tag: %q", got)
	}
}

// TestDist packs the same binary twice: the bytes are equal, and each artifact holds what
// the others hold, with root as the owner and no file that others may write.
func TestDist(t *testing.T) {
	one, two := packed(t, "amd64"), packed(t, "amd64")
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if !bytes.Equal(one[name], two[name]) {
			t.Errorf("%s: two builds differ", name)
		}
		names = append(names, name)
	}
	if len(one) != len(two) || len(one) != 7 { // the binary, 5 artifacts, SHA256SUMS
		t.Fatalf("made %q", names)
	}
	if sums := string(one["SHA256SUMS"]); strings.Count(sums, "\n") != 6 || !strings.Contains(sums, "-linux-amd64.rpm\n") {
		t.Errorf("SHA256SUMS:\n%s", sums)
	}
	deb, tarball := debFiles(t, one["autoscaler-agent-1.2.3-linux-amd64.deb"]), tarFiles(t, one["autoscaler-agent-1.2.3-linux-amd64.tar.gz"], "autoscaler-agent-1.2.3-linux-amd64/")
	for _, want := range []struct {
		path string
		mode int64
	}{
		{"usr/bin/autoscaler-agent", 0o755}, {"etc/autoscaler-agent/agent.env", 0o640}, {"etc/autoscaler-agent/", 0o750},
		{"usr/lib/systemd/system/autoscaler-agent.service", 0o644}, {"usr/lib/sysusers.d/autoscaler-agent.conf", 0o644},
		{"usr/lib/systemd/system/autoscaler-agent-renew.service", 0o644}, {"usr/lib/systemd/system/autoscaler-agent-renew.timer", 0o644},
		{"usr/lib/tmpfiles.d/autoscaler-agent.conf", 0o644}, {"usr/share/man/man8/autoscaler-agent.8.gz", 0o644}, {"usr/share/man/man5/agent.env.5.gz", 0o644},
		{"usr/share/bash-completion/completions/autoscaler-agent", 0o644}, {"usr/share/autoscaler-agent/admission-policy.yaml", 0o644},
		{"usr/share/doc/autoscaler-agent/copyright", 0o644}, {"usr/share/doc/autoscaler-agent/NOTICES", 0o644},
	} {
		if deb[want.path] != want.mode || tarball[want.path] != want.mode {
			t.Errorf("%s: mode %o in the deb, %o in the tarball, want %o", want.path, deb[want.path], tarball[want.path], want.mode)
		}
	}
	// Files that a reader of the packages' documents is sent to, and those that stand beside them.
	for _, dir := range []string{"deploy", "examples", "docs"} {
		below := map[string]string{"docs": "usr/share/doc/autoscaler-agent/"}[dir]
		if below == "" {
			below = share
		}
		for _, path := range tracked(t, dir) {
			want := int64(0o644)
			if strings.HasSuffix(path, ".sh") {
				want = 0o755
			}
			if strings.HasPrefix(path, "examples/externalgrpc-server/") { // a program of its own, to be built from the source
				want = 0
			}
			if deb[below+path] != want || tarball[below+path] != want {
				t.Errorf("%s: mode %o in the deb, %o in the tarball, want %o", below+path, deb[below+path], tarball[below+path], want)
			}
		}
	}
	for path := range deb {
		if strings.Contains(path, "tfstate") || strings.Contains(path, "tfvars") || strings.Contains(path, "/.terraform") {
			t.Errorf("%s may hold secrets of whoever built the package", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(tarball)) {
		if _, there := deb[path]; !there && path != "" && path != "etc/" && path != "usr/" {
			t.Errorf("the deb lacks %s", path)
		}
	}
	bill, err := json.Read(bytes.NewReader(one["autoscaler-agent-1.2.3-linux-amd64.spdx.json"]))
	if err != nil || len(bill.Packages) < 10 || len(bill.Relationships) != len(bill.Packages) {
		t.Fatalf("SPDX: %v, %d packages", err, len(bill.Packages))
	}
	for _, p := range bill.Packages {
		if p.PackageLicenseConcluded == "" || p.PackageLicenseConcluded == "NOASSERTION" || p.PackageLicenseConcluded == "NONE" {
			t.Errorf("%s: the licence is %q", p.PackageName, p.PackageLicenseConcluded)
		}
	}
}

// tracked are the files of a directory of the checkout that git knows.
func tracked(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", "../..", "ls-files", "--", dir).Output()
	files := strings.Fields(string(out))
	if err != nil || len(files) < 3 {
		t.Fatalf("git ls-files %s: %v, %d files", dir, err, len(files))
	}
	return files
}

// TestUnit: the unit of a package starts the package's binary.
func TestUnit(t *testing.T) {
	b, stage := build{root: "../.."}, t.TempDir()
	if err := b.unit(stage); err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile(filepath.Join(stage, "usr/lib/systemd/system/autoscaler-agent.service"))
	if err != nil || !bytes.Contains(unit, []byte("\nExecStart=/usr/bin/autoscaler-agent run\n")) || bytes.Contains(unit, []byte("/usr/local")) {
		t.Errorf("%v\n%s", err, unit)
	}
}

// TestExtension: the image is read back by a reader of squashfs.
func TestExtension(t *testing.T) {
	files := packed(t, "arm64")
	path := filepath.Join(t.TempDir(), "image")
	data := files["autoscaler-agent-1.2.3-linux-arm64.sysext.raw"]
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	storage, err := file.OpenFromPath(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	image, err := squashfs.Read(storage, int64(len(data)), 0, 128<<10)
	if err != nil {
		t.Fatal(err)
	}
	release, err := image.ReadFile("usr/lib/extension-release.d/extension-release.autoscaler-agent")
	if err != nil || string(release) != "ID=_any\nARCHITECTURE=arm64\nEXTENSION_RELOAD_MANAGER=1\n" {
		t.Errorf("%v %q", err, release)
	}
	binary, err := image.ReadFile("usr/bin/autoscaler-agent")
	if err != nil || !bytes.Equal(binary, files["autoscaler-agent-linux-arm64"]) {
		t.Errorf("the binary in the image: %v, %d bytes", err, len(binary))
	}
	if top, err := image.ReadDir("."); err != nil || len(top) != 1 {
		t.Errorf("a system extension may hold /usr alone: %v %v", err, top)
	}
}

// packed packs this test's own binary as that of each architecture.
func packed(t *testing.T, archs ...string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	put("man/autoscaler-agent.8", []byte(".TH\n"))
	put("man/agent.env.5", []byte(".TH\n"))
	for _, shell := range []string{"bash", "zsh", "fish"} {
		put("completion/"+shell, []byte("# "+shell+"\n"))
	}
	b := build{root: "../..", out: filepath.Join(dir, "out"), man: filepath.Join(dir, "man"), completion: filepath.Join(dir, "completion"),
		version: "1.2.3", date: time.Date(2026, 11, 22, 19, 13, 31, 0, time.UTC), from: command{".", []string{"-test", "."}}}
	for _, arch := range archs {
		put("out/autoscaler-agent-linux-"+arch, binary)
		if err := b.pack(arch); err != nil {
			t.Fatal(err)
		}
	}
	if err := checksums(b.out); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(b.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(b.out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// debFiles are the modes of a deb's files by path.
func debFiles(t *testing.T, data []byte) map[string]int64 {
	t.Helper()
	r := ar.NewReader(bytes.NewReader(data))
	for {
		header, err := r.Next()
		if err != nil {
			t.Fatalf("the deb has no data.tar.gz: %v", err)
		}
		if strings.HasPrefix(header.Name, "data.tar.gz") {
			part, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return tarFiles(t, part, "./")
		}
	}
}

func tarFiles(t *testing.T, data []byte, top string) map[string]int64 {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if err == io.EOF {
			return modes
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Mode&0o022 != 0 {
			t.Errorf("%s: uid %d, gid %d, mode %o", header.Name, header.Uid, header.Gid, header.Mode)
		}
		modes[strings.TrimPrefix(header.Name, top)] = header.Mode & 0o777
	}
}

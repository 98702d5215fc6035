package atomicfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

func write(t *testing.T, path, data string, mode fs.FileMode) bool {
	t.Helper()
	changed, err := atomicfile.Write(path, []byte(data), mode)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != data || info.Mode().Perm() != mode {
		t.Fatalf("%s holds %q with mode %v, want %q with %v", path, got, info.Mode().Perm(), data, mode)
	}
	return changed
}

func TestWriteReplacesAndKeepsQuietWhenNothingChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worker.env")
	if !write(t, path, "a", 0o600) {
		t.Error("the first write says that nothing changed")
	}
	before, _ := os.Stat(path)
	if write(t, path, "a", 0o600) {
		t.Error("equal bytes were written again")
	}
	after, _ := os.Stat(path)
	if !os.SameFile(before, after) {
		t.Error("equal bytes replaced the file")
	}
	if !write(t, path, "b", 0o600) {
		t.Error("new bytes say that nothing changed")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if !write(t, path, "b", 0o600) {
		t.Error("a world-readable file was left so")
	}
	noTemporaries(t, filepath.Dir(path), 1)
}

func TestWriteFollowsAndKeepsALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "worker.env")
	if err := os.Symlink("state/published.env", link); err != nil {
		t.Fatal(err)
	}
	write(t, link, "dangling at first", 0o600)
	write(t, link, "then not", 0o600)
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "state", "published.env")); string(got) != "then not" {
		t.Errorf("the link's target holds %q", got)
	}
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a directory":          {dir, "it is a directory: name a file"},
		"a device":             {"/dev/null", "not a regular file"},
		"a loop":               {loop, "symbolic links"},
		"a directory not made": {filepath.Join(dir, "no", "file"), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := atomicfile.Write(c.path, []byte("x"), 0o600)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that contains %q", err, c.want)
			}
		})
	}
	noTemporaries(t, dir, 1)
}

func noTemporaries(t *testing.T, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != want {
		t.Errorf("%d files are left in %s, want %d: %v", len(entries), dir, want, entries)
	}
}

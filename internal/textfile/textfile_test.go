package textfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRead: a path that names something else than a file of the right size is an error, and
// none makes the reader wait.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("good"), []byte("abc"), 0o600), os.WriteFile(at("large"), make([]byte, 2049), 0o600),
		syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("loop", at("loop"))); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(at("good"), 3); err != nil || string(data) != "abc" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := Read("/dev/null", 2048); err != nil || len(data) != 0 {
		t.Errorf("/dev/null: %q, %v", data, err)
	}
	for path, want := range map[string]string{
		at("large"): "larger than 2 KiB", "/dev/zero": "larger than 2 KiB", at("pipe"): "a named pipe", dir: "a directory",
		at("loop"): "too many levels", at("none"): "no such file",
	} {
		if _, err := Read(path, 2048); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := Read(at("none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCheckWritable: a path that is no directory is named, without the file that was tried in it.
func TestCheckWritable(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("file"), nil, 0o600), os.Symlink("loop", at("loop"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Finding{
		dir:        {Level: LevelOK, Text: dir + " is writable"},
		at("none"): {Level: LevelWarning, Text: at("none") + " does not exist"},
		at("file"): {Level: LevelError, Text: at("file") + " is not a directory"},
		at("loop"): {Level: LevelError, Text: at("loop") + ": too many levels of symbolic links"},
	} {
		got := checkWritable("directory", path, "VARIABLE")
		if len(got) != 1 || got[0].Level != want.Level || got[0].Text != want.Text || (got[0].Remedy == "") != (want.Level == LevelOK) {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("a file is left behind: %v, %v", left, err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedCode: the committed files are what the proto file gives.
func TestGeneratedCode(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(targets) {
		t.Errorf("%d files of %d targets", len(files), len(targets))
	}
	for path, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(got) != want {
			t.Errorf("%s is not what externalgrpc.proto gives (%v): run make generate", path, err)
		}
	}
}

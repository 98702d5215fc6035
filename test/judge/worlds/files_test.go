package worlds

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

var keep = flag.String("keep", "", "write the world of Draw with this seed to testdata (odd-27: of DrawOdd), for a test that reads it with kept")

// kept reads a world of testdata. The worlds in which something was found are data, because
// another draw in Draw makes other worlds of all seeds.
func kept(t *testing.T, name string) *World {
	t.Helper()
	b, err := os.ReadFile(fileOf(name))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: %v", fileOf(name), err)
	}
	var w World
	d := json.NewDecoder(z)
	d.DisallowUnknownFields() // a world that lost half of what it is about would still be a world
	if err := d.Decode(&w); err != nil {
		t.Fatalf("%s: %v", fileOf(name), err)
	}
	return &w
}

func fileOf(name string) string { return filepath.Join("testdata", name+".json.gz") }

// TestKeep writes the world of -keep, and reads every world that is kept.
func TestKeep(t *testing.T) {
	if *keep != "" {
		draw, text := Draw, *keep
		if len(text) > 4 && text[:4] == "odd-" {
			draw, text = DrawOdd, text[4:]
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("-keep %s: write a seed, or odd- and a seed", *keep)
		}
		write(t, *keep, draw(seed))
	}
	files, err := filepath.Glob(fileOf("*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d worlds, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if w := kept(t, name[:len(name)-len(".json.gz")]); w.Pods() == 0 || len(w.Groups) == 0 {
			t.Errorf("%s: %d pods, %d groups", file, w.Pods(), len(w.Groups))
		}
	}
}

func write(t *testing.T, name string, w *World) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(z).Encode(w); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fileOf(name), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

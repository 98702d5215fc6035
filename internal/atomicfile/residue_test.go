package atomicfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
)

func touch(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("JOIN_TOKEN=secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestSweepTakesWhatACrashLeft and nothing else: a path that is a link is swept where it
// leads to.
func TestSweepTakesWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.MkdirAll(filepath.Join(state, ".worker.env.7"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "worker.env")
	if err := os.Symlink("state/worker.env", link); err != nil {
		t.Fatal(err)
	}
	stay := []string{".worker.env", ".worker.env.", ".worker.env.swp", ".worker.env.12a", ".worker.env.bak.1", ".state.json.12", "worker.env.12", "worker.env"}
	touch(t, state, append(stay, ".worker.env.12", ".worker.env.3904857345")...)
	touch(t, dir, ".worker.env.99")
	if err := os.Symlink("worker.env", filepath.Join(state, ".worker.env.5")); err != nil {
		t.Fatal(err)
	}
	removed, err := atomicfile.Sweep(link)
	slices.Sort(removed)
	if err != nil || !slices.Equal(removed, []string{".worker.env.12", ".worker.env.3904857345"}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	want := append(slices.Clone(stay), ".worker.env.5", ".worker.env.7")
	slices.Sort(want)
	if got := list(t, state); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, ".worker.env.99")); err != nil {
		t.Errorf("beside the link: %v", err)
	}
	if removed, err := atomicfile.Sweep(filepath.Join(dir, "none", "file")); err != nil || len(removed) > 0 {
		t.Errorf("where there is no directory: %v %v", removed, err)
	}
}

// TestSweepLeavesAWriteAlone: writes of this process go on while it sweeps, and none is lost.
func TestSweepLeavesAWriteAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 50 {
				if _, err := atomicfile.Write(path, []byte(strings.Repeat("x", 1+w*50+n)), 0o600); err != nil {
					t.Errorf("a write beside a sweep: %v", err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for swept := 0; ; swept++ {
		if removed, err := atomicfile.Sweep(path); err != nil || len(removed) > 0 {
			t.Errorf("swept %v, %v", removed, err)
		}
		select {
		case <-done:
			noTemporaries(t, dir, 1)
			return
		default:
		}
	}
}

func TestSweepDir(t *testing.T) {
	dir := t.TempDir()
	touch(t, dir, "a.json", ".a.json.1", ".b.json.22", ".hidden", ".a.json.x")
	if removed, err := atomicfile.SweepDir(dir); err != nil || len(removed) != 2 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if got := list(t, dir); !slices.Equal(got, []string{".a.json.x", ".hidden", "a.json"}) {
		t.Errorf("left are %v", got)
	}
}

// TestSetAsideKeepsTheLastThree files, and every directory.
func TestSetAsideKeepsTheLastThree(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state[1].json")
	touch(t, dir, "state[1].json.bad-other", "state1.json.bad-1")
	for n := range 6 {
		if n == 1 {
			if err := os.MkdirAll(filepath.Join(path, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			if aside, err := atomicfile.SetAsideDirectory(path, time.Unix(998, 0)); err != nil || aside != path+".bad-998" {
				t.Fatalf("a directory: %q, %v", aside, err)
			}
		}
		touch(t, dir, filepath.Base(path))
		if aside, err := atomicfile.SetAsideDirectory(path, time.Unix(1, 0)); err != nil || aside != "" {
			t.Fatalf("a file is no directory: %q, %v", aside, err)
		}
		if _, err := atomicfile.SetAside(path, time.Unix(996+int64(n)*2, 0)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"state1.json.bad-1", "state[1].json.bad-1002", "state[1].json.bad-1004", "state[1].json.bad-1006", "state[1].json.bad-998", "state[1].json.bad-other"}
	if got := list(t, dir); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}

package goruntime

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
)

// TestPhases: the collector works harder in a small cluster once the start is over, one thread is
// enough then, and what GOGC and GOMAXPROCS say stays.
func TestPhases(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int { p := debug.SetGCPercent(100); debug.SetGCPercent(p); return p }
	threads := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(threads)
	t.Setenv("GOGC", "")
	t.Setenv("GOMAXPROCS", "")
	t.Setenv("GOMEMLIMIT", "1GiB") // the bound of this process is not the test's
	garbage := make([]byte, 64<<20)
	for i := range garbage {
		garbage[i] = 1
	}
	garbage = nil
	Steady()
	if got := percent(); got != smallPercent {
		t.Errorf("%d %% afterwards", got)
	}
	if got := runtime.GOMAXPROCS(0); got != steadyThreads {
		t.Errorf("%d threads afterwards", got)
	}
	kept := make([]byte, 2*smallHeap)
	Steady()
	if got := percent(); got != largePercent {
		t.Errorf("%d %% afterwards with a large heap", got)
	}
	runtime.KeepAlive(kept)
	kept = nil
	Steady()
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased > 16<<20 {
		t.Errorf("%d bytes of the start's garbage are kept", m.HeapIdle-m.HeapReleased)
	}
	debug.SetGCPercent(77)
	t.Setenv("GOGC", "77")
	runtime.GOMAXPROCS(3)
	t.Setenv("GOMAXPROCS", "3")
	Loading()
	Steady()
	if got := percent(); got != 77 {
		t.Errorf("GOGC=77 became %d", got)
	}
	if got := runtime.GOMAXPROCS(0); got != 3 {
		t.Errorf("GOMAXPROCS=3 became %d", got)
	}
}

// TestMemoryHigh: the least bound of the process's own control group and of those above it.
func TestMemoryHigh(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) string {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self := write("self", "1:name=systemd:/old\n0::/system.slice/a.service\n")
	if got := memoryHigh(self, root); got != 0 {
		t.Errorf("%d without a file", got)
	}
	for i, c := range []struct {
		slice, own string
		want       int64
	}{{"max\n", "max\n", 0}, {"max\n", "1073741824\n", 1 << 30}, {"536870912\n", "1073741824\n", 1 << 29}, {"?", "7\n", 7}} {
		write("system.slice/memory.high", c.slice)
		write("system.slice/a.service/memory.high", c.own)
		if got := memoryHigh(self, root); got != c.want {
			t.Errorf("case %d: %d, want %d", i, got, c.want)
		}
	}
	if got := memoryHigh(filepath.Join(root, "none"), root); got != 0 {
		t.Errorf("%d without a control group", got)
	}
}

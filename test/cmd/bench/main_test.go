package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `goos: linux
BenchmarkE/generic-300-1-2   	   10000	     20000 ns/op	        15000 cpu-ns/op	         8.000 nodes	       300.0 pods	   12345 B/op	      67 allocs/op
BenchmarkE/generic-300-1-2   	   10000	     20000 ns/op	        25000 cpu-ns/op	         8.000 nodes	       300.0 pods	   12345 B/op	      67 allocs/op
BenchmarkR/N=1000/Q=0/U=90/later-2   	   10000	     20000 ns/op	   4.00 cpu-ms/op	   12345 B/op	      67 allocs/op
BenchmarkFloor/generic-30000-300-2   	   10000	     20000 ns/op	   2080000 cpu-ns/op	     1063 nodes
BenchmarkE/generic-30000-300-2   	   10000	     20000 ns/op	   5200000 cpu-ns/op	     1038 nodes	     30000 pods
PASS
`

func TestTable(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+begin+"yesterday\n"+end+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := run(strings.NewReader(sample), &out, []string{"-write", page}); code != 0 {
		t.Fatal(code)
	}
	raw, _ := os.ReadFile(page)
	for _, want := range []string{
		"before\n", "after\n",
		"| E generic P=300 K=1 | 4.3 | 0.015 | 287 | 3 | 0.0123 | 8 | 8 | pass |",
		"| R N=1000 Q=0 U=90, later loops | 238 | 4 | 59.5 | 162 | 0.0123 |  |  | pass |",
		"| idle round, N=1000, ms | 4 | under 1 | **FAIL** |",
		"The floor, plain first fit by counts of 30,000 pods in 300 specs, takes 2.08 ms on this machine and took\n1.04 ms on that of the peers' figures, so that this one is 2 times as slow.",
		"| E generic-30000-300: times the floor, plain first fit by counts | 2.5 | at most 200 | pass |",
		"no figure",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %q in\n%s", want, raw)
		}
	}
	if strings.Contains(string(raw), "yesterday") {
		t.Error("the old table is still there")
	}
	if run(strings.NewReader(sample), &out, []string{"-strict"}) == 0 {
		t.Error("a missed bar passes")
	}
	if run(strings.NewReader(sample), &out, []string{"-write", page + ".none"}) == 0 {
		t.Error("a page that is not there passes")
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01534: "0.0153", 4.3: "4.3", 238.2: "238", 1328: "1328", 47062.3: "47,062", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// Package goruntime tells Go's runtime how much of the host to take: how hard the collector works,
// by the phase that the agent is in and by the memory.high of its control group (systemd's
// MemoryHigh=), and how many threads run Go code at once.
//
// It refuses to change what GOGC, GOMEMLIMIT or GOMAXPROCS set.
package goruntime

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

const (
	// smallPercent is GOGC afterwards in a small cluster: a round leaves little garbage there,
	// and the agent shares the memory of its host.
	smallPercent = 25
	// largePercent is GOGC afterwards where more than smallHeap lives. Watch events and reads of
	// the cloud leave more garbage there, and at smallPercent the collector would mark the whole
	// heap for each quarter of it: that was most of the processor time.
	largePercent = 100
	smallHeap    = 10 << 20 // bytes
	// limitShare is the part of MemoryHigh that the runtime may use before the collector
	// works without a pause: what is beside the heap (the binary's pages) needs the rest.
	limitShare = 0.8
	// steadyThreads is GOMAXPROCS once the lists are read. Watch events come one at a time, and each
	// passes through five goroutines: to wake a second thread for them cost a fifth of the
	// processor time of churn.
	steadyThreads = 1
)

// Loading prepares for the start, in which all processors read lists. The collector works at Go's
// own 100 % then.
func Loading() {
	if os.Getenv("GOMEMLIMIT") == "" {
		if high := memoryHigh("/proc/self/cgroup", "/sys/fs/cgroup"); high > 0 {
			debug.SetMemoryLimit(int64(float64(high) * limitShare))
		}
	}
}

// Steady gives the garbage of the start back to the system. The cluster that was read decides
// how hard the collector works from now on.
func Steady() {
	debug.FreeOSMemory()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	setPercent(steadyPercent(live[0].Value.Uint64()))
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(steadyThreads)
	}
}

// steadyPercent is GOGC for a heap of which so many bytes live.
func steadyPercent(live uint64) int {
	if live > smallHeap {
		return largePercent
	}
	return smallPercent
}

func setPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// memoryHigh is the least memory.high of the process's control group and of those above
// it, in bytes; 0: there is none, or the host has no control groups of version 2.
func memoryHigh(self, root string) int64 {
	text, err := os.ReadFile(self)
	if err != nil {
		return 0
	}
	var least int64
	for line := range strings.Lines(string(text)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for dir := "/" + group; dir != "/"; dir = filepath.Dir(dir) {
			high, err := os.ReadFile(filepath.Join(root, dir, "memory.high"))
			if err != nil {
				continue
			}
			// "max" is no number and no bound.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(high)), 10, 64); err == nil && (least == 0 || n < least) {
				least = n
			}
		}
	}
	return least
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// cpu is the processor time of the program so far, in seconds, from /proc.
func (r *rig) cpu() float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	return float64(user+system) / ticksPerSecond
}

// memory is what the program holds now and held at most, in MB.
func (r *rig) memory() (now, most int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	value := func(key string) int {
		for line := range strings.Lines(string(status)) {
			if rest, ok := strings.CutPrefix(line, key+":"); ok {
				kb, _ := strconv.Atoi(strings.Fields(rest)[0])
				return kb / 1024
			}
		}
		return 0
	}
	return value("VmRSS"), value("VmHWM")
}

// requests counts the lines of the audit log; a watch counts when it begins.
func requests(log string) int {
	raw, err := os.ReadFile(log)
	if err != nil {
		return 0
	}
	n := 0
	for line := range bytes.Lines(raw) {
		watch := bytes.Contains(line, []byte(`"verb":"watch"`))
		if began := bytes.Contains(line, []byte(`"stage":"ResponseStarted"`)); began == watch {
			n++
		}
	}
	return n
}

func loadavg() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:1], " ")
}

// until waits for a condition that is looked at every 100 ms.
func until(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !ok() {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

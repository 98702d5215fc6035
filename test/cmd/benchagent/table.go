package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// figures are what one run has measured.
type figures struct {
	nodes, groups   int
	rss, peak       int // MB
	startWall       time.Duration
	startCPU        float64 // s
	idleCPU         float64 // s a minute
	churnCPU        float64 // s a minute
	idleRequests    float64 // to the API server, a minute
	churnRequests   float64
	idleKB, churnKB float64 // from the API server, a minute
	calls           float64 // of the cloud, an hour, at rest
	throttled       int
	burst           time.Duration // from the first pod to the last order
	orders, bought  int
	load            string
}

// Lines of the page between which the rows stand.
const (
	begins = "<!-- the table of `make bench-agent` begins -->"
	ends   = "<!-- the table of `make bench-agent` ends -->"
)

func table(o options, rows []figures) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| nodes (pods) | RSS MB (peak) | start: wall s / CPU s | idle: CPU s a minute | churn: CPU s a minute | API requests a minute, idle / churn | KB from the API server a minute, idle / churn | cloud calls an hour, idle | burst: s to the last order, orders, machines |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, f := range rows {
		fmt.Fprintf(&b, "| %d (%d) | %d (%d) | %.1f / %.1f | %.2f | %.2f | %.0f / %.0f | %.0f / %.0f | %.0f for %d groups, %d throttled | %.1f, %d, %d |\n",
			f.nodes, f.nodes*o.pods, f.rss, f.peak, f.startWall.Seconds(), f.startCPU, f.idleCPU, f.churnCPU, f.idleRequests, f.churnRequests,
			f.idleKB, f.churnKB, f.calls, f.groups, f.throttled, f.burst.Seconds(), f.orders, f.bought)
	}
	fmt.Fprintln(&b)
	for _, f := range rows {
		fmt.Fprintf(&b, "Load of the machine at the start and at the end with %d nodes: %s.\n", f.nodes, f.load)
	}
	return b.String()
}

// replace puts text between the two lines of the page.
func replace(page, text string) error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), begins)
	_, after, closed := strings.Cut(rest, ends)
	if !ok || !closed {
		return fmt.Errorf("%s has no lines %q and %q", page, begins, ends)
	}
	return os.WriteFile(page, []byte(before+begins+"\n\n"+text+"\n"+ends+after), 0o644)
}

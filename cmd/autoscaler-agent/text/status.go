package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
)

// Status prints what a running agent does now.
func Status(out io.Writer, s localapi.Status) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("agent", "%s on %s, up %s", s.Version, s.Node, time.Since(s.Since).Round(time.Second))
	if s.Acting {
		row("acting", "yes")
	} else {
		row("acting", "no: %s", s.Why)
	}
	for _, t := range s.Troubles {
		row("trouble", "%s: %s", t.What, t.Cause)
		if t.Remedy != "" {
			row("", "do: %s", t.Remedy)
		}
	}
	for line := range strings.SplitSeq(s.Settings, "\n") { // one mistake a line
		if line != "" {
			row("settings", "not in force: %s", line)
		}
	}
	if s.Stale != "" {
		row("kubernetes", "%s", s.Stale)
	}
	switch {
	case s.Cloud != "":
		for line := range strings.SplitSeq(s.Cloud, "\n") { // one fault a line
			row("cloud", "%s", line)
		}
	case s.CloudAt.IsZero():
		row("cloud", "not read yet")
	default:
		row("cloud", "read %s ago", time.Since(s.CloudAt).Round(time.Second))
	}
	for _, l := range s.Late {
		row("late", "%s", l)
	}
	row("cluster", "%d nodes (%d ready), %d pods (%d pending)", s.Nodes, s.Ready, s.Pods, s.Pending)
	_ = w.Flush() // out is a terminal or a pipe: a failed write has no reader
	statusGroups(out, s.Groups)
	rolloutRemarks(out, s.Rollouts)
	if s.Plan != "" {
		fmt.Fprintf(out, "\nlast plan, %s ago:\n%s", time.Since(s.LastPlan).Round(time.Second), s.Plan)
	}
}

// statusGroups prints the node groups, and below them what an operator should know of each.
func statusGroups(out io.Writer, groups []localapi.GroupStatus) {
	if len(groups) == 0 {
		return
	}
	several := slices.ContainsFunc(groups, func(g localapi.GroupStatus) bool { return g.Provider != "" })
	heads := []string{"GROUP", "MIN", "TARGET", "MAX", "INSTANCES"}
	if several {
		heads = slices.Insert(heads, 1, "PROVIDER")
	}
	var rows [][]string
	for _, g := range groups {
		row := []string{g.ID, strconv.Itoa(g.Min), strconv.Itoa(g.Target), strconv.Itoa(g.Max), strconv.Itoa(g.Instances)}
		if several {
			row = slices.Insert(row, 1, g.Provider)
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(out)
	Table(out, heads, rows)
	for _, g := range groups {
		if words := g.Remark(); words != "" {
			fmt.Fprintf(out, "  %s: %s\n", g.ID, Wrap(words, Columns(out)-4-len(g.ID), "    "))
		}
	}
}

package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
)

// Status prints what a running agent does now.
func Status(out io.Writer, s localapi.Status) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("agent", "%s on %s, up %s", s.Version, s.Node, time.Since(s.Since).Round(time.Second))
	switch {
	case s.Acting:
		row("acting", "yes")
	case len(s.Troubles) > 0 && s.Troubles[0].Cause != "" && strings.HasPrefix(s.Why, strings.TrimSuffix(s.Troubles[0].Cause, "…")):
		row("acting", "no") // the trouble below has the cause
	default:
		row("acting", "no: %s", s.Why)
	}
	for _, t := range s.Troubles { // of Kubernetes, the cloud, groups.yaml and the services, too: each cause is told once
		row("trouble", "%s: %s", t.What, t.Cause)
		if t.Remedy != "" {
			row("", "do: %s", t.Remedy)
		}
	}
	if s.CloudAt.IsZero() {
		row("cloud", "not read yet")
	} else {
		row("cloud", "read %s ago", time.Since(s.CloudAt).Round(time.Second))
	}
	if slices.Contains(s.Unread, localapi.UnreadCluster) {
		row("cluster", "not read yet")
	} else {
		row("cluster", "%d nodes (%d ready), %d pods (%d pending)", s.Nodes, s.Ready, s.Pods, s.Pending)
	}
	_ = w.Flush() // out is a terminal or a pipe: a failed write has no reader
	statusGroups(out, s.Groups)
	for _, p := range s.Pools {
		fmt.Fprintln(out, "\n"+poolLine(p))
	}
	rolloutRemarks(out, s.Rollouts)
	if s.Plan != "" {
		fmt.Fprintf(out, "\nlast plan, %s ago:\n%s", time.Since(s.LastPlan).Round(time.Second), s.Plan)
	}
}

// poolLine says what a pool has.
func poolLine(p cluster.PoolUse) string {
	words := fmt.Sprintf("pool %s: %d of at most %d machines; %d of its %d groups are made", p.Name, p.Machines, p.Max, p.Made, p.Groups)
	if p.Template != "" {
		words += "; a template is not known: " + p.Template
	}
	return words
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
	table(out, heads, rows)
	for _, g := range groups {
		if words := g.Remark(); words != "" {
			fmt.Fprintf(out, "  %s: %s\n", g.ID, wrap(words, Columns(out)-4-len(g.ID), "    "))
		}
	}
}

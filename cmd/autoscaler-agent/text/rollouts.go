package text

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// Rollouts prints how the rollouts of node groups stand, and below them what their machines were started from and what holds them.
func Rollouts(out io.Writer, list decision.Rollouts) {
	if len(list.Rollouts) == 0 {
		fmt.Fprintln(out, "there is no node group")
		return
	}
	rows := make([][]string, len(list.Rollouts))
	for i, r := range list.Rollouts {
		window := "-"
		if !r.Next.IsZero() {
			window = r.Next.UTC().Format(time.RFC3339)
		}
		rows[i] = []string{string(r.Group), r.State, cmp.Or(r.Source, "-"), fmt.Sprintf("%d of %d", r.Replaced, r.Machines), cmp.Or(reasons(&r), "-"), strconv.Itoa(r.Going), window}
	}
	table(out, []string{"GROUP", "STATE", "SOURCE", "REPLACED", "TO REPLACE", "GOING", "NEXT WINDOW"}, rows)
	for _, r := range list.Rollouts {
		for _, words := range []string{others(&r), r.Remark(), longest(&r, list.At)} {
			if words != "" {
				fmt.Fprintf(out, "  %s: %s\n", r.Group, wrap(words, Columns(out)-4-len(r.Group), "    "))
			}
		}
	}
}

// longest tells since when a node has been to be replaced, where that is more than a day.
func longest(r *decision.Rollout, now time.Time) string {
	if r.Oldest.IsZero() || now.Sub(r.Oldest) < 24*time.Hour {
		return ""
	}
	return fmt.Sprintf("one of its nodes has been to be replaced since %s", r.Oldest.UTC().Format(time.RFC3339))
}

// reasons counts the nodes that are to be replaced, "17 drifted, 1 sick".
func reasons(r *decision.Rollout) string {
	var out []string
	for _, reason := range cluster.Reasons {
		if n := r.By[reason]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, reason))
		}
	}
	return strings.Join(out, ", ")
}

// others counts the machines of other sources than the present one.
func others(r *decision.Rollout) string {
	var out []string
	for _, s := range r.Sources {
		if !s.Present && s.Source != "" && r.Source != "" {
			out = append(out, fmt.Sprintf("%d of source %s", s.Machines, s.Source))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "machines that were started otherwise: " + strings.Join(out, ", ")
}

// rolloutRemarks prints the rollouts that do not go on.
func rolloutRemarks(out io.Writer, list []decision.Rollout) {
	for i := range list {
		r := &list[i]
		if words := r.Remark(); words != "" {
			fmt.Fprintf(out, "  %s: rollout %s, %d of %d machines replaced: %s\n", r.Group, r.State, r.Replaced, r.Machines, wrap(words, Columns(out)-4, "    "))
		}
	}
}

package text

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/oneshot"
	"github.com/autoscaler-agent/autoscaler-agent/agent/replay"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// Tokens prints join tokens without their secrets.
func Tokens(out io.Writer, list []oneshot.JoinToken) {
	var rows [][]string
	for _, t := range list {
		ends := "-"
		if !t.Expires.IsZero() {
			ends = t.Expires.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{t.ID, t.For, ends, cmp.Or(t.Instance, t.Machine), t.Problem})
	}
	table(out, []string{"ID", "FOR", "EXPIRES", "MACHINE", "PROBLEM"}, rows)
}

// DeletedNodes prints the Nodes that can be brought back.
func DeletedNodes(out io.Writer, list []nodecleaner.Kept) {
	var rows [][]string
	for _, k := range list {
		rows = append(rows, []string{k.Name, k.DeletedAt.UTC().Format(time.RFC3339), k.UID, k.Why})
	}
	table(out, []string{"NAME", "DELETED", "UID", "WHY"}, rows)
}

// Replayed prints one round that was decided once more, with the lines that differ.
func Replayed(out io.Writer, r replay.Round) {
	word := "equal"
	if !r.Equal {
		word = "differs"
	}
	fmt.Fprintf(out, "%s  %-7s  %d actions, %d held\n", r.At.UTC().Format(time.RFC3339), word, len(r.Now.Actions), len(r.Now.Held))
	for _, line := range r.Diff {
		fmt.Fprintln(out, "  "+line)
	}
}
